// No mistake and no attack may leave a controller without an administrator who can sign in.
import { beforeEach, describe, expect, it } from 'vitest'
import { buildApp } from '../../server/app.ts'
import { hasUsableAdministrator } from '../../src/authentication/administrators/administrators.ts'
import { findFirstAdministrator } from '../../src/authentication/administrators/recovery.ts'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { authenticators } from '../../src/definitions/resources/authenticators.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { get } from '../../src/storage/entities/entities.ts'
import type { Context, WriteContext } from '../../src/storage/transactions/context.ts'
import { MANAGEMENT, type TestResponse, toTestResponse } from '../world/controller.ts'
import { settleInOneCommit } from '../world/one-commit.ts'
import { People, type Person } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const MINUTE = 60_000

const world = useControllerPerTest()
/** An administrator without any credential: it acts, and could not sign in. */
let people: People
/** The only administrator who could sign in. */
let last: Person

beforeEach(async () => {
  people = await People.in(world)
  last = await people.person({ isAdmin: true })
  const first = await findFirstAdministrator(world.system)
  await world.system.write((tx) => disableIdentity(world.controller.entities, tx, first, 0))
})

type Ask = (method: string, path: string, body?: unknown) => Promise<TestResponse>

const inAnHour = () => new Date(world.clock.now() + 60 * MINUTE).toISOString()

/** The changes that would leave no administrator. */
const attempts: Readonly<Record<string, (ask: Ask, person: Person) => Promise<TestResponse>>> = {
  'demoted by PATCH': (ask, { id }) => ask('PATCH', `/identities/${id}`, { isAdmin: false }),
  'demoted by PUT': (ask, { id }) => ask('PUT', `/identities/${id}`, { name: 'new', type: 'Device', isAdmin: false }),
  'disabled without an end': (ask, { id }) => ask('POST', `/identities/${id}/disable`, { durationMinutes: 0 }),
  'disabled for a minute': (ask, { id }) => ask('POST', `/identities/${id}/disable`, { durationMinutes: 1 }),
  'moved to an auth policy that does not admit it': async (ask, { id }) =>
    ask('PATCH', `/identities/${id}`, { authPolicyId: await people.policy({ updb: { allowed: false } }) }),
  deleted: (ask, { id }) => ask('DELETE', `/identities/${id}`),
  'deprived of its last credential': (ask, { authenticatorId }) => ask('DELETE', `/authenticators/${authenticatorId}`),
  'made to enroll anew': (ask, { authenticatorId }) =>
    ask('POST', `/authenticators/${authenticatorId}/re-enroll`, { expiresAt: inAnHour() }),
}

/** The callers that try. */
const callers: Readonly<Record<string, () => Promise<Ask>>> = {
  'another administrator': async () => (method, path, body) => people.ask(method, path, body),
  'the administrator itself': async () => {
    const token = await people.sessionOf(last)
    return (method, path, body) =>
      world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) })
  },
  'an operator on the data directory': async () => {
    const app = await buildApp(world.controller, { trustedCaller: { kind: 'local-operator', osUser: 'root' } })
    return async (method, path, body) => {
      const payload = body === undefined ? {} : { payload: body as object }
      const reply = await app.inject({ method: method as 'GET', url: MANAGEMENT + path, ...payload })
      return toTestResponse({
        status: reply.statusCode,
        headers: reply.headers as TestResponse['headers'],
        text: reply.payload,
      })
    }
  },
}

const cases = Object.keys(callers).flatMap((caller) =>
  Object.keys(attempts).map((attempt) => [attempt, caller] as const),
)

describe('the last usable administrator', () => {
  it.each(cases)('cannot be %s by %s', async (attempt, caller) => {
    const ask = (await callers[caller]?.()) as Ask

    const response = await (attempts[attempt] as (typeof attempts)[string])(ask, last)

    expect([response.status, response.body.error?.code]).toEqual([409, 'LAST_ADMINISTRATOR'])
    expect(await hasUsableAdministrator(world.system)).toBe(true)
    expect((await people.signIn(last)).status).toBe(200)
  })

  it.each(Object.keys(attempts))('can be %s if another one is usable', async (attempt) => {
    await people.person({ isAdmin: true })

    const response = await (attempts[attempt] as (typeof attempts)[string])(people.ask.bind(people), last)

    expect([200, 201]).toContain(response.status)
  })

  /** Others who could not take over. */
  const others: Readonly<Record<string, () => Promise<unknown>>> = {
    'has no credential': () => people.identity({ isAdmin: true }),
    'is disabled': async () => {
      const { id } = await people.person({ isAdmin: true })
      await people.manage('POST', `/identities/${id}/disable`, { durationMinutes: 5 })
    },
    'is not allowed to sign in by its credential': async () =>
      people.person({ isAdmin: true, authPolicyId: await people.policy({ updb: { allowed: false } }) }),
    'does not administer': () => people.person(),
    'has a certificate that expired, which its auth policy refuses': async () => {
      await people.device({
        isAdmin: true,
        authPolicyId: await people.policy({ cert: { allowExpiredCerts: false } }),
      })
      world.clock.advance(2 * 366 * 24 * 60 * MINUTE)
      people = await People.in(world, 'administrator of a later year')
    },
  }

  it.each(Object.keys(others))('stays if the other one %s', async (other) => {
    await others[other]?.()

    const response = await people.ask('PATCH', `/identities/${last.id}`, { isAdmin: false })

    expect([response.status, response.body.error?.code]).toEqual([409, 'LAST_ADMINISTRATOR'])
  })

  it('can go if the other one owes a second factor, because it can enroll one', async () => {
    await people.person({ isAdmin: true, authPolicyId: await people.policy({ requireTotp: true }) })

    const response = await people.ask('PATCH', `/identities/${last.id}`, { isAdmin: false })

    expect(response.status).toBe(200)
  })

  it('may lose a credential if it can sign in by another one', async () => {
    const device = await people.device({ isAdmin: true })
    await people.manage('PATCH', `/identities/${last.id}`, { isAdmin: false })
    const body = { identityId: device.id, method: 'updb', username: 'beside it', password: 'a password beside' }
    const { id } = await people.manage('POST', '/authenticators', body)

    const responses = [
      await people.ask('DELETE', `/authenticators/${id}`),
      await people.ask('DELETE', `/authenticators/${device.authenticatorId}`),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 409])
  })

  it('may be changed in everything else', async () => {
    const authPolicyId = await people.policy({})

    const responses = [
      await people.ask('PATCH', `/identities/${last.id}`, { name: 'renamed', authPolicyId }),
      await people.ask('PUT', `/identities/${last.id}`, { name: 'replaced', type: 'Device', isAdmin: true }),
      await people.ask('PATCH', `/authenticators/${last.authenticatorId}`, { password: 'another password' }),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  })

  it('does not keep identities that are no administrators', async () => {
    const person = await people.person()

    const responses = [
      await people.ask('DELETE', `/authenticators/${person.authenticatorId}`),
      await people.ask('POST', `/identities/${person.id}/disable`, { durationMinutes: 0 }),
      await people.ask('DELETE', `/identities/${person.id}`),
    ]

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
  })
})

