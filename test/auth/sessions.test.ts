// The life of a session: used, idle, ended by its owner, by administrators, and along with what it came from.
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { LiveApiSessions } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import { disableIdentity, enableIdentity } from '../../src/authentication/disabling.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { MfaPeople } from '../world/mfa.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

const MINUTE = 60_000

function own(token: string, at: TestController = world) {
  return at.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
}

async function isAlive(token: string): Promise<boolean> {
  return (await own(token)).status === 200
}

describe('a session', () => {
  it('is shown to itself with its token and its end', async () => {
    const { id, token } = await world.signIn({ name: 'looks at itself' })

    const { body } = await own(token)

    const now = new Date(world.clock.now()).toISOString()
    expect(body.data).toMatchObject({
      _links: { self: { href: `./api-sessions/${body.data.id}` }, sessions: {} },
      identity: { id, name: 'looks at itself', entity: 'identities' },
      identityId: id,
      token,
      ipAddress: '127.0.0.1',
      configTypes: [],
      authQueries: [],
      isMfaRequired: false,
      isMfaComplete: false,
      lastActivityAt: now,
      cachedLastActivityAt: now,
      expirationSeconds: 1800,
      expiresAt: new Date(world.clock.now() + 30 * MINUTE).toISOString(),
    })
    expect(body.data).not.toHaveProperty('owesTotp')
    expect(body.data).not.toHaveProperty('tokenHash')
  })

  it('lives as long as it is used', async () => {
    const world = await testController()
    const { token } = await world.signIn()
    const alive: boolean[] = []

    for (const minutes of [29, 29, 29, 30]) {
      world.clock.advance(minutes * MINUTE)
      alive.push((await own(token, world)).status === 200)
    }

    expect(alive).toEqual([true, true, true, false])
    await world.close()
  })

  it('shows its activity at once, and as stored once it is written', async () => {
    const { token } = await world.signIn()
    const begun = (await own(token)).body.data
    world.clock.advance(MINUTE)

    const used = (await own(token)).body.data
    await world.controller.auth.apiSessions.flush(world.system)
    const written = (await own(token)).body.data

    const now = new Date(world.clock.now()).toISOString()
    expect(used).toMatchObject({ cachedLastActivityAt: now, lastActivityAt: begun.lastActivityAt })
    expect(written).toMatchObject({ cachedLastActivityAt: now, lastActivityAt: now, updatedAt: now })
    expect(written.expiresAt).toBe(new Date(world.clock.now() + 30 * MINUTE).toISOString())
  })

  it('never shows an end that has passed while it is alive', async () => {
    const world = await testController()
    const { token } = await world.signIn()
    const ends: string[] = []

    for (const minutes of [20, 20, 20]) {
      world.clock.advance(minutes * MINUTE)
      ends.push((await own(token, world)).body.data.expiresAt)
    }

    const now = world.clock.now()
    expect(ends).toEqual([-10, 10, 30].map((minutes) => new Date(now + minutes * MINUTE).toISOString()))
    await world.close()
  })

  it('ends with a sign-out, and no other does', async () => {
    const person = await people.person()
    const [left, kept] = [await people.sessionOf(person), await people.sessionOf(person)]

    const response = await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token: left })

    expect(response.body.data).toEqual({})
    expect([await isAlive(left), await isAlive(kept)]).toEqual([false, true])
  })

  it('outlives the process, with what was known of it', async () => {
    const world = await testController()
    const theirs = await People.in(world)
    const token = await theirs.sessionOf(await theirs.person())
    world.clock.advance(MINUTE)
    const before = (await own(token, world)).body.data
    await world.stop()

    const again = await testController({ directory: world.directory, clock: world.clock })
    const after = await own(token, again)
    again.clock.advance(30 * MINUTE)
    const idle = await own(token, again)

    expect(after.status).toBe(200)
    expect(after.body.data.lastActivityAt).toBe(before.cachedLastActivityAt)
    expect(idle.status).toBe(401)
    await again.close()
  })

  it('that was idle over a restart is not taken up again', async () => {
    const world = await testController()
    const { token } = await world.signIn()
    await world.stop()
    world.clock.advance(31 * MINUTE)

    const again = await testController({ directory: world.directory, clock: world.clock })

    expect((await own(token, again)).status).toBe(401)
    await again.close()
  })
})

