// Tokens of machines: what they may do, when they end, and who makes them.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { callerFromToken } from '../../src/authentication/api-sessions/callers.ts'
import { CLIENT, FABRIC, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { watchEvents } from '../world/event-stream.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController({
  settings: { listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management', 'fabric'] }] },
})
const DAY_MS = 24 * 60 * 60_000

let people: People
let sequence = 0
const newName = () => `of a token ${++sequence}`

beforeAll(async () => {
  people = await People.in(world)
})

const inDays = (days: number) => new Date(world.clock.now() + days * DAY_MS).toISOString()
const reason = ({ status, body }: TestResponse) => [status, body.error?.cause?.code ?? body.error?.cause?.field]
const DENIED = [401, 'PERMISSION_DENIED']
const UNKNOWN = [401, 'SESSION_UNKNOWN']

interface Machine {
  readonly id: string
  readonly secret: string
  ask(method: string, path: string, body?: unknown): Promise<TestResponse>
}

const sendBy = (secret: string) => (method: string, path: string, body?: unknown) =>
  world.send({
    method,
    path: path.startsWith('/edge/') || path.startsWith('/fabric/') ? path : MANAGEMENT + path,
    headers: { authorization: `Bearer ${secret}` },
    ...(body === undefined ? {} : { body }),
  })

const tokenBody = (identityId: string, values: object = {}) => ({
  name: newName(),
  identityId,
  expiresAt: inDays(90),
  ...values,
})

async function tokenOf(identityId: string, values: object = {}): Promise<Machine> {
  const { id, token: secret } = await people.manage('POST', '/controller/tokens', tokenBody(identityId, values))
  return { id, secret, ask: sendBy(secret) }
}

/** An identity that signs in, and what it sends by its session. */
async function holderOf(values: { permissions?: string[]; isAdmin?: boolean }) {
  const { id, token } = await world.signIn({ name: newName(), ...values })
  const ask = (method: string, path: string, body?: unknown) =>
    world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })
  return { id, token, ask }
}

