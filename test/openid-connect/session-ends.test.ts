// When sessions by OpenID Connect end by themselves: with their sign-in if it leads to no tokens, and with their last token.
import { beforeAll, describe, expect, it } from 'vitest'
import type { ApiSessionIdentity } from '../../src/authentication/api-sessions/live-api-sessions.ts'
import { apiSessions as apiSessionResource } from '../../src/definitions/resources/api-sessions.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { errors } from '../../src/foundation/errors.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { CLIENT } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const SETTINGS = { ...OIDC_SETTINGS, 'session.timeout': '24h' }
const world = useController({ settings: SETTINGS })
let people: People

beforeAll(async () => {
  people = await People.in(world)
  // A router of release 2 has connected: revocations are for these.
  await world.controller.sessionTokens.beginSigning(world.system)
})

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

/** The ids of the sessions of a person that are listed. */
async function listSessions(person: Person): Promise<string[]> {
  const { auth } = world.controller
  await auth.apiSessions.termination.deleteExpired(world.system)
  const rows = await world.system.db
    .selectFrom('api_sessions')
    .select('id')
    .where('identityId', '=', person.id)
    .execute()
  const ids = rows.map(({ id }) => id)
  // Memory knows the same ones.
  expect(auth.apiSessions.listOfIdentity(person.id).map(({ id }) => id)).toEqual(ids)
  return ids
}

const listRevocations = async () => {
  const rows = await world.system.db.selectFrom('revocations').select('id').execute()
  return rows.map(({ id }) => id)
}

/** A sign-in that waits for its client to fetch the tokens. */
async function begun(person: Person): Promise<{ client: OpenIdClient; requestId: string; sessionId: string }> {
  const client = new OpenIdClient(world)
  const requestId = await client.begin()
  expect((await client.login(requestId, person)).status).toBe(302)
  const [sessionId = ''] = await listSessions(person)
  return { client, requestId, sessionId }
}

describe('the session of a sign-in that leads to no tokens', () => {
  it('ends ten minutes after it', async () => {
    const person = await people.person()
    const { sessionId } = await begun(person)
    world.clock.advance(10 * MINUTE_MS - 1)
    const before = await listSessions(person)
    world.clock.advance(1)

    expect([before, await listSessions(person)]).toEqual([[sessionId], []])
  })

  it('ends as early if the process was restarted meanwhile', async () => {
    const person = await people.person()
    const { sessionId } = await begun(person)
    await world.stop()
    await world.reopen({ settings: SETTINGS })
    const before = await listSessions(person)
    world.clock.advance(10 * MINUTE_MS)

    expect([before, await listSessions(person)]).toEqual([[sessionId], []])
    people = await People.in(world, 'an administrator after the restart')
  })

  it('ends although a write that should end it failed', async () => {
    const person = await people.person()
    await begun(person)
    world.clock.advance(10 * MINUTE_MS)
    const { store } = world.controller
    const write = store.write.bind(store)
    store.write = async () => {
      throw new Error('the disk is full')
    }
    await world.controller.auth.apiSessions.termination.deleteExpired(world.system).catch(() => undefined)
    store.write = write

    expect(await listSessions(person)).toEqual([])
  })

  it('goes on if the controller is too busy to issue the tokens, and gets them by the same code afterwards', async () => {
    const person = await people.person()
    const { client, requestId, sessionId } = await begun(person)
    const code = await client.finish(requestId)
    const { store } = world.controller
    const write = store.write.bind(store)
    const statuses: number[] = []
    for (const error of [errors.SERVER_TOO_MANY_REQUESTS(), errors.STORAGE_UNAVAILABLE()]) {
      // Only the first write fails: one that ended the session would succeed.
      store.write = () => {
        store.write = write
        return Promise.reject(error)
      }
      statuses.push((await client.redeem(code)).status)
    }
    expectFaults(/a request failed.*STORAGE_UNAVAILABLE/, /returned 503/)

    expect(statuses).toEqual([429, 503])
    expect(await listSessions(person)).toEqual([sessionId])
    expect((await client.redeem(code)).status).toBe(200)
  })

  it.each([
    [
      'is replaced by another one of the same request',
      ({ client, requestId }: Awaited<ReturnType<typeof begun>>, person: Person) => client.login(requestId, person),
    ],
    [
      'is signed out by an administrator',
      ({ sessionId }: Awaited<ReturnType<typeof begun>>) => people.manage('DELETE', `/api-sessions/${sessionId}`),
    ],
  ])('is not revoked at routers if it %s', async (_name, end) => {
    const person = await people.person()
    const signIn = await begun(person)
    await end(signIn, person)

    expect(await listSessions(person)).not.toContain(signIn.sessionId)
    expect(await listRevocations()).not.toContain(signIn.sessionId)
  })
})