describe('taking away idle sessions', () => {
  it('leaves those that were used, written or not', async () => {
    const world = await testController()
    const idle = await world.signIn()
    const used = await world.signIn()
    world.clock.advance(20 * MINUTE)
    await own(used.token, world)
    world.clock.advance(20 * MINUTE)

    const endedCount = await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

    const rows = await world.controller.store.db.selectFrom('api_sessions').select('identityId').execute()
    expect(endedCount).toBe(1)
    expect(rows).toEqual([{ identityId: used.id }])
    expect([(await own(idle.token, world)).status, (await own(used.token, world)).status]).toEqual([401, 200])
    await world.close()
  })

  it('gets through however many are used and not written', async () => {
    const world = await testController({ settings: { 'session.timeout': '1m', 'session.activityFlush': '1h' } })
    const used = await Promise.all(Array.from({ length: 260 }, () => world.signIn()))
    const idle = await world.signIn()
    world.clock.advance(MINUTE - 1000)
    for (const { token } of used) await own(token, world)
    world.clock.advance(1000)

    const endedCount = await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

    expect(endedCount).toBe(1)
    expect((await own(idle.token, world)).status).toBe(401)
    expect((await own(used[0]?.token ?? '', world)).status).toBe(200)
    await world.close()
  })
})

it('deleting expired sessions reads none that is not due, however many live', async () => {
  const world = await testController({ settings: { 'session.maxAge': '1d' } })
  const people = await People.in(world)
  const token = await people.sessionOf(await people.person())
  const walks = vi.spyOn(LiveApiSessions.prototype, 'all')
  const reads = vi.spyOn(world.controller.store.db.getExecutor(), 'executeQuery')

  const endedCount = await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

  const rows = await Promise.all(reads.mock.results.map(async ({ value }) => (await value).rows))
  expect([endedCount, walks.mock.calls, rows.flat()]).toEqual([0, [], []])
  expect((await own(token, world)).status).toBe(200)
  vi.restoreAllMocks()
  await world.close()
})

it('a session does not end by its age because the clock was set, although its row is not written yet', async () => {
  const world = await testController({ settings: { 'session.timeout': '24h', 'session.maxAge': '1h' } })
  const people = await People.in(world)
  const token = await people.sessionOf(await people.person())
  const { termination } = world.controller.auth.apiSessions
  world.clock.set(24 * 60 * MINUTE)
  expect((await own(token, world)).status).toBe(200)

  expect(await termination.deleteExpired(world.system)).toBe(0)
  expect((await own(token, world)).status).toBe(200)
  world.clock.advance(60 * MINUTE)
  expect(await termination.deleteExpired(world.system)).toBe(1)
  await world.close()
})

it('taking away idle sessions gets through more of them than one transaction takes', async () => {
  const world = await testController()
  await Promise.all(Array.from({ length: 600 }, () => world.signIn()))
  world.clock.advance(30 * MINUTE)

  const endedCount = await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

  expect(endedCount).toBe(600)
  await world.close()
})

describe('the sessions of an identity', () => {
  const ends: Readonly<Record<string, (id: string) => Promise<unknown>>> = {
    'is disabled': (id) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0)),
    'is disabled for a while': (id) =>
      world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 5)),
    'is deleted': (id) => people.manage('DELETE', `/identities/${id}`),
  }

  it.each(Object.keys(ends))('end at once when it %s', async (what) => {
    const person = await people.person()
    const tokens = [await people.sessionOf(person), await people.sessionOf(person)]
    const stranger = await people.sessionOf(await people.person())

    await ends[what]?.(person.id)

    expect([await isAlive(tokens[0] ?? ''), await isAlive(tokens[1] ?? ''), await isAlive(stranger)]).toEqual([
      false,
      false,
      true,
    ])
    const left = await world.controller.store.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', person.id)
      .execute()
    expect(left).toEqual([])
  })

  it('do not come back when it is enabled again', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    await world.system.write((tx) => disableIdentity(world.controller.entities, tx, person.id, 0))

    await world.system.write((tx) => enableIdentity(world.controller.entities, tx, person.id))

    expect(await isAlive(token)).toBe(false)
    expect((await people.signIn(person)).status).toBe(200)
  })

  it('know at once what it has become', async () => {
    const { id, token } = await world.signIn()
    const list = () => world.send({ method: 'GET', path: `${MANAGEMENT}/identities`, token })
    const before = (await list()).status
    await people.manage('PATCH', `/identities/${id}`, { isAdmin: true, name: 'promoted' })
    const after = (await list()).status
    await people.manage('PATCH', `/identities/${id}`, { isAdmin: false })

    expect([before, after, (await list()).status]).toEqual([401, 200, 401])
  })

  it('that began with an authenticator end with it, and no other do', async () => {
    const person = await people.person()
    const { key, chain, authenticatorId } = await people.device()
    const [byPassword, byCertificate] = [
      await people.sessionOf(person),
      (await people.signInBy(at, { chain, key })).body.data.token,
    ]

    await people.manage('DELETE', `/authenticators/${person.authenticatorId}`)
    const first = [await isAlive(byPassword), await isAlive(byCertificate)]
    await people.manage('DELETE', `/authenticators/${authenticatorId}`)

    expect([...first, await isAlive(byCertificate)]).toEqual([false, true, false])
  })
})

