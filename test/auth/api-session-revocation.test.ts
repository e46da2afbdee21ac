// API sessions end when what they rest on goes: the method, the signer and its key, the external id. And they have a greatest age.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { listMeasurements } from '../../server/monitoring/measurements.ts'
import type { ApiSessionIdentity } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { authPolicies } from '../../src/definitions/resources/auth-policies.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { newId } from '../../src/foundation/ids.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { authorityFile, type Endpoint, json, openEndpoint } from '../world/endpoints.ts'
import { createIssuerKey, Issuer, toJwk } from '../world/issuers.ts'
import { settleInOneCommit } from '../world/one-commit.ts'
import { type Device, People, type Person } from '../world/people.ts'

const DAY = 24 * 60 * 60_000

let world: TestController
let people: People
let at: { url: string; rootPem: string }

beforeEach(async () => {
  world = await testController()
  at = await world.listen()
  people = await People.in(world)
})
afterEach(() => world.close())

const isAlive = async (token: string) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status === 200

const areAlive = (...tokens: string[]) => Promise.all(tokens.map((token) => isAlive(token)))

/** Replaces the controller by a new one with these settings. */
async function restartWith(settings: Readonly<Record<string, string | number>>): Promise<void> {
  await world.close()
  world = await testController({ settings })
  at = await world.listen()
  people = await People.in(world)
}

async function sessionByCertificate(device: Device): Promise<string> {
  const { body } = await people.signInBy(at, device)
  expect(body.error).toBeUndefined()
  return body.data.token
}

async function sessionByToken(issuer: Issuer, subject: string): Promise<string> {
  const headers = { authorization: `Bearer ${issuer.token(world, subject)}` }
  const { body } = await world.send({
    method: 'POST',
    path: `${CLIENT}/authenticate?method=ext-jwt`,
    body: {},
    headers,
  })
  expect(body.error).toBeUndefined()
  return body.data.token
}

/** Allows or forbids methods in an auth policy. */
const allow = (policyId: string, primary: object) => people.manage('PATCH', `/auth-policies/${policyId}`, { primary })

/** Deletes what is revoked, as the controller does in the background. */
const deleteRevoked = () => world.controller.auth.apiSessions.termination.deleteRevoked(world.system)

const countRows = async (identityId: string) =>
  (
    await world.controller.store.db
      .selectFrom('api_sessions')
      .select('id')
      .where('identityId', '=', identityId)
      .execute()
  ).length

const countRevocations = async () =>
  (await world.controller.store.db.selectFrom('api_session_revocations').select('id').execute()).length

describe('an auth policy that comes to forbid a method', () => {
  it('ends the sessions that began by it, and no others', async () => {
    const authPolicyId = await people.policy({})
    const [person, device] = [await people.person({ authPolicyId }), await people.device({ authPolicyId })]
    const other = await people.sessionOf(await people.person())
    const tokens = [await people.sessionOf(person), await sessionByCertificate(device), other]

    await allow(authPolicyId, { updb: { allowed: false } })
    expect(await areAlive(...tokens)).toEqual([false, true, true])
    expect(await countRows(person.id)).toBe(0)
    await allow(authPolicyId, { cert: { allowed: false } })
    expect(await areAlive(...tokens)).toEqual([false, false, true])
  })

  it('ends those of the signers that it does not list any more', async () => {
    const [kept, dropped] = [new Issuer(), new Issuer()]
    const [keptId, droppedId] = [await kept.trustedBy(people), await dropped.trustedBy(people)]
    const authPolicyId = await people.policy({ extJwt: { allowedSigners: [keptId, droppedId] } })
    await people.identity({ externalId: 'subject', authPolicyId })
    const tokens = [await sessionByToken(kept, 'subject'), await sessionByToken(dropped, 'subject')]

    await allow(authPolicyId, { extJwt: { allowedSigners: [keptId] } })
    expect(await areAlive(...tokens)).toEqual([true, false])
    await allow(authPolicyId, { extJwt: { allowed: false } })
    expect(await areAlive(...tokens)).toEqual([false, false])
  })

  it('does not bring them back when it allows the method again', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    const token = await people.sessionOf(person)
    await allow(authPolicyId, { updb: { allowed: false } })
    await allow(authPolicyId, { updb: { allowed: true } })

    expect(await isAlive(token)).toBe(false)
    expect(await isAlive(await people.sessionOf(person))).toBe(true)
  })

  it('ends the session of the administrator who changes it, after the response', async () => {
    const authPolicyId = await people.policy({})
    const token = await people.sessionOf(await people.person({ authPolicyId, isAdmin: true }))
    const path = `${MANAGEMENT}/auth-policies/${authPolicyId}`
    const { status } = await world.send({
      method: 'PATCH',
      path,
      token,
      body: { primary: { updb: { allowed: false } } },
    })

    expect([status, await isAlive(token)]).toEqual([200, false])
  })

  it('ends no session by any other change', async () => {
    const authPolicyId = await people.policy({})
    const token = await people.sessionOf(await people.person({ authPolicyId }))
    await allow(authPolicyId, { updb: { minPasswordLength: 12 }, cert: { allowExpiredCerts: false } })

    expect(await isAlive(token)).toBe(true)
    expect(await countRevocations()).toBe(0)
  })

  it('refuses what a session began by it does in the same commit, and a sign-in by it', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    const token = await people.sessionOf(person)
    const session = world.controller.auth.apiSessions.use(token, world.clock.now())
    const { contexts, auth, entities } = world.controller
    const caller = {
      kind: 'identity',
      identityId: person.id,
      identityName: 'x',
      isAdmin: false,
      rights: Rights.none,
    } as const
    const own = contexts.create({ ...caller, apiSessionId: session!.id, isPartial: false })
    const policy = auth.policies.get(authPolicyId)
    const forbidden = { ...policy.primary, updb: { ...policy.primary.updb, allowed: false } }
    const settled = await settleInOneCommit(world, () => [
      world.system.write((tx) => entities.update(tx, authPolicies, policy, { primary: forbidden })),
      own.write(async () => {}),
    ])

    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(await isAlive(token)).toBe(false)
  })
})