describe('a token', () => {
  it('is shown once, begins as scanners expect, and is stored as a digest only', async () => {
    const id = await people.identity({ permissions: ['service'] })
    const response = await people.ask('POST', '/controller/tokens', tokenBody(id, { permissions: ['service.read'] }))
    const { token: secret, id: tokenId } = response.body.data

    expect(response.status).toBe(201)
    expect(response.headers['cache-control']).toBe('no-store')
    expect(secret).toMatch(/^ectl_[A-Za-z0-9_-]{43}$/)
    const texts = [
      (await people.ask('GET', `/controller/tokens/${tokenId}`)).text,
      (await people.ask('GET', '/controller/tokens')).text,
      (await people.ask('GET', '/controller/audit?limit=500')).text,
      JSON.stringify(await world.system.db.selectFrom('tokens').selectAll().execute()),
    ]
    for (const text of texts) expect(text).not.toContain(secret)
    for (const text of texts.slice(0, 3)) expect(text).not.toMatch(/"secretHash":"[^*]/)
  })

  it('cannot be found by its digest', async () => {
    for (const symbol of ['secretHash', 'isTotpComplete'])
      expect((await people.ask('GET', `/controller/tokens?filter=${symbol} != null`)).status).toBe(400)
  })

  it('is accepted by both APIs and the fabric API, with its permissions', async () => {
    const id = await people.identity({ permissions: ['service', 'config', 'ops'] })
    const { ask } = await tokenOf(id, { permissions: ['service.read', 'ops.read'] })
    const statuses = async (...requests: readonly (readonly [string, string, unknown?])[]) => {
      const all: number[] = []
      for (const request of requests) all.push((await ask(...request)).status)
      return all
    }

    expect(
      await statuses(
        ['GET', '/services'],
        ['GET', `${FABRIC}/circuits`],
        ['GET', `${CLIENT}/current-identity`],
        ['GET', `${CLIENT}/services`],
        ['GET', `${CLIENT}/sessions`],
      ),
    ).toEqual([200, 200, 200, 200, 200])
    expect(reason(await ask('GET', '/configs'))).toEqual(DENIED)
    expect(reason(await ask('POST', '/services', { name: newName(), encryptionRequired: true }))).toEqual(DENIED)
    expect(reason(await ask('GET', `${FABRIC}/routers`))).toEqual(DENIED)
  })

  it('of an administrator administers only if it says so', async () => {
    const { id } = await holderOf({ isAdmin: true })
    const all = await tokenOf(id, { isAdmin: true })
    const some = await tokenOf(id, { permissions: ['service'] })
    const none = await tokenOf(id)

    expect((await all.ask('GET', '/summary')).status).toBe(200)
    expect(reason(await some.ask('GET', '/summary'))).toEqual(DENIED)
    expect((await some.ask('GET', '/services')).status).toBe(200)
    expect(reason(await none.ask('GET', '/services'))).toEqual(DENIED)
    expect((await none.ask('GET', '/current-identity')).status).toBe(200)
  })

  it('opens no session for a service, reports no posture, and is not a session', async () => {
    const { id } = await holderOf({ isAdmin: true })
    const { ask } = await tokenOf(id, { isAdmin: true })
    const service = await people.manage('POST', '/services', { name: newName(), encryptionRequired: true })

    for (const [method, path, body] of [
      ['POST', `${CLIENT}/sessions`, { serviceId: service.id, type: 'Dial' }],
      ['POST', `${CLIENT}/posture-response`, { id: 'x', typeId: 'OS' }],
      ['GET', `${CLIENT}/current-api-session`],
      ['DELETE', `${CLIENT}/current-api-session`],
      ['POST', `${CLIENT}/current-api-session/certificates`, { csr: 'x' }],
      ['POST', `${CLIENT}/current-identity/mfa`],
      ['GET', `${CLIENT}/current-identity/authenticators`],
    ] as const)
      expect(reason(await ask(method, path, body)), `${method} ${path}`).toEqual(DENIED)
  })

  it('is not accepted as the token of a session', async () => {
    const { secret } = await tokenOf(await people.identity())

    expect((await world.send({ method: 'GET', path: `${MANAGEMENT}/current-identity`, token: secret })).status).toBe(
      401,
    )
  })

  it.each(['ectl_', `ectl_${'A'.repeat(43)}`, `ectl_${'A'.repeat(5000)}`, 'ectl_%00'])(
    'of no machine is refused: %#',
    async (secret) => {
      expect(reason(await sendBy(secret)('GET', '/current-identity'))).toEqual(UNKNOWN)
    },
  )

  it('shows when it was used last, and writes that once a minute at most', async () => {
    const id = await people.identity({ permissions: ['service'] })
    const { id: tokenId, ask } = await tokenOf(id)
    const { machineTokens } = world.controller.auth
    const read = async () => (await people.manage('GET', `/controller/tokens/${tokenId}`)).lastUsedAt

    expect(await read()).toBeNull()
    const usedAt = new Date(world.clock.now()).toISOString()
    await ask('GET', '/current-identity')
    await machineTokens.flush(world.system)
    expect(await read()).toBe(usedAt)
    world.clock.advance(59_000)
    await ask('GET', '/current-identity')
    await machineTokens.flush(world.system)
    expect(await read()).toBe(usedAt)
    world.clock.advance(1_000)
    await ask('GET', '/current-identity')
    await machineTokens.flush(world.system)
    expect(await read()).toBe(new Date(world.clock.now()).toISOString())
  })

  it('is named by the audit as the one that its identity acted by', async () => {
    const id = await people.identity({ permissions: ['service'] })
    const { ask } = await tokenOf(id, { name: 'nightly', permissions: ['service'] })
    const name = newName()
    await ask('POST', '/services', { name, encryptionRequired: true })
    const filter = encodeURIComponent(`entityName = "${name}"`)
    const [record] = await people.manage('GET', `/controller/audit?filter=${filter}`)

    expect(record).toMatchObject({ actorKind: 'identity', actorId: id })
    expect(record.actorName).toMatch(/ \(token nightly\)$/)
  })

  it('lasts over a restart of the controller', async () => {
    const id = await people.identity({ permissions: ['service'] })
    const { ask } = await tokenOf(id, { permissions: ['service'] })
    await world.stop()
    await world.reopen()
    people = await People.in(world, newName())

    expect((await ask('GET', '/services')).status).toBe(200)
    expect(reason(await ask('GET', '/configs'))).toEqual(DENIED)
  })
})

describe('a token ends at once', () => {
  let id: string
  let machine: Machine

  beforeEach(async () => {
    id = await people.identity({ permissions: ['service'] })
    machine = await tokenOf(id, { permissions: ['service'] })
    expect((await machine.ask('GET', '/services')).status).toBe(200)
  })

  it('when it is deleted', async () => {
    await people.manage('DELETE', `/controller/tokens/${machine.id}`)

    expect(reason(await machine.ask('GET', '/services'))).toEqual(UNKNOWN)
  })

  it('when it expires', async () => {
    world.clock.advance(90 * DAY_MS)
    people = await People.in(world, newName())

    expect(reason(await machine.ask('GET', '/services'))).toEqual(UNKNOWN)
  })

  it('when its identity is deleted', async () => {
    await people.manage('DELETE', `/identities/${id}`)

    expect(reason(await machine.ask('GET', '/services'))).toEqual(UNKNOWN)
    expect((await people.ask('GET', `/controller/tokens/${machine.id}`)).status).toBe(404)
  })

  it('while its identity is disabled', async () => {
    await people.manage('POST', `/identities/${id}/disable`, { durationMinutes: 0 })
    expect(reason(await machine.ask('GET', '/services'))).toEqual(UNKNOWN)
    await people.manage('POST', `/identities/${id}/enable`)
    expect((await machine.ask('GET', '/services')).status).toBe(200)
  })

  it('as far as its identity loses rights', async () => {
    await people.manage('PATCH', `/identities/${id}`, { permissions: ['service.read'] })
    expect((await machine.ask('GET', '/services')).status).toBe(200)
    const created = await machine.ask('POST', '/services', { name: newName(), encryptionRequired: true })
    expect(reason(created)).toEqual(DENIED)
    await people.manage('PATCH', `/identities/${id}`, { permissions: ['service:#web'] })
    expect((await machine.ask('GET', '/services')).body.data).toEqual([])
    await people.manage('PATCH', `/identities/${id}`, { permissions: [] })
    expect(reason(await machine.ask('GET', '/services'))).toEqual(DENIED)
  })

  it('when its auth policy requires a factor that its maker has not passed', async () => {
    const authPolicyId = await people.policy({})
    const holder = await holderOf({ permissions: ['token', 'service'] })
    await people.manage('PATCH', `/identities/${holder.id}`, { authPolicyId })
    const { body } = await holder.ask('POST', '/controller/tokens', tokenBody(holder.id, { permissions: ['service'] }))
    const own = sendBy(body.data.token)
    const vouched = await tokenOf(holder.id, { permissions: ['service'] })
    expect((await own('GET', '/services')).status).toBe(200)

    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireTotp: true } })

    expect(reason(await own('GET', '/services'))).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
    expect((await vouched.ask('GET', '/services')).status).toBe(200)
  })

  it('also for the events that it watches, of which it is sent those of its permissions', async () => {
    await people.manage('PATCH', `/identities/${id}`, { permissions: ['service', 'config-type'] })
    const headers = { authorization: `Bearer ${machine.secret}` }
    const watcher = await watchEvents(await world.listen(), '', '', headers)
    await expect.poll(() => watcher.cursor).not.toBe('')
    await people.manage('POST', '/config-types', { name: newName(), schema: {} })
    const service = await people.manage('POST', '/services', { name: newName(), encryptionRequired: true })
    await expect.poll(() => watcher.events.map(({ data }) => data.audit.entityId)).toEqual([service.id])

    await people.manage('DELETE', `/controller/tokens/${machine.id}`)

    await expect.poll(() => watcher.hasEnded).toBe(true)
    await watcher.close()
  })

  it('also for a change that waits for its transaction', async () => {
    const { controller } = world
    const token = controller.auth.machineTokens.get(machine.id)
    const caller = callerFromToken(controller.auth, token, [], world.clock.now())
    const change = people
      .ask('DELETE', `/controller/tokens/${machine.id}`)
      .then(() => controller.contexts.create(caller).write(async () => 'done'))

    await expect(change).rejects.toMatchObject({ status: 401 })
  })
})

