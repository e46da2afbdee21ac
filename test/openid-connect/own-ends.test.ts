// The traces of sign-ins and of their ends that an identity can make by itself: few, because it can repeat them all day.
import { beforeEach, describe, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useControllerPerTest } from '../world/use-controller.ts'
import { useUpWrites } from '../world/write-limits.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const world = useControllerPerTest({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People
let person: Person

beforeEach(async () => {
  people = await People.in(world)
  // A router of release 2 has connected: revocations are for these.
  await world.controller.sessionTokens.beginSigning(world.system)
  person = await people.person()
  // Later sign-ins of the hour are counted in the record of this one.
  await new OpenIdClient(world).signIn(person)
})

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

const countRecords = async () => (await world.system.db.selectFrom('audit_records').select('n').execute()).length

/** The records that the audit has besides those before, as what they say of which resource. */
const listRecordsAfter = async (count: number) => {
  const rows = await world.system.db
    .selectFrom('audit_records')
    .select(['operation', 'resource'])
    .orderBy('n')
    .offset(count)
    .limit(1_000)
    .execute()
  return rows.map(({ operation, resource }) => `${operation} ${resource}`)
}

const endOf = async (tokens: Tokens) => {
  const id = readClaims(tokens.access_token).z_asid
  return (await world.system.db.selectFrom('revocations').select('expiresAt').where('id', '=', id).execute()).at(0)
    ?.expiresAt
}

const ends: [string, (client: OpenIdClient, tokens: Tokens) => Promise<unknown>][] = [
  [
    'a revocation by its client',
    (client, { refresh_token: token }) => client.postForm('/oidc/revoke', { client_id: 'native', token }),
  ],
  ['a sign-out', (client, { id_token }) => client.get(`/oidc/end_session?id_token_hint=${id_token}`)],
  [
    'its end over the client API',
    (_client, { access_token }) =>
      world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, headers: bearer(access_token) }),
  ],
]

describe('the end of a session by its own client', () => {
  it.each(ends)('leaves no audit record of its own: %s', async (_name, end) => {
    const before = await countRecords()
    for (let turn = 0; turn < 3; turn++) {
      const client = new OpenIdClient(world)
      await end(client, await client.signIn(person))
    }

    expect(await listRecordsAfter(before)).toEqual([])
    expect(world.controller.auth.apiSessions.listOfIdentity(person.id).length).toBe(1)
  })

  it('leaves none if a sign-in replaces another one of the same request', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const before = await countRecords()
    for (let turn = 0; turn < 3; turn++) expect((await client.login(id, person)).status).toBe(302)

    expect(await listRecordsAfter(before)).toEqual([])
  })

  it.each(ends)('is kept for routers for little longer than access tokens last: %s', async (_name, end) => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(person)
    await end(client, tokens)

    const retentionMs = Number(await endOf(tokens)) - world.clock.now()

    expect(retentionMs).toBeGreaterThan(30 * MINUTE_MS)
    expect(retentionMs).toBeLessThanOrEqual(2 * HOUR_MS)
  })
})

describe('the end of a session by others', () => {
  it('is an audit record, and is kept for routers for a day', async () => {
    const tokens = await new OpenIdClient(world).signIn(person)
    const before = await countRecords()
    await people.manage('DELETE', `/api-sessions/${readClaims(tokens.access_token).z_asid}`)

    expect(await listRecordsAfter(before)).toEqual(['delete api-sessions'])
    expect(Number(await endOf(tokens)) - world.clock.now()).toBe(24 * HOUR_MS)
  })

  it('is an audit record if a code or a refresh token is used twice', async () => {
    const client = new OpenIdClient(world)
    const refresh = (token: string) =>
      client.postForm('/oidc/oauth/token', { grant_type: 'refresh_token', client_id: 'native', refresh_token: token })
    const redeemed = async () => {
      const id = await client.begin()
      await client.login(id, person)
      const code = await client.finish(id)
      return { code, tokens: (await client.redeem(code)).body as Tokens }
    }
    const [first, second] = [await redeemed(), await redeemed()]
    await refresh(second.tokens.refresh_token)
    const before = await countRecords()

    const again = await client.redeem(first.code)
    world.clock.advance(MINUTE_MS)
    const late = await refresh(second.tokens.refresh_token)

    expect([again.body.error, late.body.error]).toEqual(['invalid_grant', 'invalid_grant'])
    expect(await listRecordsAfter(before)).toEqual(['delete api-sessions', 'delete api-sessions'])
  })

  it('is an audit record if a code is used twice at a time, and one use gets tokens that have ended', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, person)
    const code = await client.finish(id)
    const before = await countRecords()

    const responses = await Promise.all([client.redeem(code), client.redeem(code)])

    expect(responses.map(({ status }) => status)).toContain(400)
    expect(await listRecordsAfter(before)).toEqual(['delete api-sessions'])
    expect(world.controller.auth.apiSessions.listOfIdentity(person.id).length).toBe(1)
  })
})

describe('a code', () => {
  it('is redeemed no more often than its identity may write, and once more when it may again', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, person)
    const code = await client.finish(id)
    // The sign-in before was counted, too.
    world.clock.advance(1_000)
    useUpWrites(world, person.id)

    const refused = await client.redeem(code)
    world.clock.advance(1_000)
    const next = await client.redeem(code)

    expect([refused.status, refused.headers['retry-after'], next.status]).toEqual([429, '1', 200])
  })
})
