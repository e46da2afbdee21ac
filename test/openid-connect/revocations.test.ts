// Revocations of tokens, sessions and identities: what they end, at once and for how long.
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { callerFromApiSession } from '../../src/authentication/api-sessions/callers.ts'
import { removeEndedRevocations, revokeByAdministrator } from '../../src/network/router-model/revocations.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'
import { EXCHANGE, TOKEN_TYPE } from './certificate-client.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const world = useControllerPerTest({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People

beforeEach(async () => {
  people = await People.in(world)
})

const HOUR_MS = 60 * 60_000
const DAY_MS = 24 * HOUR_MS

const ask = async (own: { token: string } | { headers: { authorization: string } }) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, ...own })).status

const revoke = (type: string, id: string) => people.manage('POST', '/revocations', { id, type })

const refresh = (client: OpenIdClient, token: string) =>
  client.postForm('/oidc/oauth/token', { grant_type: 'refresh_token', client_id: 'native', refresh_token: token })

const exchange = (client: OpenIdClient, token: string) =>
  client.postForm('/oidc/oauth/token', {
    ...{ client_id: 'native', grant_type: EXCHANGE, subject_token: token },
    subject_token_type: `${TOKEN_TYPE}refresh_token`,
  })

const listRevocations = async () => {
  const rows = await world.system.db.selectFrom('revocations').select('id').orderBy('n').execute()
  return rows.map(({ id }) => id)
}

/** Removes revocations as the controller does every minute. */
const removeEnded = () => {
  const { auth, clock } = world.controller
  return removeEndedRevocations(world.system, { clock, lifetime: auth.apiSessions.lifetime })
}

/** Sets the clock, and has the controller read it. */
const setClock = (milliseconds: number) => {
  world.clock.set(milliseconds)
  world.controller.clock.now()
}

describe('a revocation', () => {
  const signInTwice = async () => {
    const person = await people.person()
    const { body } = await people.signIn(person)
    const { access_token: accessToken } = await new OpenIdClient(world).signIn(person)
    const { id, token } = body.data as { id: string; token: string }
    return { person, id, ask: async () => [await ask({ token }), await ask({ headers: bearer(accessToken) })] }
  }

  it('of an API session ends it also if it was begun without OpenID Connect', async () => {
    const { ask, id } = await signInTwice()
    const before = await ask()

    await revoke('API_SESSION', id)

    expect([before, await ask()]).toEqual([
      [200, 200],
      [401, 200],
    ])
    expect((await people.ask('GET', `/api-sessions/${id}`)).status).toBe(404)
  })

  it('of an identity ends all its API sessions, none of another one, and no later one', async () => {
    const [revoked, other] = [await signInTwice(), await signInTwice()]

    await revoke('IDENTITY', revoked.person.id)

    expect([await revoked.ask(), await other.ask()]).toEqual([
      [401, 401],
      [200, 200],
    ])
    expect(await ask({ token: await people.sessionOf(revoked.person) })).toBe(200)
  })
})

describe('a revocation of a token', () => {
  it('stays in force if the clock is ahead by more than a day for a minute', async () => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person())
    const { jti } = readClaims(tokens.access_token)
    await revoke('JTI', jti)

    setClock(25 * HOUR_MS)
    world.clock.advance(60_000)
    await removeEnded()
    setClock(-25 * HOUR_MS)

    expect(await listRevocations()).toEqual([jti])
    expect(await ask({ headers: bearer(tokens.access_token) })).toBe(401)
    expect((await refresh(client, tokens.refresh_token)).body.error_description).toMatch(/revoked/)
  })

  it('refuses a request that was admitted before it, and whose transaction comes after it', async () => {
    const administrator = await people.person({ isAdmin: true })
    const { access_token: token } = await new OpenIdClient(world).signIn(administrator)
    const { passwords } = world.controller.auth
    const identityId = await people.identity()
    const body = { identityId, method: 'updb', username: 'someone', password: 'correct horse battery' }
    const hash = passwords.hash.bind(passwords)
    const replaced = vi.spyOn(passwords, 'hash').mockImplementationOnce(async (...values) => {
      await revoke('JTI', readClaims(token).jti)
      return hash(...values)
    })

    const request = { method: 'POST', path: `${MANAGEMENT}/authenticators`, headers: bearer(token), body }
    const { status } = await world.send(request)

    expect([status, replaced.mock.calls.length]).toEqual([401, 1])
    expect((await people.manage('GET', `/identities/${identityId}/authenticators`)).length).toBe(0)
    replaced.mockRestore()
  })

  it('refuses a transaction that commits together with it', async () => {
    const administrator = await people.person({ isAdmin: true })
    const tokens = await new OpenIdClient(world).signIn(administrator)
    const { z_asid: id, jti } = readClaims(tokens.access_token)
    const { auth, clock, contexts } = world.controller
    const caller = callerFromApiSession(auth, auth.apiSessions.get(id), [], clock.now(), jti)
    const write = () => contexts.create(caller, { requestId: 'a', address: undefined }).write(async () => 'written')
    const before = await write()

    const [, after] = await Promise.allSettled([
      revokeByAdministrator(auth.apiSessions, world.system, { type: 'JTI', id: jti }),
      write(),
    ])

    expect([before, after]).toMatchObject(['written', { status: 'rejected', reason: { code: 'UNAUTHORIZED' } }])
  })

  it('of a refresh token has the one before refused too, which would give the same one for a minute', async () => {
    const client = new OpenIdClient(world)
    const { refresh_token: former } = await client.signIn(await people.person())
    const { refresh_token: current } = (await refresh(client, former)).body
    await revoke('JTI', readClaims(current).jti)

    const responses = [await refresh(client, current), await refresh(client, former), await exchange(client, former)]

    for (const { body, status } of responses)
      expect([status, body.error, body.error_description]).toEqual([
        400,
        'invalid_grant',
        'the refresh token was revoked',
      ])
  })

  it('that was made while the clock was ahead is kept for as long as the tokens of that time are valid', async () => {
    setClock(25 * HOUR_MS)
    const { jti } = readClaims((await new OpenIdClient(world).signIn(await people.person())).access_token)
    await revoke('JTI', jti)
    setClock(-25 * HOUR_MS)
    world.clock.advance(2 * DAY_MS)
    await removeEnded()
    const before = await listRevocations()
    world.clock.advance(HOUR_MS)
    await removeEnded()

    expect([before, await listRevocations()]).toEqual([[jti], []])
  })

  it('is removed when no token can be valid any more, also if the clock was set forward for good', async () => {
    const { jti } = readClaims((await new OpenIdClient(world).signIn(await people.person())).access_token)
    await revoke('JTI', jti)
    setClock(1_000 * DAY_MS)
    world.clock.advance(DAY_MS - 1)
    await removeEnded()
    const before = await listRevocations()
    world.clock.advance(1)
    await removeEnded()

    expect([before, await listRevocations()]).toEqual([[jti], []])
  })

  it('is removed after a day also if the clock was set forward hundreds of times before', async () => {
    for (let step = 0; step < 200; step++) setClock(DAY_MS)
    world.clock.advance(DAY_MS)
    people = await People.in(world, 'an administrator of the next day')
    const { jti } = readClaims((await new OpenIdClient(world).signIn(await people.person())).access_token)
    await revoke('JTI', jti)
    world.clock.advance(DAY_MS)
    await removeEnded()

    expect(await listRevocations()).toEqual([])
  })
})
