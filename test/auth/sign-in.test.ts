// Sign-in by every method, under every flag of an auth policy, in every state of an identity.
import { beforeAll, describe, expect, it } from 'vitest'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { flow } from '../../src/authentication/sign-in/flow.ts'
import { toCertificatePem } from '../../src/pki/certificates.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { PASSWORD, People, type PolicyWords } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

const MINUTE = 60_000

const policies: Readonly<Record<string, PolicyWords>> = {
  'that allows everything': {},
  'closed to passwords': { updb: { allowed: false } },
  'closed to certificates': { cert: { allowed: false } },
  'closed to external tokens': { extJwt: { allowed: false } },
  'that minds expired certificates': { cert: { allowExpiredCerts: false } },
  'that locks after one failure': { updb: { maxAttempts: 1 } },
  'that demands TOTP': { requireTotp: true },
}

const states: Readonly<Record<string, { apply(id: string): Promise<unknown>; isIn: boolean }>> = {
  enabled: { apply: async () => {}, isIn: true },
  disabled: {
    apply: (id) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
    isIn: false,
  },
  'disabled for a while': {
    apply: (id) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 5)),
    isIn: false,
  },
  'disabled until a while ago': {
    apply: async (id) => {
      await world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 1))
      world.clock.advance(MINUTE)
    },
    isIn: true,
  },
  deleted: { apply: (id) => people.manage('DELETE', `/identities/${id}`), isIn: false },
}

const methods = {
  async password(authPolicyId: string) {
    const person = await people.person({ authPolicyId })
    return { id: person.id, signIn: () => people.signIn(person) }
  },
  async cert(authPolicyId: string) {
    const device = await people.device({ authPolicyId })
    return { id: device.id, signIn: () => people.signInBy(at, device) }
  },
  async 'ext-jwt'(authPolicyId: string) {
    const id = await people.identity({ authPolicyId })
    const headers = { authorization: 'Bearer some.external.token' }
    const path = `${CLIENT}/authenticate?method=ext-jwt`
    return { id, signIn: () => world.send({ method: 'POST', path, body: {}, headers }) }
  },
} as const

function isOpen(method: string, policy: string): boolean {
  if (method === 'password') return policy !== 'closed to passwords'
  return method === 'cert' && policy !== 'closed to certificates'
}

const cases = Object.keys(methods).flatMap((method) =>
  Object.keys(policies).flatMap((policy) => Object.keys(states).map((state) => [method, policy, state] as const)),
)

describe('signing in', () => {
  it.each(cases)('by %s under a policy %s, as an identity that is %s', async (method, policy, state) => {
    const authPolicyId = await people.policy(policies[policy] ?? {})
    const { id, signIn } = await methods[method as keyof typeof methods](authPolicyId)
    await states[state]?.apply(id)
    const isAdmitted = isOpen(method, policy) && states[state]?.isIn === true

    const response = await signIn()

    expect(response.status).toBe(isAdmitted ? 200 : 401)
    if (!isAdmitted) {
      expect(response.body.error).toEqual({
        code: 'INVALID_AUTH',
        message: 'Signing in failed.',
        requestId: expect.any(String),
      })
    } else {
      const owesTotp = policy === 'that demands TOTP'
      expect(response.body.data).toMatchObject({ identityId: id, isMfaRequired: owesTotp, isMfaComplete: false })
      expect(response.body.data.authQueries).toHaveLength(owesTotp ? 1 : 0)
    }
  })

  it('has a step for every method that says whether the policy is open to it', () => {
    const always = Object.values(flow).map((steps) => steps.map((step) => step.name))

    expect(Object.keys(flow)).toEqual(['password', 'cert', 'ext-jwt'])
    for (const names of always)
      expect(names).toEqual(expect.arrayContaining(['requireEnabledIdentity', 'requireAllowedMethod']))
  })
})