describe('of the last two usable administrators', () => {
  const changes: Readonly<Record<string, (tx: WriteContext, person: Person) => Promise<unknown>>> = {
    demoted: async (tx, { id }) =>
      world.controller.entities.update(tx, identities, await get(tx, identities, id), { isAdmin: false }),
    disabled: (tx, { id }) => disableIdentity(world.controller.entities, tx, id, 0),
    deleted: (tx, { id }) => world.controller.entities.removeInTransaction(tx, identities, id),
    'deprived of their credentials': (tx, { authenticatorId }) =>
      world.controller.entities.removeInTransaction(tx, authenticators, authenticatorId),
  }

  it.each(Object.keys(changes))('one stays if both are %s in one commit', async (change) => {
    const other = await people.person({ isAdmin: true })
    const operator: Context = world.controller.contexts.create({ kind: 'local-operator', osUser: 'root' })
    const apply = changes[change] as (typeof changes)[string]

    const settled = await settleInOneCommit(world, () => [
      operator.write((tx) => apply(tx, last)),
      operator.write((tx) => apply(tx, other)),
    ])

    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect((settled[1] as PromiseRejectedResult).reason).toMatchObject({ code: 'LAST_ADMINISTRATOR', status: 409 })
    expect(await hasUsableAdministrator(world.system)).toBe(true)
  })

  it('one stays if they demote each other over the API at the same time', async () => {
    const other = await people.person({ isAdmin: true })
    const tokens = [await people.sessionOf(last), await people.sessionOf(other)]
    const demote = (token: string | undefined, { id }: Person) =>
      world.send({ method: 'PATCH', path: `${MANAGEMENT}/identities/${id}`, token, body: { isAdmin: false } })

    const responses = await Promise.all([demote(tokens[0], other), demote(tokens[1], last)])

    expect(responses.map(({ status }) => status)).toContain(200)
    expect(responses.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await hasUsableAdministrator(world.system)).toBe(true)
  })
})

describe('a lockout of the last usable administrator', () => {
  /** Guesses until the identity is locked out. */
  async function lockOut(person: Person): Promise<void> {
    await people.signIn({ ...person, password: 'a wrong guess' })
    expect((await people.signIn(person)).status).toBe(401)
  }

  it.each([
    ['without an end', 0, 15],
    ['of a day', 24 * 60, 15],
    ['of ten minutes', 10, 10],
  ])('%s ends after %i minutes of policy at %i minutes', async (_what, lockoutDurationMinutes, minutes) => {
    const authPolicyId = await people.policy({ updb: { maxAttempts: 1, lockoutDurationMinutes } })
    await people.manage('PATCH', `/identities/${last.id}`, { authPolicyId })
    await lockOut(last)

    world.clock.advance(minutes * MINUTE - 1_000)
    const before = await people.signIn(last)
    world.clock.advance(1_000)
    const after = await people.signIn(last)

    expect([before.status, after.status]).toEqual([401, 200])
  })

  it('is as long as the policy says for an administrator who is not the last one', async () => {
    const authPolicyId = await people.policy({ updb: { maxAttempts: 1, lockoutDurationMinutes: 0 } })
    const other = await people.person({ isAdmin: true, authPolicyId })
    await lockOut(other)

    world.clock.advance(24 * 60 * MINUTE)

    expect((await people.signIn(other)).status).toBe(401)
  })

  it('is short for the second of two as well', async () => {
    const authPolicyId = await people.policy({ updb: { maxAttempts: 1, lockoutDurationMinutes: 0 } })
    const other = await people.person({ isAdmin: true, authPolicyId })
    await people.manage('PATCH', `/identities/${last.id}`, { authPolicyId })
    await lockOut(other)
    await lockOut(last)

    world.clock.advance(15 * MINUTE)

    expect((await people.signIn(last)).status).toBe(200)
  })
})