describe('an identity that is moved', () => {
  it('to a policy that forbids the method loses the sessions that began by it', async () => {
    const authPolicyId = await people.policy({})
    const forbidding = await people.policy({ updb: { allowed: false } })
    const person: Person = await people.person({ authPolicyId })
    const token = await people.sessionOf(person)
    await people.manage('PATCH', `/identities/${person.id}`, { authPolicyId: await people.policy({}) })
    expect(await isAlive(token)).toBe(true)
    await people.manage('PATCH', `/identities/${person.id}`, { authPolicyId: forbidding })
    expect(await isAlive(token)).toBe(false)
  })

  it('to another external id loses the sessions that rest on it, and keeps the others', async () => {
    const issuer = new Issuer()
    await issuer.trustedBy(people)
    const person = await people.person({ externalId: 'before' })
    const tokens = [await sessionByToken(issuer, 'before'), await people.sessionOf(person)]
    await people.manage('PATCH', `/identities/${person.id}`, { name: 'renamed' })
    expect(await areAlive(...tokens)).toEqual([true, true])
    await people.manage('PATCH', `/identities/${person.id}`, { externalId: 'after' })
    expect(await areAlive(...tokens)).toEqual([false, true])
    const successor = await people.identity({ externalId: 'before' })
    expect(successor).not.toBe(person.id)
  })
})