describe('the session of tokens', () => {
  const signedIn = async (scope: string) => {
    const [person, client] = [await people.person(), new OpenIdClient(world)]
    const id = await client.begin({ scope })
    await client.login(id, person)
    const { body } = await client.redeem(await client.finish(id))
    return { client, person, tokens: body as Tokens }
  }
  const refresh = (client: OpenIdClient, token: string) =>
    client.postForm('/oidc/oauth/token', { grant_type: 'refresh_token', client_id: 'native', refresh_token: token })

  it('ends with the access token if there is no refresh token', async () => {
    const { person, tokens } = await signedIn('openid')
    world.clock.advance(readClaims(tokens.access_token).exp * 1000 - world.clock.now() - 1)
    const before = await listSessions(person)
    world.clock.advance(1)

    expect([before.length, await listSessions(person)]).toEqual([1, []])
  })

  it('ends with the refresh token, which each refresh replaces by a later one', async () => {
    const { client, person, tokens } = await signedIn('openid offline_access')
    world.clock.advance(HOUR_MS)
    const { body } = await refresh(client, tokens.refresh_token)
    world.clock.advance(readClaims(body.refresh_token).exp * 1000 - world.clock.now() - 1)
    const before = await listSessions(person)
    world.clock.advance(1)

    expect([before.length, await listSessions(person)]).toEqual([1, []])
    people = await People.in(world, 'an administrator of the next day')
  })

  it('outlives the setting of the clock as its age does', async () => {
    const { person } = await signedIn('openid')
    world.clock.set(24 * HOUR_MS)
    const after = await listSessions(person)
    world.clock.advance(30 * MINUTE_MS)

    expect([after.length, await listSessions(person)]).toEqual([1, []])
    world.clock.set(-24 * HOUR_MS)
  })

  it('is never outlived by a token', async () => {
    const { client, tokens } = await signedIn('openid offline_access')
    const first = await refresh(client, tokens.refresh_token)
    world.clock.advance(MINUTE_MS - 1_000)
    const again = await refresh(client, tokens.refresh_token)

    expect(readClaims(again.body.refresh_token).exp).toBe(readClaims(first.body.refresh_token).exp)
  })

  it('is revoked at routers if it is signed out, and not if its last token has ended', async () => {
    const [signedOut, over] = [await signedIn('openid'), await signedIn('openid')]
    const idOf = ({ tokens }: { tokens: Tokens }) => readClaims(tokens.access_token).z_asid
    await people.manage('DELETE', `/api-sessions/${idOf(signedOut)}`)
    world.clock.advance(30 * MINUTE_MS)
    await listSessions(over.person)

    const revocations = await listRevocations()

    expect([revocations.includes(idOf(signedOut)), revocations.includes(idOf(over))]).toEqual([true, false])
  })

  it('stays revoked at routers for as long as its tokens are valid', async () => {
    await world.stop()
    await world.reopen({ settings: { ...SETTINGS, 'oidc.accessTokenLifetime': '48h' } })
    people = await People.in(world, 'an administrator of long tokens')
    const { tokens } = await signedIn('openid')
    const { exp, z_asid: id } = readClaims(tokens.access_token)
    await people.manage('DELETE', `/api-sessions/${id}`)

    const { body } = await people.ask('GET', `/revocations/${id}`)

    expect(Date.parse(body.data.expiresAt)).toBeGreaterThanOrEqual(exp * 1000)
  })
})

describe('sessions that one change revokes by the hundred', () => {
  it('are revoked at routers in its commit, and once', async () => {
    const authPolicyId = await people.policy({})
    const person = await people.person({ authPolicyId })
    const { access_token: token } = await new OpenIdClient(world).signIn(person)
    const { apiSessions } = world.controller.auth
    const ids: string[] = [readClaims(token).z_asid]
    await world.system.write(async (tx) => {
      const identity = (await get(tx, identities, person.id)) as unknown as ApiSessionIdentity
      const values = { identity, authenticatorId: 'a', clientId: 'native', ipAddress: '', configTypes: [] }
      for (let count = 0; count < 300; count++) {
        const session = await apiSessions.insert(tx, values, { method: 'password', audit: 'none' })
        await world.controller.entities.update(tx, apiSessionResource, session, { hasTokens: true })
        ids.push(session.id)
      }
    })
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { primary: { updb: { allowed: false } } })
    const listPositions = () =>
      world.system.db
        .selectFrom('revocations')
        .select(['id', 'n', 'issuedBefore'])
        .where('id', 'in', ids)
        .orderBy('n')
        .execute()
    const revoked = await listPositions()
    const isAdmitted = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })
    world.clock.advance(1_000)
    await apiSessions.termination.deleteRevoked(world.system)

    expect([revoked.length, isAdmitted.status]).toEqual([301, 401])
    expect(await listPositions()).toEqual(revoked)
    expect(await listSessions(person)).toEqual([])
  })
})
