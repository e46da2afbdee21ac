// The stored sessions that identities were refused: how much of one request, of one identity, and of all together.
import { describe, expect, it } from 'vitest'
import { type FailedServiceRequest, FailedServiceRequests } from '../../src/policy/posture/failed-service-requests.ts'

const MEGABYTE = 1024 * 1024

interface Contents {
  readonly actualValue?: unknown
  readonly expectedValue?: unknown
  readonly policies?: number
}

function requestAt(when: number, { actualValue = null, expectedValue = [], policies = 1 }: Contents = {}) {
  const check = { postureCheckId: 'c', postureCheckName: 'check', postureCheckType: 'MAC', actualValue, expectedValue }
  const request: FailedServiceRequest = {
    when,
    apiSessionId: 'a',
    serviceId: 's',
    serviceName: 'web',
    sessionType: 'Dial',
    policyFailures: Array.from({ length: policies }, (_, at) => ({
      policyId: `p${at}`,
      policyName: `policy ${at}`,
      checks: [check],
    })),
  }
  return request
}

const storedValue = (actualValue: unknown) => {
  const requests = new FailedServiceRequests()
  requests.add('one', requestAt(1, { actualValue }))
  return requests.list('one')[0]?.policyFailures[0]?.checks[0]?.actualValue
}
const text = (length: number) => 'x'.repeat(length)

describe('a failed service request', () => {
  it('is listed as it was, if it is small', () => {
    const requests = new FailedServiceRequests()
    const request = requestAt(1, { actualValue: ['aa', 'bb'], expectedValue: ['cc'] })
    requests.add('one', request)

    expect(requests.list('one')).toEqual([request])
    expect(requests.list('two')).toEqual([])
  })

  it('keeps the first sixteen entries of what was reported, at every depth', () => {
    const many = Array.from({ length: 256 }, (_, at) => `a${at}`)

    expect(storedValue(many)).toEqual(many.slice(0, 16))
    expect(storedValue({ path: '/bin/agent', isRunning: true, signerFingerprints: many })).toEqual({
      path: '/bin/agent',
      isRunning: true,
      signerFingerprints: many.slice(0, 16),
    })
    expect(storedValue(Array(20).fill({ signerFingerprints: many }))).toEqual(
      Array(16).fill({ signerFingerprints: many.slice(0, 16) }),
    )
  })

  it('cuts long texts of what was reported, and no hash of 512 bits', () => {
    expect(storedValue(text(128))).toBe(text(128))
    expect(storedValue(text(129))).toBe(`${text(128)}…`)
    expect(storedValue([text(255)])).toEqual([`${text(128)}…`])
    expect(storedValue({ hash: text(255) })).toEqual({ hash: `${text(128)}…` })
  })

  it('that is too large by itself is kept with the policies that fit', () => {
    const requests = new FailedServiceRequests()
    requests.add('one', requestAt(1, { expectedValue: text(MEGABYTE / 4), policies: 200 }))

    const [request] = requests.list('one')
    expect(request?.policyFailures.map(({ policyId }) => policyId)).toEqual(['p0', 'p1', 'p2'])
  })
})

describe('of one identity', () => {
  it('the oldest requests are dropped until the others take a megabyte at most', () => {
    const requests = new FailedServiceRequests()
    for (let when = 1; when <= 10; when++) requests.add('one', requestAt(when, { expectedValue: text(MEGABYTE / 4) }))

    expect(requests.list('one').map(({ when }) => when)).toEqual([8, 9, 10])
  })

  it('a hundred requests are kept', () => {
    const requests = new FailedServiceRequests()
    for (let when = 1; when <= 101; when++) requests.add('one', requestAt(when))

    expect(requests.list('one')).toHaveLength(100)
    expect([requests.list('one')[0], requests.list('one').at(-1)].map((request) => request?.when)).toEqual([2, 101])
  })

  it('the latest request is listed however many came before', () => {
    const requests = new FailedServiceRequests()
    for (let when = 1; when <= 64; when++) requests.add('one', requestAt(when, { expectedValue: text(MEGABYTE / 2) }))

    expect(requests.list('one').at(-1)?.when).toBe(64)
  })

  it('requests without end do not drop those of others', () => {
    const requests = new FailedServiceRequests()
    requests.add('other', requestAt(0))
    for (let when = 1; when <= 40; when++) {
      for (const id of ['one', 'two']) requests.add(id, requestAt(when, { expectedValue: text(MEGABYTE / 2) }))
    }

    expect(requests.list('other')).toHaveLength(1)
  })
})