describe('a signer ends the sessions of its tokens', () => {
  it.each([
    ['its certificate is replaced', () => ({ certPem: new Issuer().certificate() })],
    ['its audience changes', () => ({ audience: 'another' })],
    ['its claim changes', () => ({ claimsProperty: 'email' })],
    ['it is disabled', () => ({ enabled: false })],
  ])('if %s', async (_what, toChange) => {
    const [issuer, other] = [new Issuer(), new Issuer()]
    const id = await issuer.trustedBy(people)
    await other.trustedBy(people)
    await people.identity({ externalId: 'subject' })
    const tokens = [await sessionByToken(issuer, 'subject'), await sessionByToken(other, 'subject')]
    await people.manage('PATCH', `/external-jwt-signers/${id}`, { name: 'renamed' })
    expect(await areAlive(...tokens)).toEqual([true, true])
    await people.manage('PATCH', `/external-jwt-signers/${id}`, toChange())
    expect(await areAlive(...tokens)).toEqual([false, true])
  })

  it('once a refresh succeeds whose key set lacks the key, and not if it has one more, or fails', async () => {
    const authority = authorityFile()
    await restartWith({ 'signers.caFile': authority.path })
    const issuer = new Issuer()
    const [first, second] = [issuer.key, createIssuerKey()]
    const endpoint = await openEndpoint(json({ keys: [toJwk(first)] }))
    const id = await issuer.trustedBy(people, { jwksEndpoint: `${endpoint.url}/jwks` })
    await people.identity({ externalId: 'subject' })
    const refresh = async (respond: Endpoint['respond']) => {
      endpoint.respond = respond
      world.clock.advance(11 * 60_000)
      await world.controller.auth.signers.keyRefresher.refreshDue(world.controller.contexts)
      return (await people.manage('GET', `/external-jwt-signers/${id}`)).keyStatus.failure
    }
    try {
      const token = await sessionByToken(issuer, 'subject')
      expect(await refresh(json({ keys: [toJwk(second), toJwk(first)] }))).toBeNull()
      issuer.key = second
      const later = await sessionByToken(issuer, 'subject')
      expect(await refresh(json({ keys: [] }))).toMatch(/no key/)
      expect(await areAlive(token, later)).toEqual([true, true])
      expect(await refresh(json({ keys: [toJwk(second)] }))).toBeNull()
      expect(await areAlive(token, later)).toEqual([false, true])
    } finally {
      await endpoint.close()
      authority.remove()
    }
  })

  it('if its key set has another address', async () => {
    const issuer = new Issuer()
    const id = await issuer.trustedBy(people)
    await people.identity({ externalId: 'subject' })
    const token = await sessionByToken(issuer, 'subject')
    await people.manage('PATCH', `/external-jwt-signers/${id}`, {
      certPem: null,
      kid: null,
      jwksEndpoint: 'https://localhost/jwks',
    })

    expect(await isAlive(token)).toBe(false)
  })
})