describe('an auth policy', () => {
  it('that demands TOTP makes live sessions partial at their next request, and full again', async () => {
    const authPolicyId = await people.policy({})
    const token = await people.sessionOf(await people.person({ authPolicyId }))
    const identity = () => world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })
    const before = (await identity()).status
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireTotp: true } })
    const demanded = await identity()
    const view = (await own(token)).body.data
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireTotp: false } })

    expect([before, demanded.status, (await identity()).status]).toEqual([200, 401, 200])
    expect(demanded.body.error.cause.code).toBe('SECOND_FACTOR_REQUIRED')
    expect(view).toMatchObject({ isMfaRequired: true, isMfaComplete: false, authQueries: [{ typeId: 'MFA' }] })
  })

  it('takes effect when an identity is given another one', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)

    await people.manage('PATCH', `/identities/${person.id}`, {
      authPolicyId: await people.policy({ requireTotp: true }),
    })

    const response = await world.send({ method: 'GET', path: `${CLIENT}/services`, token })
    expect(response.body.error.cause.code).toBe('SECOND_FACTOR_REQUIRED')
  })
})

describe('the query for the second factor', () => {
  const common = { typeId: 'MFA', httpMethod: 'POST', httpUrl: './authenticate/mfa', minLength: 4, maxLength: 6 }
  const native = { ...common, provider: 'native', format: 'numeric', scopes: [] }
  const openziti = { ...common, provider: 'ziti', format: 'alphaNumeric', scopes: null }

  it.each([
    ['net-session', native],
    ['zt-session', openziti],
  ])('is in the dialect of a client that sends %s', async (header, query) => {
    const authPolicyId = await people.policy({ requireTotp: true })
    const { body } = await people.signIn(await people.person({ authPolicyId }))
    const headers = { [header]: body.data.token }

    const response = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, headers })

    expect(response.body.data.authQueries).toEqual([query])
  })

  it.each([
    ['nothing', {}, {}, native],
    ['a client of the peer', {}, { sdkInfo: { type: 'ziti-sdk-golang' } }, openziti],
    ['another client', {}, { sdkInfo: { type: 'some-sdk' } }, native],
    ['a session header that says otherwise', { 'net-session': 'x' }, { sdkInfo: { type: 'ziti-sdk-c' } }, native],
  ])('is, at sign-in, in the words of %s', async (_what, headers, info, query) => {
    const { username, password } = await people.person({ authPolicyId: await people.policy({ requireTotp: true }) })
    const path = `${CLIENT}/authenticate?method=password`

    const response = await world.send({ method: 'POST', path, headers, body: { username, password, ...info } })

    expect(response.body.data.authQueries).toEqual([query])
  })

  it('is, without either, in the words of the listener', async () => {
    const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management'], dialect: 'openziti' }]
    const world = await testController({ settings: { listeners } })
    const theirs = await People.in(world)
    const at = await world.listen()
    const device = await theirs.device({ authPolicyId: await theirs.policy({ requireTotp: true }) })

    const { body, headers } = await theirs.signInBy(at, device)

    expect(body.data.authQueries).toEqual([openziti])
    expect(headers.server).toMatch(/^ziti-controller/)
    await world.close()
  })
})

