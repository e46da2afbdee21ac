// A caller that loses its rights while its request is under way: what it began must not are made.
import { request as httpsRequest } from 'node:https'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { apiSessions } from '../../src/definitions/resources/api-sessions.ts'
import { authPolicies } from '../../src/definitions/resources/auth-policies.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import type { ControllerError } from '../../src/foundation/errors.ts'
import { get } from '../../src/storage/entities/entities.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import { bearer, OpenIdClient, readClaims } from '../openid-connect/client.ts'
import { CLIENT, MANAGEMENT, type TestResponse, toTestResponse } from '../world/controller.ts'
import { settleInOneCommit } from '../world/one-commit.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People
let victim: Person
let token: string
let sessionId: string
let strict: string
let sequence = 0

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
  strict = await people.policy({ requireTotp: true })
})

beforeEach(async () => {
  victim = await people.person({ isAdmin: true })
  token = await people.sessionOf(victim)
  sessionId = world.controller.auth.apiSessions.use(token, world.clock.now())?.id ?? ''
})

/** Ways to lose a right, as administrators take it, and the reason that the caller is told. */
const losses: Readonly<Record<string, { apply(): Promise<unknown>; reason: string }>> = {
  'its identity is demoted': {
    apply: () => people.manage('PATCH', `/identities/${victim.id}`, { isAdmin: false }),
    reason: 'PERMISSION_DENIED',
  },
  'its identity is disabled': {
    apply: () => people.manage('POST', `/identities/${victim.id}/disable`, { durationMinutes: 0 }),
    reason: 'SESSION_UNKNOWN',
  },
  'its identity is deleted': {
    apply: () => people.manage('DELETE', `/identities/${victim.id}`),
    reason: 'SESSION_UNKNOWN',
  },
  'its session is ended': {
    apply: () => people.manage('DELETE', `/api-sessions/${sessionId}`),
    reason: 'SESSION_UNKNOWN',
  },
  'its authenticator is deleted': {
    apply: () => people.manage('DELETE', `/authenticators/${victim.authenticatorId}`),
    reason: 'SESSION_UNKNOWN',
  },
  'its auth policy comes to demand a second factor': {
    apply: () => people.manage('PATCH', `/identities/${victim.id}`, { authPolicyId: strict }),
    reason: 'SECOND_FACTOR_REQUIRED',
  },
}

interface SlowRequest {
  readonly method: string
  readonly path: string
  readonly text: string
  /** The headers that name the caller; by default its session. */
  readonly own?: Readonly<Record<string, string>>
}

/**
 * Sends a request whose body stops half-way until `meanwhile` is done. The server says 100 when it has judged the headers,
 * so the order is certain.
 */
function sendSlowly(
  { method, path, text, own = { 'net-session': token } }: SlowRequest,
  meanwhile: () => Promise<unknown>,
): Promise<TestResponse> {
  return new Promise((resolve, reject) => {
    const headers = {
      ...own,
      'content-type': 'application/json',
      // How long an empty body is shows only when it ends.
      ...(text === '' ? { 'transfer-encoding': 'chunked' } : { 'content-length': String(Buffer.byteLength(text)) }),
      expect: '100-continue',
    }
    const request = httpsRequest(new URL(path, at.url), { method, ca: at.rootPem, agent: false, headers })
    const half = Math.floor(text.length / 2)
    request.on('continue', () => {
      if (half > 0) request.write(text.slice(0, half))
      meanwhile().then(() => request.end(text.slice(half)), reject)
    })
    request.on('error', reject)
    request.on('response', (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const body = Buffer.concat(chunks).toString()
        resolve(toTestResponse({ status: response.statusCode ?? 0, headers: response.headers, text: body }))
      })
    })
    request.flushHeaders()
  })
}

const newIdentity = () => ({ name: `too late ${++sequence}`, type: 'Device', isAdmin: true })
const creating = (body: unknown) => ({
  method: 'POST',
  path: `${MANAGEMENT}/identities`,
  text: typeof body === 'string' ? body : JSON.stringify(body),
})