describe('a refused sign-in', () => {
  it('reads the same whatever was wrong', async () => {
    const person = await people.person()
    const closed = await people.person({ authPolicyId: await people.policy({ updb: { allowed: false } }) })
    const disabled = await people.person()
    await world.system.write((tx) => disableIdentity(world.controller.entities, tx, disabled.id, 0))

    const responses = await Promise.all([
      people.signIn({ username: 'unknown-user', password: PASSWORD }),
      people.signIn({ ...person, password: 'wrong horse' }),
      people.signIn(closed),
      people.signIn(disabled),
    ])

    const errors = responses.map(({ body }) => ({ ...body.error, requestId: '' }))
    expect(new Set(errors.map((error) => JSON.stringify(error))).size).toBe(1)
    expect(responses.map(({ headers }) => headers['net-session'])).toEqual(responses.map(() => undefined))
  })

  it.each([
    ['without method', '', {}, 'method'],
    ['by a method that does not exist', '?method=magic', {}, 'method'],
    ['without body', '?method=password', undefined, 'username'],
    ['without password', '?method=password', { username: 'jane.doe' }, 'password'],
    ['without username', '?method=password', { password: 'something' }, 'username'],
    ['with a short username', '?method=password', { username: 'abc', password: 'something' }, 'username'],
    ['with a long username', '?method=password', { username: 'a'.repeat(101), password: 'something' }, 'username'],
    ['with a short password', '?method=password', { username: 'jane.doe', password: '1234' }, 'password'],
    ['with a long password', '?method=password', { username: 'jane.doe', password: 'a'.repeat(101) }, 'password'],
  ])('%s is told what is missing', async (_what, query, body, field) => {
    for (const base of [CLIENT, MANAGEMENT]) {
      const request = { method: 'POST', path: `${base}/authenticate${query}` }
      const response = await world.send(body === undefined ? request : { ...request, body })

      expect(response.status).toBe(400)
      expect(response.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field } })
      if (field === 'password') expect(response.body.error.cause.value ?? '').toBe('')
    }
  })

  it.each([
    ['a number as username', { username: 5, password: 'something' }],
    ['a list as body', [1]],
    ['environment that is not an object', { username: 'jane.doe', password: 'something', envInfo: 'linux' }],
  ])('with %s cannot be read', async (_what, body) => {
    const response = await world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=password`, body })

    expect(response.status).toBe(400)
    expect(response.body.error.code).toBe('COULD_NOT_PARSE_BODY')
  })

  it('by certificate needs one', async () => {
    const response = await world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=cert` })

    expect(response.status).toBe(401)
    expect(response.body.error.code).toBe('INVALID_AUTH')
  })
})

describe('signing in by username', () => {
  it('disregards its case', async () => {
    const person = await people.person()

    const response = await people.signIn({ ...person, username: person.username.toUpperCase() })

    expect(response.status).toBe(200)
  })

  it('says nothing of certificates', async () => {
    const { body } = await people.signIn(await people.person())

    expect(body.data).toMatchObject({ isCertExtendable: false, improperClientCertChain: false, authQueries: [] })
  })
})

describe('a sign-in', () => {
  it('stores what the client reports of itself, and the config types it asks for by name as ids', async () => {
    const person = await people.person()
    const reported = {
      envInfo: { os: 'linux', arch: 'amd64' },
      sdkInfo: { type: 'some-sdk', version: '1' },
      configTypes: ['intercept.v1', 'no such type'],
    }

    const { body } = await people.signIn(person, reported)

    expect(body.data.configTypes).toEqual(['g7cIWbcGg'])
    expect(await people.manage('GET', `/identities/${person.id}`)).toMatchObject({
      envInfo: reported.envInfo,
      sdkInfo: reported.sdkInfo,
      hasApiSession: true,
    })
  })

  it('takes all config types by one word, whatever stands beside it', async () => {
    const { body } = await people.signIn(await people.person(), { configTypes: ['all', 'intercept.v1'] })

    expect(body.data.configTypes).toEqual(['all'])
  })

  it('is good on both APIs', async () => {
    const token = await people.sessionOf(await people.person())

    for (const base of [CLIENT, MANAGEMENT]) {
      const response = await world.send({ method: 'GET', path: `${base}/current-identity`, token })
      expect(response.status).toBe(200)
    }
  })

  it('does not look at the session that is sent along', async () => {
    const person = await people.person()
    const path = `${CLIENT}/authenticate?method=password`
    const { username, password } = person

    const response = await world.send({
      method: 'POST',
      path,
      token: '00000000-0000-4000-8000-000000000000',
      body: { username, password },
    })

    expect(response.status).toBe(200)
  })
})