describe('a token is made', () => {
  it('by those who hold the permission for it, and what it may do', async () => {
    const target = await people.identity({ permissions: ['service.read'] })
    const maker = await holderOf({ permissions: ['token', 'service.read'] })
    const stranger = await holderOf({ permissions: ['identity', 'service.read', 'enrollment'] })
    const body = () => tokenBody(target, { permissions: ['service.read'] })

    expect((await maker.ask('POST', '/controller/tokens', body())).status).toBe(201)
    expect(reason(await stranger.ask('POST', '/controller/tokens', body()))).toEqual(DENIED)
    expect(reason(await stranger.ask('GET', '/controller/tokens'))).toEqual(DENIED)
  })

  it('not for an identity that holds a right which its maker lacks, nor is one of its tokens deleted', async () => {
    const target = await people.identity({ permissions: ['service.read', 'config.read'] })
    const { id } = await tokenOf(target, { permissions: ['service.read'] })
    const maker = await holderOf({ permissions: ['token', 'service.read'] })

    expect(
      reason(await maker.ask('POST', '/controller/tokens', tokenBody(target, { permissions: ['service.read'] }))),
    ).toEqual(DENIED)
    expect(reason(await maker.ask('DELETE', `/controller/tokens/${id}`))).toEqual(DENIED)
    const { id: administrator } = await holderOf({ isAdmin: true })
    expect(reason(await maker.ask('POST', '/controller/tokens', tokenBody(administrator)))).toEqual(DENIED)
  })

  it('not with more than its identity holds', async () => {
    const id = await people.identity({ permissions: ['service:#web'] })

    for (const values of [{ isAdmin: true }, { permissions: ['service'] }, { permissions: ['service:#db'] }])
      expect((await people.ask('POST', '/controller/tokens', tokenBody(id, values))).status).toBe(400)
    expect(
      (await people.ask('POST', '/controller/tokens', tokenBody(id, { permissions: ['service.read:#web'] }))).status,
    ).toBe(201)
  })

  it.each([
    ['without an end', () => ({ expiresAt: undefined })],
    ['with an end that has passed', () => ({ expiresAt: inDays(-1) })],
    ['for more than 366 days', () => ({ expiresAt: inDays(367) })],
    ['for an unknown identity', () => ({ identityId: 'no-such-identity' })],
    ['with an unknown permission', () => ({ permissions: ['everything'] })],
    ['with a digest of its own', () => ({ secretHash: 'x' })],
  ])('not %s', async (_what, values) => {
    const id = await people.identity()

    expect((await people.ask('POST', '/controller/tokens', { ...tokenBody(id), ...values() })).status).toBe(400)
  })

  it('not for the identity of a router, but for another one of that type', async () => {
    const { id } = await people.manage('POST', '/edge-routers', { name: newName(), isTunnelerEnabled: true })

    const refused = await people.ask('POST', '/controller/tokens', tokenBody(id))

    expect(reason(refused)).toEqual([400, 'identityId'])
    await tokenOf(await people.identity({ type: 'Router' }))
  })

  it('not for a disabled identity', async () => {
    const id = await people.identity({ disabled: true })

    expect((await people.ask('POST', '/controller/tokens', tokenBody(id))).status).toBe(400)
  })

  it('for an identity whose auth policy requires TOTP by an administrator, not by another holder', async () => {
    const authPolicyId = await people.policy({ requireTotp: true })
    const id = await people.identity({ authPolicyId })
    const maker = await holderOf({ permissions: ['token'] })

    expect(reason(await maker.ask('POST', '/controller/tokens', tokenBody(id)))).toEqual(DENIED)
    expect((await (await tokenOf(id)).ask('GET', '/current-identity')).status).toBe(200)
  })

  it('and nothing remains of a dry run', async () => {
    const id = await people.identity()
    const response = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/controller/tokens`,
      token: people.token,
      body: tokenBody(id),
      headers: { 'controller-dry-run': 'true' },
    })

    expect(reason(await sendBy(response.body.data.token)('GET', '/current-identity'))).toEqual(UNKNOWN)
  })

  it('a hundred times for one identity at most', async () => {
    const id = await people.identity()
    for (let count = 0; count < 100; count++) await tokenOf(id)

    expect((await people.ask('POST', '/controller/tokens', tokenBody(id))).status).toBe(400)
  })
})

describe('a caller by a token', () => {
  let person: Person

  beforeEach(async () => {
    person = await people.person({ permissions: ['token', 'identity', 'enrollment', 'service', 'ops'] })
  })

  it('makes no token that may more, or lasts longer, than its own', async () => {
    const { ask } = await tokenOf(person.id, { permissions: ['token', 'service.read'], expiresAt: inDays(10) })
    const whole = await tokenOf(person.id, {
      permissions: ['token', 'identity', 'enrollment', 'service', 'ops'],
      expiresAt: inDays(10),
    })
    const target = await people.identity({ permissions: ['service.read'] })
    const body = (identityId: string, days: number, permissions: string[]) =>
      tokenBody(identityId, { permissions, expiresAt: inDays(days) })
    const make = (by: Machine['ask'], ...args: Parameters<typeof body>) =>
      by('POST', '/controller/tokens', body(...args))

    // It stands for less than its identity.
    expect(reason(await make(ask, person.id, 5, ['service.read']))).toEqual(DENIED)
    expect((await make(ask, target, 5, ['service.read'])).status).toBe(201)
    expect(reason(await make(ask, target, 11, ['service.read']))).toEqual([400, 'expiresAt'])
    expect((await make(whole.ask, person.id, 5, ['service'])).status).toBe(201)
    expect(reason(await make(whole.ask, person.id, 11, ['service']))).toEqual([400, 'expiresAt'])
  })

  it('changes neither its own identity, with less than this holds, nor how that signs in', async () => {
    const some = await tokenOf(person.id, { permissions: ['identity', 'enrollment'] })
    const whole = await tokenOf(person.id, { permissions: ['token', 'identity', 'enrollment', 'service', 'ops'] })
    const expiresAt = inDays(1)
    const enrollment = { identityId: person.id, method: 'ott', expiresAt }
    const session = await people.sessionOf(person)
    await world.send({ method: 'POST', path: `${CLIENT}/current-identity/mfa`, token: session })

    expect(reason(await some.ask('PATCH', `/identities/${person.id}`, { roleAttributes: ['web'] }))).toEqual(DENIED)
    expect(reason(await some.ask('DELETE', `/identities/${person.id}/mfa`))).toEqual(DENIED)
    for (const { ask } of [some, whole]) {
      expect(reason(await ask('DELETE', `/identities/${person.id}/mfa`))).toEqual(DENIED)
      expect(reason(await ask('POST', '/enrollments', enrollment))).toEqual(DENIED)
      expect(
        reason(await ask('PATCH', `${CLIENT}/current-identity/authenticators/${person.authenticatorId}`, {})),
      ).toEqual(DENIED)
    }
  })

  it('who administers does not change the password of its identity', async () => {
    const admin = await people.person({ isAdmin: true })
    const { ask } = await tokenOf(admin.id, { isAdmin: true })
    const path = `/authenticators/${admin.authenticatorId}`

    expect(reason(await ask('PATCH', path, { username: admin.username, password: 'another battery staple' }))).toEqual(
      DENIED,
    )
    expect(reason(await ask('DELETE', path))).toEqual(DENIED)
    expect((await people.signIn(admin)).status).toBe(200)
  })

  it('is not shown the enrollment of its identity, by which it would outlast itself', async () => {
    const { ask } = await tokenOf(person.id, { permissions: ['token', 'identity', 'enrollment', 'service', 'ops'] })
    const expiresAt = inDays(1)
    const { id } = await people.manage('POST', '/enrollments', { identityId: person.id, method: 'ott', expiresAt })

    expect((await ask('GET', `${CLIENT}/current-identity`)).body.data.enrollment).toEqual({})
    expect((await ask('GET', `/identities/${person.id}`)).body.data.enrollment).toEqual({})
    expect((await ask('GET', `/identities/${person.id}/enrollments`)).body.data).toEqual([])
    for (const [method, path] of [
      ['GET', `/enrollments/${id}`],
      ['DELETE', `/enrollments/${id}`],
      ['POST', `/enrollments/${id}/refresh`],
    ] as const)
      expect((await ask(method, path, method === 'POST' ? { expiresAt } : undefined)).status).toBe(404)
  })
})