describe('thousands of sessions that a change revokes', () => {
  const MANY = 2_000

  /** A policy with people who have so many sessions altogether. */
  async function crowd() {
    const authPolicyId = await people.policy({})
    const { apiSessions } = world.controller.auth
    const tokens: string[] = []
    const identityIds: string[] = []
    for (let count = 0; count < MANY; count += 400) {
      const id = await people.identity({ authPolicyId })
      identityIds.push(id)
      await world.system.write(async (tx) => {
        const identity = (await get(tx, identities, id)) as unknown as ApiSessionIdentity
        const session = { identity, authenticatorId: 'a', ipAddress: '', configTypes: [] }
        for (let number = 0; number < 400; number++) {
          const created = await apiSessions.insert(tx, session, { method: 'password', audit: 'none' })
          tokens.push(apiSessions.deriveToken(created.id))
        }
      })
    }
    return { authPolicyId, tokens, identityIds }
  }

  const countAll = async () =>
    (await world.controller.store.db.selectFrom('api_sessions').select('id').execute()).length

  it('are invalid at once, and are deleted in steps, between which others are served', async () => {
    const { authPolicyId, tokens } = await crowd()
    const before = await countAll()
    await allow(authPolicyId, { updb: { allowed: false } })
    const left = await countAll()

    expect(before - left).toBeLessThanOrEqual(100)
    expect(left).toBeGreaterThan(1_000)
    const samples = tokens.filter((_token, index) => index % 97 === 0)
    expect((await areAlive(...samples)).some(Boolean)).toBe(false)
    expect(world.controller.auth.apiSessions.listIds()).toHaveLength(left - (await countRevoked()))
    const { commits } = world.controller.store.stats()
    await deleteRevoked()
    expect(world.controller.store.stats().commits - commits).toBeGreaterThanOrEqual(left / 100 - 1)
    expect(await countRevoked()).toBe(0)
    expect(await countRevocations()).toBe(0)
    expect(await isAlive(people.token)).toBe(true)
  }, 60_000)

  it('are shown nowhere any more, before their rows are deleted', async () => {
    const { authPolicyId, identityIds } = await crowd()
    const manage = async (path: string, method = 'GET') =>
      (await world.send({ method, path: `${MANAGEMENT}${path}`, token: people.token })).body
    const { data: before } = await manage(
      `/api-sessions?filter=${encodeURIComponent(`identity = "${identityIds[4]}"`)}`,
    )
    await allow(authPolicyId, { updb: { allowed: false } })
    const [lastId] = before.slice(-1).map(({ id }: { id: string }) => id)
    expect(await countAll()).toBeGreaterThan(1_000)
    expect(await countRows(identityIds[4] ?? '')).toBe(400)

    const others = world.controller.auth.apiSessions.listIds().sort()
    const listings = [
      '?limit=10',
      '?limit=10&sort=ipAddress',
      '?limit=-1',
      '?filter=true',
      '?filter=mfaComplete%20=%20false',
    ]
    for (const query of listings) {
      const { data, meta } = await manage(`/api-sessions${query}`)
      expect([query, data.map(({ id }: { id: string }) => id).sort()]).toEqual([query, others])
      if (query !== '?limit=-1') expect([query, meta.pagination.totalCount]).toEqual([query, others.length])
    }
    const { data: ofIdentity } = await manage(
      `/api-sessions?filter=${encodeURIComponent(`identity = "${identityIds[4]}"`)}`,
    )
    expect(ofIdentity).toEqual([])
    expect((await manage('/summary')).data.apiSessions).toBe(others.length)
    expect((await manage(`/identities/${identityIds[4]}`)).data.hasApiSession).toBe(false)
    expect((await manage(`/api-sessions/${lastId}`)).error.code).toBe('NOT_FOUND')
    expect((await manage(`/api-sessions/${lastId}`, 'DELETE')).error.code).toBe('NOT_FOUND')
  }, 60_000)

  it('are deleted after their service sessions, of which one transaction deletes a few hundred', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    await people.sessionOf(person)
    const { store, auth } = world.controller
    const [{ id: apiSessionId } = { id: '' }] = auth.apiSessions.listOfIdentity(person.id)
    await people.manage('POST', '/services', { name: 'dialed', encryptionRequired: true })
    const { id: serviceId } = await store.db.selectFrom('services').select('id').executeTakeFirstOrThrow()
    // Rows as they are after many sign-ins: one API session has at most two of a service.
    const others = [...Array(500).keys()].map((number) => ({ id: `service-${number}`, number }))
    await world.system.write(async (tx) => {
      const service = await tx.db
        .selectFrom('services')
        .selectAll()
        .where('id', '=', serviceId)
        .executeTakeFirstOrThrow()
      for (const { id, number } of others) {
        const { n: _, ...copy } = service
        await tx.db
          .insertInto('services')
          .values({ ...copy, id, name: id })
          .execute()
        const own = { apiSessionId, identityId: person.id, serviceId: id, createdAt: 0, updatedAt: 0, tags: '{}' }
        for (const type of ['Dial', 'Bind'] as const) {
          const opaqueToken = `${type}-${number}`
          await tx.db
            .insertInto('sessions')
            .values({ ...own, id: opaqueToken, opaqueToken, hasSignedToken: 0, type })
            .execute()
        }
      }
    })
    const countServiceSessions = async () => (await store.db.selectFrom('sessions').select('id').execute()).length
    await allow(authPolicyId, { updb: { allowed: false } })
    expect([await countServiceSessions(), auth.apiSessions.isSignedIn(person.id, world.clock.now())]).toEqual([
      1_000,
      false,
    ])
    const manage = (path: string, method: 'GET' | 'DELETE' = 'GET') => people.ask(method, path)
    for (const query of [
      '?limit=10',
      '?filter=type%20=%20%22Bind%22',
      `?filter=${encodeURIComponent('id = "Bind-7"')}`,
    ]) {
      const { data, meta } = (await manage(`/sessions${query}`)).body
      expect([query, data, meta.pagination.totalCount]).toEqual([query, [], 0])
    }
    expect((await manage('/summary')).body.data.sessions).toBe(0)
    const measurements = listMeasurements(world.controller, world.system, { delayMs: 0 })
    const counts = (await measurements.find(({ name }) => name === 'records')?.read()) ?? []
    expect(counts).toContainEqual({ labels: { resource: 'sessions' }, value: 0 })
    for (const [path, method] of [
      ['/sessions/Bind-7', 'GET'],
      ['/sessions/Bind-7', 'DELETE'],
      ['/sessions/Bind-7/route-path', 'GET'],
    ] as const)
      expect([path, method, (await manage(path, method)).status]).toEqual([path, method, 404])

    const { commits } = store.stats()
    await deleteRevoked()
    expect(store.stats().commits - commits).toBeGreaterThanOrEqual(4)
    expect([await countServiceSessions(), await countRows(person.id)]).toEqual([0, 0])
  })

  it('stay revoked after a restart in between, also if the method is allowed again, or the identity moved', async () => {
    const { authPolicyId, tokens, identityIds } = await crowd()
    await allow(authPolicyId, { updb: { allowed: false } })
    await allow(authPolicyId, { updb: { allowed: true } })
    const left = await countAll()
    await people.manage('PATCH', `/identities/${identityIds.at(-1)}`, { authPolicyId: 'default' })
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })
    at = await world.listen()

    expect(left).toBeGreaterThan(1_000)
    expect((await areAlive(...tokens.filter((_token, index) => index % 97 === 0))).some(Boolean)).toBe(false)
    await deleteRevoked()
    expect(await countRevocations()).toBe(0)
    expect(await countAll()).toBeLessThan(20)
  }, 60_000)

  /** Counts the sessions that memory holds as valid, without a request, which would delete revoked rows meanwhile. */
  const countAlive = (tokens: readonly string[]) => {
    const { apiSessions } = world.controller.auth
    return tokens.filter((token) => apiSessions.use(token, world.clock.now())).length
  }

  /** Forbids passwords in a policy, and moves identities to another one, in one commit. */
  async function forbidAndMove(
    authPolicyId: string,
    identityIds: readonly string[],
    order: 'forbid first' | 'move first',
  ) {
    const { auth, entities } = world.controller
    const policy = auth.policies.get(authPolicyId)
    const forbidden = { ...policy.primary, updb: { ...policy.primary.updb, allowed: false } }
    const other = await people.policy({})
    const forbid = () => world.system.write((tx) => entities.update(tx, authPolicies, policy, { primary: forbidden }))
    const move = () =>
      world.system.write(async (tx) => {
        for (const id of identityIds)
          await entities.update(tx, identities, await get(tx, identities, id), { authPolicyId: other })
      })
    await settleInOneCommit(world, () => (order === 'forbid first' ? [forbid(), move()] : [move(), forbid()]))
  }

  it('stay revoked after a restart also if their identity moves to another policy in the same commit', async () => {
    const { authPolicyId, tokens, identityIds } = await crowd()
    await forbidAndMove(authPolicyId, identityIds, 'forbid first')
    expect(countAlive(tokens)).toBe(0)
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })

    expect(countAlive(tokens)).toBe(0)
  }, 60_000)

  it('end, and no others, if their identity moves to a policy that revoked such sessions, although it allows them again', async () => {
    const { authPolicyId, tokens: revoked } = await crowd()
    const [mover, other] = [await people.person(), await people.person()]
    const tokens = [await people.sessionOf(mover), await people.sessionOf(other)]
    await allow(authPolicyId, { updb: { allowed: false } })
    await allow(authPolicyId, { updb: { allowed: true } })
    await people.manage('PATCH', `/identities/${mover.id}`, { authPolicyId })
    const later = await people.sessionOf(mover)
    const { body } = await people.ask('GET', `/api-sessions?filter=${encodeURIComponent(`identity = "${mover.id}"`)}`)
    const alive = [...tokens, later].map((token) => countAlive([token]))
    expect([body.data.length, alive, countAlive(revoked)]).toEqual([1, [0, 1, 1], 0])
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })
    expect([...tokens, later].map((token) => countAlive([token]))).toEqual([0, 1, 1])
  }, 60_000)

  it('stay revoked after a restart also if their ids are of a later time, because the clock was set back since', async () => {
    const { authPolicyId, identityIds } = await crowd()
    const { apiSessions } = world.controller.auth
    const tokens: string[] = []
    await world.system.write(async (tx) => {
      const identity = (await get(tx, identities, identityIds[0] ?? '')) as unknown as ApiSessionIdentity
      const session = { identity, authenticatorId: 'a', ipAddress: '', configTypes: [] }
      const id = `7ZZZ${newId().slice(4)}`
      await apiSessions.insert(tx, session, { id, method: 'password', audit: 'none' })
      tokens.push(apiSessions.deriveToken(id))
    })
    expect(countAlive(tokens)).toBe(1)
    await allow(authPolicyId, { updb: { allowed: false } })
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })

    expect(countAlive(tokens)).toBe(0)
  }, 60_000)

  it('do not include one that began after the change, also after a restart', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    const earlier = await people.sessionOf(person)
    await allow(authPolicyId, { updb: { allowed: false } })
    await allow(authPolicyId, { updb: { allowed: true } })
    const later = await people.sessionOf(person)
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })

    expect([countAlive([earlier]), countAlive([later])]).toEqual([0, 1])
  })

  it('end before valid ones, if their identity has too many', async () => {
    await restartWith({ 'limits.sessionsPerIdentity': 90 })
    const authPolicyId = await people.policy({})
    const make = () => people.identity({ authPolicyId })
    const [first, second, id] = [await make(), await make(), await make()]
    const begin = (identityId: string, method: 'password' | 'cert', count: number) =>
      world.system.write(async (tx) => {
        const identity = (await get(tx, identities, identityId)) as unknown as ApiSessionIdentity
        const session = { identity, authenticatorId: 'a', ipAddress: '', configTypes: [] }
        const { apiSessions } = world.controller.auth
        const tokens: string[] = []
        for (let number = 0; number < count; number++)
          tokens.push(apiSessions.deriveToken((await apiSessions.insert(tx, session, { method, audit: 'none' })).id))
        return tokens
      })
    // The change itself deletes the first hundred rows.
    await begin(first, 'password', 90)
    await begin(second, 'password', 10)
    const valid = await begin(id, 'cert', 1)
    await begin(id, 'password', 89)
    await allow(authPolicyId, { updb: { allowed: false } })
    expect(await countRows(id)).toBe(90)
    const next = await begin(id, 'cert', 1)

    expect(countAlive([...valid, ...next])).toBe(2)
    expect(await countRows(id)).toBe(90)
  })

  it('do not include those whose identity moved to another policy before, in the same commit', async () => {
    const { authPolicyId, tokens, identityIds } = await crowd()
    await forbidAndMove(authPolicyId, identityIds, 'move first')

    expect(countAlive(tokens)).toBe(MANY)
    expect(await countAll()).toBeGreaterThan(MANY)
  }, 60_000)

  /** How many rows there are that no memory holds as valid. */
  async function countRevoked(): Promise<number> {
    const rows = await world.controller.store.db.selectFrom('api_sessions').select('id').execute()
    return rows.filter(({ id }) => world.controller.auth.apiSessions.get(id) === undefined).length
  }
})