describe('a certificate', () => {
  it('that has expired gets in where the policy does not mind', async () => {
    const later = await testController()
    const overTls = await later.listen()
    const theirs = await People.in(later)
    const open = await theirs.device({ authPolicyId: await theirs.policy({}) })
    const strict = await theirs.device({ authPolicyId: await theirs.policy({ cert: { allowExpiredCerts: false } }) })
    const before = [await theirs.signInBy(overTls, open), await theirs.signInBy(overTls, strict)]
    later.clock.advance(366 * 24 * 60 * MINUTE)

    const after = [await theirs.signInBy(overTls, open), await theirs.signInBy(overTls, strict)]

    expect(before.map(({ status }) => status)).toEqual([200, 200])
    expect(after.map(({ status }) => status)).toEqual([200, 401])
    await later.close()
  })

  it('that is not in force yet gets in where the policy does not mind', async () => {
    const earlier = await testController()
    const overTls = await earlier.listen()
    const theirs = await People.in(earlier)
    const open = await theirs.device({ authPolicyId: await theirs.policy({}) })
    const strict = await theirs.device({ authPolicyId: await theirs.policy({ cert: { allowExpiredCerts: false } }) })
    // A certificate is in force a minute before it is issued.
    earlier.clock.advance(-61_000)

    const responses = [await theirs.signInBy(overTls, open), await theirs.signInBy(overTls, strict)]

    expect(responses.map(({ status }) => status)).toEqual([200, 401])
    await earlier.close()
  })

  it('gets in whatever it was made to be used for', async () => {
    const { certificate, key } = world.controller.authority.server
    const id = await people.identity()
    const certPem = toCertificatePem(certificate)
    await people.manage('POST', '/authenticators', { identityId: id, method: 'cert', certPem })
    const keyPem = key.export({ type: 'pkcs8', format: 'pem' }) as string
    const path = `${CLIENT}/authenticate?method=cert`

    const response = await callOverTls(at.url, at.rootPem, { method: 'POST', path, cert: certPem, key: keyPem })

    expect(response.body.data).toMatchObject({ identityId: id, improperClientCertChain: true })
  })

  it('is shown with whether it led to a root at its last sign-in', async () => {
    const device = await people.device()
    const [alone = ''] = device.chain.split(/(?<=-----END CERTIFICATE-----\n)/)
    const readAfter = async (chain: string) => {
      expect((await people.signInBy(at, { ...device, chain })).status).toBe(200)
      return (await people.manage('GET', `/authenticators/${device.authenticatorId}`)).lastAuthResolvedToRoot
    }

    const values: boolean[] = []
    for (const chain of [alone, device.chain, device.chain, alone]) values.push(await readAfter(chain))

    expect(values).toEqual([false, true, true, false])
  })

  it('ends to be a way in with its authenticator', async () => {
    const device = await people.device()
    await people.manage('DELETE', `/authenticators/${device.authenticatorId}`)

    const response = await people.signInBy(at, device)

    expect(response.status).toBe(401)
  })

  it('is one of many that an identity can have', async () => {
    const first = await people.device()
    const expiresAt = new Date(world.clock.now() + MINUTE).toISOString()
    const { id } = await people.manage('POST', '/enrollments', { identityId: first.id, method: 'ott', expiresAt })
    const { token } = await people.manage('GET', `/enrollments/${id}`)
    const key = await clientKey('second')
    const chain = (await people.enroll(token, key.csr)).body.data.cert

    const responses = [await people.signInBy(at, first), await people.signInBy(at, { chain, key })]

    expect(responses.map(({ body }) => body.data.identityId)).toEqual([first.id, first.id])
  })

  it.each(['P-256', 'P-384', 'P-521', 'RSA-2048'] as const)('may have a key of the kind %s', async (kind) => {
    const id = await people.identity({ enrollment: { ott: true } })
    const { enrollment } = await people.manage('GET', `/identities/${id}`)
    const key = await clientKey(id, kind)
    const chain = (await people.enroll(enrollment.ott.token, key.csr)).body.data.cert

    const response = await people.signInBy(at, { chain, key })

    expect(response.status).toBe(200)
  })
})
