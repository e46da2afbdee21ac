// An identity that signs in without end: it fills neither the disk with sessions nor the audit with records.
import { afterEach, describe, expect, it } from 'vitest'
import { RateLimit } from '../../src/foundation/rate-limit.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient } from '../openid-connect/client.ts'
import { CLIENT, type TestController, type TestOptions, testController } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { MfaPeople } from '../world/mfa.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'

const HOUR = 60 * 60_000
const HERE = '192.0.2.1'
const ELSEWHERE = '198.51.100.7'

let world: TestController
let people: People

async function open(settings: TestOptions['settings'] = {}) {
  world = await testController({ settings })
  people = await People.in(world)
}
afterEach(() => world.close())

/** Whether a session is alive; asking uses it. */
async function isAlive(token: string): Promise<boolean> {
  return (await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status === 200
}

async function sessionCount({ id }: Person): Promise<number> {
  const rows = await world.controller.store.db
    .selectFrom('api_sessions')
    .select('id')
    .where('identityId', '=', id)
    .execute()
  return rows.length
}

/** The audit records of sign-ins, oldest first. */
async function signIns({ id }: Person) {
  return world.controller.store.db
    .selectFrom('audit_records')
    .select(['address', 'method', 'count', 'entityId', 'operation'])
    .where('resource', '=', 'api-sessions')
    .where('actorId', '=', id)
    .orderBy('n')
    .execute()
}

describe('the sessions of one identity', () => {
  it('are 500 at most unless configured otherwise', async () => {
    await open()
    const { config } = world.controller

    expect([config['limits.sessionsPerIdentity'], config['limits.signInsPerIdentity']]).toEqual([500, 10])
  })

  it('are bounded: one too many ends the one that was unused for the longest time', async () => {
    await open({ 'limits.sessionsPerIdentity': 3 })
    const person = await people.person()
    const tokens: string[] = []
    for (let at = 0; at < 3; at++) {
      tokens.push(await people.sessionOf(person))
      world.clock.advance(1_000)
    }
    await isAlive(tokens[0] as string)
    world.clock.advance(1_000)

    tokens.push(await people.sessionOf(person))

    const alive = []
    for (const token of tokens) alive.push(await isAlive(token))
    expect(alive).toEqual([true, false, true, true])
    expect(await sessionCount(person)).toBe(3)
  })

  it('that owe a second factor end first', async () => {
    await open({ 'limits.sessionsPerIdentity': 3 })
    const { person, session } = await new MfaPeople(world, people).enrolled()
    world.clock.advance(1_000)
    const thief: string[] = []
    for (let at = 0; at < 5; at++) thief.push(await people.sessionOf(person))

    expect(await isAlive(session.token)).toBe(true)
    expect(await Promise.all(thief.map(isAlive))).toEqual([false, false, false, true, true])
  })

  /** The sessions of an owner who has shown the token of a signer that the auth policy requires, and whether they are alive. */
  const ownersByToken: Record<string, (person: Person, token: () => string) => Promise<() => Promise<boolean>>> = {
    async 'with the sign-in'({ username, password }, token) {
      const path = `${CLIENT}/authenticate?method=password`
      const headers = bearer(token())
      const { body } = await world.send({ method: 'POST', path, body: { username, password }, headers })
      return () => isAlive(body.data.token)
    },
    async 'with a later request'(person, token) {
      const session = await people.sessionOf(person)
      const path = `${CLIENT}/services`
      await world.send({ method: 'GET', path, token: session, headers: bearer(token()) })
      return () => isAlive(session)
    },
    async 'with a sign-in by OpenID Connect'({ username, password }, token) {
      const client = new OpenIdClient(world)
      const id = await client.begin()
      await client.postForm('/oidc/login/password', { id, username, password }, bearer(token()))
      const { body } = await client.redeem(await client.finish(id))
      const headers = bearer(body.access_token)
      const path = `${CLIENT}/current-api-session`
      return async () => (await world.send({ method: 'GET', path, headers })).status === 200
    },
  }

  it.each(Object.entries(ownersByToken))(
    'that have not shown a token which the auth policy requires end before one that showed it %s',
    async (_name, begin) => {
      await open({ ...OIDC_SETTINGS, 'limits.sessionsPerIdentity': 3 })
      const issuer = new Issuer()
      const authPolicyId = await people.policy({ requireExtJwtSigner: await issuer.trustedBy(people) })
      const person = await people.person({ authPolicyId, externalId: 'subject' })
      const isOwnerAlive = await begin(person, () => issuer.token(world, 'subject'))
      world.clock.advance(1_000)
      const thief: string[] = []
      for (let at = 0; at < 5; at++) thief.push(await people.sessionOf(person))

      expect(await isOwnerAlive()).toBe(true)
      expect(await Promise.all(thief.map(isAlive))).toEqual([false, false, false, true, true])
    },
  )

  it('are bounded also where many begin at once', async () => {
    await open({ 'limits.sessionsPerIdentity': 3 })
    const person = await people.person()

    const tokens = await Promise.all(Array.from({ length: 20 }, () => people.sessionOf(person)))

    const alive = await Promise.all(tokens.map(isAlive))
    expect(alive.filter((one) => one)).toHaveLength(3)
    expect(await sessionCount(person)).toBe(3)
  })

  it('end without a record each, and leave those of other identities alone', async () => {
    await open({ 'limits.sessionsPerIdentity': 1 })
    const [person, other] = [await people.person(), await people.person()]
    const token = await people.sessionOf(other)
    for (let at = 0; at < 4; at++) await people.sessionOf(person)

    expect(await isAlive(token)).toBe(true)
    expect((await signIns(person)).map(({ operation }) => operation)).toEqual(['create'])
  })

  it('are brought below a limit that became lower', async () => {
    await open()
    const person = await people.person()
    for (let at = 0; at < 5; at++) await people.sessionOf(person)
    await world.stop()
    const { directory, clock } = world
    world = await testController({ directory, clock, settings: { 'limits.sessionsPerIdentity': 2 } })
    people = await People.in(world, 'administers again')

    await people.sessionOf(person)

    expect(await sessionCount(person)).toBe(2)
  })
})

describe('an identity that signs in too often', () => {
  it('learns when to retry, and no other identity is limited', async () => {
    await open({ 'limits.signInsPerIdentity': 1 })
    const [person, other] = [await people.person(), await people.person()]
    for (let at = 0; at < 10; at++) await people.sessionOf(person)

    const refused = await people.signIn(person)

    expect(refused.status).toBe(429)
    expect(refused.body.error.code).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(refused.headers['retry-after']).toBe('1')
    expect((await people.signIn(other)).status).toBe(200)
    world.clock.advance(1_000)
    expect((await people.signIn(person)).status).toBe(200)
    expect((await people.signIn(person)).status).toBe(429)
  })

  it('is not limited by what a client that knows its password does elsewhere', async () => {
    await open({ 'limits.signInsPerIdentity': 1 })
    const person = await people.person()
    for (let at = 0; at < 10; at++) await people.signIn(person, {}, ELSEWHERE)

    expect((await people.signIn(person, {}, ELSEWHERE)).status).toBe(429)
    expect((await people.signIn(person, {}, HERE)).status).toBe(200)
  })

  it('is limited by one rate for all methods', async () => {
    await open({ 'limits.signInsPerIdentity': 1 })
    const at = await world.listen()
    const issuer = new Issuer()
    await issuer.trustedBy(people)
    const device = await people.device({ externalId: 'subject' })
    const password = { username: 'of-a-device', password: PASSWORD }
    await people.manage('POST', '/authenticators', { identityId: device.id, method: 'updb', ...password })
    const path = `${CLIENT}/authenticate?method=ext-jwt`
    const headers = { authorization: `Bearer ${issuer.token(world, 'subject')}` }
    const methods = [
      () => people.signIn(password),
      () => people.signInBy(at, device),
      () => world.send({ method: 'POST', path, body: {}, headers }),
    ]
    const statusesOf = async (signIns: typeof methods) => {
      const statuses: number[] = []
      for (const signIn of signIns) statuses.push((await signIn()).status)
      return statuses
    }

    const admitted = await statusesOf([...methods, ...methods, ...methods, people.signIn.bind(people, password)])
    const refused = await statusesOf(methods)

    expect(admitted).toEqual(Array(10).fill(200))
    expect(refused).toEqual([429, 429, 429])
  })

  it('is not one whose password others guess', async () => {
    await open({ 'limits.signInsPerIdentity': 1 })
    const person = await people.person()
    for (let at = 0; at < 15; at++) await people.signIn({ ...person, password: 'wrong horse' }, {}, ELSEWHERE)

    expect((await people.signIn(person)).status).toBe(200)
  })
})

describe('repeated sign-ins', () => {
  it('by one method from one address are one record at first, and one with their count an hour later', async () => {
    await open()
    const person = await people.person()
    let last = ''
    for (let at = 0; at < 5; at++) last = (await people.signIn(person, {}, HERE)).body.data.id
    const atOnce = await signIns(person)
    world.clock.advance(HOUR)

    await world.controller.auth.signIns.flush(world.controller.contexts)

    const common = { address: HERE, method: 'password', operation: 'create' }
    expect(atOnce).toMatchObject([{ ...common, count: 1 }])
    expect((await signIns(person)).slice(1)).toEqual([{ ...common, count: 4, entityId: last }])
  })

  it('from another address, or of another identity, are records of their own', async () => {
    await open()
    const [person, other] = [await people.person(), await people.person()]
    await people.signIn(person, {}, HERE)
    await people.signIn(person, {}, ELSEWHERE)
    await people.signIn(other, {}, HERE)

    expect((await signIns(person)).map(({ address }) => address)).toEqual([HERE, ELSEWHERE])
    expect((await signIns(other)).map(({ address }) => address)).toEqual([HERE])
  })

  it('are recorded although the identity is gone by then, and also when the controller closes', async () => {
    await open()
    const [person, gone] = [await people.person(), await people.person()]
    for (const one of [person, person, gone, gone, gone]) await people.signIn(one, {}, HERE)
    await people.manage('DELETE', `/identities/${gone.id}`)
    await world.stop()

    const { directory, clock } = world
    world = await testController({ directory, clock })

    expect((await signIns(person)).map(({ count }) => count)).toEqual([1, 1])
    expect((await signIns(gone)).map(({ count }) => count)).toEqual([1, 2])
  })

  it('that come to nothing are not counted', async () => {
    await open()
    const person = await people.person()
    await people.signIn(person, {}, HERE)
    await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)
    world.clock.advance(HOUR)
    await world.controller.auth.signIns.flush(world.controller.contexts)

    expect(await signIns(person)).toHaveLength(1)
  })
})

describe('a rate limit', () => {
  it('drops the bucket of an identity that was idle for as long as an empty one takes to fill', async () => {
    const limit = new RateLimit({ perSecond: 10, burst: 100 })
    for (let at = 0; at < 1_000; at++) limit.take(`identity ${at}`, 1_000)
    limit.take('identity 0', 12_000)
    limit.take('identity 0', 23_000)

    expect(limit.size).toBe(1)
  })

  it('goes on filling after the clock was set back', () => {
    const limit = new RateLimit({ perSecond: 1, burst: 2 })
    for (let at = 0; at < 3; at++) limit.take('a', HOUR)

    expect([limit.take('a', 0), limit.take('a', 1_000)]).toEqual([1, 0])
  })

  it('says how long it takes until there is a token', () => {
    const limit = new RateLimit({ perSecond: 1 / 6, burst: 1 })
    limit.take('a', 0)

    expect(limit.take('a', 0)).toBe(6)
  })
})
