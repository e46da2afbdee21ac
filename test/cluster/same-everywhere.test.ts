// Facts that follow from commits are the same at every controller: times that clients compare, what the audit has left, cursors of events, and
// the keys of signers.
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { pruneAudit } from '../../src/storage/audit/audit-records.ts'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, MANAGEMENT, TestClock, type TestController } from '../world/controller.ts'
import { authorityFile, openEndpoint } from '../world/endpoints.ts'
import { type TestWatcher, watchEvents } from '../world/event-stream.ts'
import { createIssuerKey, Issuer, toJwk } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const DAY_MS = 24 * 3_600_000

const world = useClusterPerTest(TestCluster)
const authority = authorityFile()
afterAll(() => authority.remove())
let clock: TestClock
let first: TestController
let second: TestController
let token: string
const watchers: TestWatcher[] = []

beforeEach(async () => {
  clock = new TestClock()
  const settings = { 'signers.caFile': authority.path, 'session.timeout': '365d' }
  first = await world.cluster.open('first', { clock, settings })
  second = await world.cluster.open('second', { clock, settings })
  token = await first.admin()
})
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.close()
})

const createService = (at: TestController, name: string) =>
  at.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body: { name, encryptionRequired: true } })

/** Has both controllers apply everything. */
async function settle(): Promise<void> {
  for (const { controller } of [first, second]) await controller.cluster?.catchUp()
}

const readLastChange = async (at: TestController) =>
  (await at.send({ method: 'GET', path: `${CLIENT}/current-api-session/service-updates`, token })).body.data
    .lastChangeAt

describe('the time of the last change, by which clients poll', () => {
  it('is the same at every controller, and never the same for two changes', async () => {
    const policy = { name: 'all', type: 'Dial', semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    await first.send({ method: 'POST', path: `${MANAGEMENT}/service-policies`, token, body: policy })
    const times = new Set<string>()
    for (let number = 0; number < 6; number += 1) {
      expect((await createService(number % 2 === 0 ? first : second, `service ${number}`)).status).toBe(201)
      await settle()
      const time = await readLastChange(first)
      expect(await readLastChange(second)).toBe(time)
      times.add(time)
    }
    expect(times.size).toBe(6)
  })
})

describe('the audit', () => {
  const readAudit = ({ controller }: TestController) =>
    controller.store.db.selectFrom('audit_records').select(['n', 'hash']).orderBy('n').execute()

  it('that one controller pruned is the same chain at the others, which add to it', async () => {
    for (let number = 0; number < 4; number += 1) await createService(first, `old ${number}`)
    clock.advance(2 * DAY_MS)
    await createService(second, 'new')
    await settle()
    const before = await readAudit(second)
    expect(await pruneAudit(first.controller.store, first.system, DAY_MS)).toBeGreaterThan(3)
    await settle()
    await createService(second, 'newer')
    await settle()

    const after = await readAudit(second)
    expect(after[0]!.n).toBeGreaterThan(before[0]!.n)
    expect(await readAudit(first)).toEqual(after)
    for (const { controller, system } of [first, second]) {
      const { diagnoses } = await controller.doctor.diagnose(system)
      expect(diagnoses.filter(({ check }) => /audit|digest/.test(check))).toEqual([])
    }
  })
})

describe('the cursor of an event', () => {
  it('is where another controller goes on with the audit, after a gap that stands for what only the first one observed', async () => {
    const addresses = [await first.listen(), await second.listen()]
    const watch = async (at: number, headers: Record<string, string> = {}) => {
      const watcher = await watchEvents(addresses[at]!, token, '', headers)
      watchers.push(watcher)
      return watcher
    }
    const watcher = await watch(0)
    await expect.poll(() => watcher.cursor).not.toBe('')
    await createService(first, 'seen')
    await expect.poll(() => watcher.events.map(({ data }) => data.audit?.entityName)).toEqual(['seen'])
    const { cursor } = watcher.events[0]!
    await watcher.close()
    await createService(second, 'missed')
    await createService(first, 'missed, too')

    const later = await watch(1, { 'last-event-id': cursor })
    await createService(first, 'later')
    await expect
      .poll(() => later.events.map(({ type, data }) => data.audit?.entityName ?? type))
      .toEqual(['gap', 'missed', 'missed, too', 'later'])
  })
})

describe('the keys of an external signer', () => {
  it('that one controller fetched are those of the others, which fetch none for them', async () => {
    const people = await People.in(first)
    const issuer = new Issuer()
    let keys = [toJwk(issuer.key)]
    let requests = 0
    const endpoint = await openEndpoint((_request, response) => {
      requests += 1
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ keys }))
    })
    const externalId = 'of another issuer'
    await people.person({ externalId })
    await issuer.trustedBy(people, { jwksEndpoint: `${endpoint.url}/jwks` })
    const refresh = ({ controller }: TestController) =>
      controller.auth.signers.keyRefresher.refreshDue(controller.contexts)
    await refresh(first)
    await settle()
    const signIn = (at: TestController) => {
      const headers = { authorization: `Bearer ${issuer.token({ clock }, externalId)}` }
      return at.send({ method: 'POST', path: `${CLIENT}/authenticate?method=ext-jwt`, headers, body: {} })
    }
    expect([(await signIn(second)).status, requests]).toEqual([200, 1])

    issuer.key = createIssuerKey()
    keys = [toJwk(issuer.key)]
    clock.advance(DAY_MS)
    await refresh(first)
    await settle()
    expect([(await signIn(second)).status, requests]).toEqual([200, 2])
    await endpoint.close()
  })
})