describe('the greatest age of a session', () => {
  it('is 30 days for people, however much it is used, and devices have none', async () => {
    await restartWith({ 'session.timeout': '24h' })
    const tokens = [await people.sessionOf(await people.person()), await sessionByCertificate(await people.device())]
    const outcomes: boolean[][] = []
    for (let halfDays = 1; halfDays <= 120; halfDays++) {
      world.clock.advance(DAY / 2)
      outcomes.push(await areAlive(...tokens))
    }

    expect(outcomes.slice(0, 59)).toEqual(Array.from({ length: 59 }, () => [true, true]))
    expect(outcomes.slice(59)).toEqual(Array.from({ length: 61 }, () => [false, true]))
  })

  it('ends a session that is not used, with its row', async () => {
    await restartWith({ 'session.timeout': '24h', 'session.maxAge': '1h' })
    const person = await people.person()
    await people.sessionOf(person)
    world.clock.advance(60 * 60_000)
    await world.controller.auth.apiSessions.termination.deleteExpired(world.system)

    expect(await countRows(person.id)).toBe(0)
  })

  it('is a setting for both, and part of the end that a session is shown', async () => {
    await restartWith({ 'session.timeout': '15m', 'session.maxAge': '20m', 'session.maxAgeOfDevices': '1h' })
    const begunAt = world.clock.now()
    const tokens = [await people.sessionOf(await people.person()), await sessionByCertificate(await people.device())]
    const own = async (token = '') =>
      (await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).body.data
    const toIso = (minutes: number) => new Date(begunAt + minutes * 60_000).toISOString()
    expect((await own(tokens[0])).expiresAt).toBe(toIso(15))
    world.clock.advance(10 * 60_000)
    expect(await own(tokens[0])).toMatchObject({ expiresAt: toIso(20), expirationSeconds: 600 })
    expect(await own(tokens[1])).toMatchObject({ expiresAt: toIso(25), expirationSeconds: 900 })
    world.clock.advance(10 * 60_000)
    expect(await areAlive(...tokens)).toEqual([false, true])
    for (let minutes = 20; minutes < 60; minutes += 10) {
      expect(await isAlive(tokens[1] as string)).toBe(true)
      world.clock.advance(10 * 60_000)
    }
    expect(await isAlive(tokens[1] as string)).toBe(false)
  })

  it('is not reached because the clock was set, also not after a restart', async () => {
    const token = await people.sessionOf(await people.person())
    world.clock.set(365 * DAY)
    expect(await isAlive(token)).toBe(true)
    await world.controller.auth.apiSessions.flush(world.system)
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock })
    at = await world.listen()
    expect(await isAlive(token)).toBe(true)
  })
})