describe('the list of sessions', () => {
  const list = (token: string, filter = '') =>
    world.send({ method: 'GET', path: `${MANAGEMENT}/api-sessions?limit=500&filter=${filter}`, token })

  it('shows administrators all of them, without any token but their own', async () => {
    const admin = await world.admin()
    const { id } = await world.signIn()

    const { body } = await list(admin)

    const readView = new Map(body.data.map((session: { identityId: string }) => [session.identityId, session]))
    expect(readView.get(id)).toMatchObject({ token: null, authQueries: [], isMfaRequired: false })
    const tokens = body.data.flatMap(({ token }: { token: string | null }) => token ?? [])
    expect(tokens).toEqual([admin])
  })

  it.each([
    ['net-session', { provider: 'native', format: 'numeric' }, null],
    ['zt-session', { provider: 'ziti', format: 'alphaNumeric' }, '00000000-0000-0000-0000-000000000000'],
  ])('shows administrators the factors that each of them owes, in the dialect of %s', async (header, words, token) => {
    const signer = await new Issuer().trustedBy(people)
    const authPolicyId = await people.policy({ requireTotp: true, requireExtJwtSigner: signer })
    const { id } = (await people.signIn(await people.person({ authPolicyId }))).body.data
    const headers = { [header]: people.token }

    const path = `${MANAGEMENT}/api-sessions`
    const one = await world.send({ method: 'GET', path: `${path}/${id}`, headers })
    const all = await world.send({ method: 'GET', path: `${path}?filter=id%20%3D%20%22${id}%22`, headers })

    for (const session of [one.body.data, ...all.body.data]) {
      expect(session).toMatchObject({ id, token, isMfaRequired: true })
      expect(session).not.toHaveProperty('expiresAt')
      expect(session.authQueries).toMatchObject([
        { typeId: 'MFA', ...words },
        { typeId: 'EXT-JWT', id: signer },
      ])
    }
    expect(all.body.data).toHaveLength(1)
  })

  it('shows administrators no factor that a session has passed', async () => {
    const { person, session } = await new MfaPeople(world, people).enrolled()
    const { id } = await session.own()
    const { id: partial } = (await people.signIn(person)).body.data

    const queries = async (id: string) => (await people.manage('GET', `/api-sessions/${id}`)).authQueries

    expect(await queries(id)).toEqual([])
    expect(await queries(partial)).toMatchObject([{ typeId: 'MFA' }])
  })

  it('is for administrators only, as is each of them, even the own one', async () => {
    const { token } = await world.signIn()
    const ids = [(await own(token)).body.data.id, (await own((await world.signIn()).token)).body.data.id, 'nothing']
    const one = (id: string) => world.send({ method: 'GET', path: `${MANAGEMENT}/api-sessions/${id}`, token })

    const refused = [await list(token), ...(await Promise.all(ids.map(one)))]

    for (const { status, body } of refused) expect([status, body.error.cause.code]).toEqual([401, 'PERMISSION_DENIED'])
  })

  it('shows administrators one of them by its id', async () => {
    const { id } = (await own((await world.signIn()).token)).body.data

    const view = await world.send({ method: 'GET', path: `${MANAGEMENT}/api-sessions/${id}`, token: people.token })
    const missing = await world.send({ method: 'GET', path: `${MANAGEMENT}/api-sessions/nothing`, token: people.token })

    expect(view.body.data).toMatchObject({ id, token: null })
    expect(missing.status).toBe(404)
  })

  it.each(['token', 'tokenHash'])('cannot be asked about %s', async (name) => {
    const response = await list(people.token, encodeURIComponent(`${name} != ""`))

    expect(response.body.error.code).toBe('INVALID_FILTER')
  })

  it('can be asked for those of one identity', async () => {
    const { id } = await world.signIn()

    const { body } = await list(people.token, encodeURIComponent(`identity = "${id}"`))

    expect(body.data).toHaveLength(1)
  })
})

describe('ending the session of another', () => {
  it('is for administrators', async () => {
    const victim = await world.signIn()
    const { id } = (await own(victim.token)).body.data
    const path = `${MANAGEMENT}/api-sessions/${id}`
    const { token } = await world.signIn()

    const refused = await world.send({ method: 'DELETE', path, token })
    const before = await isAlive(victim.token)
    const ended = await world.send({ method: 'DELETE', path, token: people.token })
    const again = await world.send({ method: 'DELETE', path, token: people.token })

    expect([refused.status, refused.body.error.code]).toEqual([403, 'FORBIDDEN'])
    expect([before, ended.status, await isAlive(victim.token), again.status]).toEqual([true, 200, false, 404])
  })
})