async function countOf(name: string): Promise<number> {
  const query = world.controller.store.db.selectFrom('identities').select('id').where('name', '=', name)
  return (await query.execute()).length
}

describe('a request whose body is still arriving', () => {
  it('is served if nothing happens meanwhile', async () => {
    const body = newIdentity()

    const response = await sendSlowly(creating(body), async () => {})

    expect([response.status, await countOf(body.name)]).toEqual([201, 1])
  })

  it.each(Object.keys(losses))('is refused if %s', async (name) => {
    const { apply, reason } = losses[name] as (typeof losses)[string]
    const body = newIdentity()

    const response = await sendSlowly(creating(body), apply)

    expect([response.status, response.body.error.code, response.body.error.cause.code]).toEqual([
      401,
      'UNAUTHORIZED',
      reason,
    ])
    expect(await countOf(body.name)).toBe(0)
  })

  it.each([
    ['that is not JSON', '{"name": "half of something"'],
    ['that breaks the schema', JSON.stringify({ ...newIdentity(), name: 5 })],
  ])('and %s does not tell the caller whether it was valid', async (_what, text) => {
    const response = await sendSlowly(
      creating(text),
      losses['its identity is demoted']?.apply as () => Promise<unknown>,
    )

    expect([response.status, response.body.error.code]).toEqual([401, 'UNAUTHORIZED'])
  })

  it('is refused if its session is ended, also if the body turns out to be empty', async () => {
    const { id } = await people.person()

    const response = await sendSlowly(
      { method: 'DELETE', path: `${MANAGEMENT}/identities/${id}`, text: '' },
      losses['its session is ended']?.apply as () => Promise<unknown>,
    )

    expect([response.status, response.body.error.cause.code]).toEqual([401, 'SESSION_UNKNOWN'])
    expect((await people.ask('GET', `/identities/${id}`)).status).toBe(200)
  })

  it('does not set a password for a caller whose session ended', async () => {
    const path = `${CLIENT}/current-identity/authenticators/${victim.authenticatorId}`
    const text = JSON.stringify({ currentPassword: PASSWORD, password: 'the password of a thief' })

    const response = await sendSlowly(
      { method: 'PATCH', path, text },
      losses['its session is ended']?.apply as () => Promise<unknown>,
    )

    expect([response.status, (await people.signIn(victim)).status]).toEqual([401, 200])
  })

  it('is served to a demoted administrator if everyone who is signed in may ask it', async () => {
    const path = `${CLIENT}/current-identity/authenticators/${victim.authenticatorId}`
    const text = JSON.stringify({ currentPassword: PASSWORD, password: 'a password of its own' })

    const response = await sendSlowly(
      { method: 'PATCH', path, text },
      losses['its identity is demoted']?.apply as () => Promise<unknown>,
    )

    expect(response.status).toBe(200)
  })
})

describe('a change that was admitted', () => {
  /** The victim's request after its rights were judged. */
  function admitted(): Context {
    const common = { identityId: victim.id, identityName: 'victim', apiSessionId: sessionId }
    return world.controller.contexts.create({
      kind: 'identity',
      ...common,
      isAdmin: true,
      rights: Rights.administrator,
      isPartial: false,
    })
  }

  const createLate = (context: Context, name: string) =>
    world.controller.entities.create(context, identities, { name, typeId: 'Device', isAdmin: true })

  /** The same losses inside a transaction that commits together with the change. */
  const inTransaction: Readonly<Record<string, Parameters<Context['write']>[0]>> = {
    'is demoted': async (tx) =>
      void (await world.controller.entities.update(tx, identities, await get(tx, identities, victim.id), {
        isAdmin: false,
      })),
    'is disabled': (tx) => disableIdentity(world.controller.entities, tx, victim.id, 0),
    'is deleted': (tx) => world.controller.entities.removeInTransaction(tx, identities, victim.id),
    'is signed out': (tx) => world.controller.entities.removeInTransaction(tx, apiSessions, sessionId, 'event'),
    'gets a stricter auth policy': async (tx) =>
      void (await world.controller.entities.update(tx, identities, await get(tx, identities, victim.id), {
        authPolicyId: strict,
      })),
  }

  it.each(Object.keys(losses))('is refused if %s before its transaction', async (loss) => {
    const context = admitted()
    await losses[loss]?.apply()
    const name = newIdentity().name

    await expect(createLate(context, name)).rejects.toMatchObject({ code: 'UNAUTHORIZED', status: 401 })

    expect(await countOf(name)).toBe(0)
  })

  it.each(Object.keys(inTransaction))(
    'is refused if its identity %s by an earlier change of one commit',
    async (loss) => {
      const context = admitted()
      const name = newIdentity().name

      const [, late] = await settleInOneCommit(world, () => [
        world.system.write(inTransaction[loss] as Parameters<Context['write']>[0]),
        createLate(context, name),
      ])

      expect((late as PromiseRejectedResult).reason as ControllerError).toMatchObject({ code: 'UNAUTHORIZED' })
      expect(await countOf(name)).toBe(0)
    },
  )

  it('is refused if the auth policy that its identity has becomes stricter in the same commit', async () => {
    const authPolicyId = await people.policy({})
    await people.manage('PATCH', `/identities/${victim.id}`, { authPolicyId })
    const context = admitted()
    const name = newIdentity().name

    const [, late] = await settleInOneCommit(world, () => [
      world.system.write(async (tx) => {
        const policy = await get(tx, authPolicies, authPolicyId)
        await world.controller.entities.update(tx, authPolicies, policy, {
          secondary: { ...policy.secondary, requireTotp: true },
        })
      }),
      createLate(context, name),
    ])

    expect((late as PromiseRejectedResult).reason).toMatchObject({ code: 'UNAUTHORIZED' })
    expect(await countOf(name)).toBe(0)
  })

  it('is made if the change that would have taken its right is rolled back', async () => {
    const context = admitted()
    const name = newIdentity().name

    const [failed, late] = await settleInOneCommit(world, () => [
      world.system.write(async (tx) => {
        await inTransaction['is demoted']?.(tx)
        throw new Error('this transaction comes to nothing')
      }),
      createLate(context, name),
    ])

    expect([failed?.status, late?.status, await countOf(name)]).toEqual(['rejected', 'fulfilled', 1])
  })

  it('is made if another identity loses its rights in the same commit', async () => {
    const other = await people.person({ isAdmin: true })
    const name = newIdentity().name

    await settleInOneCommit(world, () => [
      world.system.write((tx) => disableIdentity(world.controller.entities, tx, other.id, 0)),
      createLate(admitted(), name),
    ])

    expect(await countOf(name)).toBe(1)
  })
})

describe('what the controller writes down of a caller', () => {
  it('does not depend on whether its session is still there', async () => {
    const path = `${CLIENT}/current-identity/authenticators/${victim.authenticatorId}`
    const body = { currentPassword: 'a wrong password', password: 'another password' }
    for (let guess = 0; guess < 3; guess++) await world.send({ method: 'PATCH', path, token, body })
    await losses['its session is ended']?.apply()
    world.clock.advance(61_000)

    await world.controller.auth.failedSignIns.flush(world.controller.contexts)

    const query = world.controller.store.db.selectFrom('audit_records').select(['actorId', 'count'])
    const records = await query.where('operation', '=', 'refuse').where('actorId', '=', victim.id).execute()
    expect(records.map(({ count }) => count)).toEqual([1, 2])
  })
})

it('a caller whose access token is revoked while its body is under way is refused', async () => {
  const { access_token } = await new OpenIdClient(world).signIn(victim)
  const { jti } = readClaims(access_token)
  const identity = newIdentity()

  const { status } = await sendSlowly({ ...creating(identity), own: bearer(access_token) }, () =>
    people.manage('POST', '/revocations', { id: jti, type: 'JTI' }),
  )

  expect([status, await countOf(identity.name)]).toEqual([401, 0])
})
