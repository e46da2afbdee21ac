// The ends of a session by OpenID Connect: after each of them, no token of it is good for anything, and no other session has ended.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, FABRIC, MANAGEMENT } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { EXCHANGE, TOKEN_TYPE } from './certificate-client.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People
let administrator: string

beforeAll(async () => {
  people = await People.in(world)
  administrator = (await new OpenIdClient(world).signIn(await people.person({ isAdmin: true }))).access_token
})

interface Session {
  readonly client: OpenIdClient
  readonly person: Person
  readonly tokens: Tokens
  readonly id: string
}

async function signIn(person: Person): Promise<Session> {
  const client = new OpenIdClient(world)
  const tokens = await client.signIn(person)
  return { client, person, tokens, id: readClaims(tokens.access_token).z_asid }
}

const call = (token: string, path: string, method = 'GET') => world.send({ method, path, headers: bearer(token) })

const form = { client_id: 'native' }

/** The statuses of all that tokens are good for. */
async function useTokens({ client, tokens }: Session): Promise<Readonly<Record<string, number>>> {
  const { access_token: access, refresh_token: refresh } = tokens
  const exchange = async (token: string, kind: string, requested: string) =>
    (
      await client.postForm('/oidc/oauth/token', {
        ...{ ...form, grant_type: EXCHANGE, subject_token: token },
        subject_token_type: `${TOKEN_TYPE}${kind}_token`,
        requested_token_type: `${TOKEN_TYPE}${requested}_token`,
      })
    ).status
  const refreshForm = { ...form, grant_type: 'refresh_token', refresh_token: refresh }
  return {
    client: (await call(access, `${CLIENT}/current-identity`)).status,
    management: (await call(access, `${MANAGEMENT}/identities`)).status,
    fabric: (await call(access, `${FABRIC}/routers`)).status,
    userinfo: (await client.get('/oidc/userinfo', bearer(access))).status,
    exchange: await exchange(access, 'access', 'access'),
    exchangeForId: await exchange(refresh, 'refresh', 'id'),
    exchangeForRefresh: await exchange(refresh, 'refresh', 'refresh'),
    refresh: (await client.postForm('/oidc/oauth/token', refreshForm)).status,
  }
}

const USED = {
  ...{ client: 200, management: 200, fabric: 200, userinfo: 200 },
  ...{ exchange: 200, exchangeForId: 200, exchangeForRefresh: 200, refresh: 200 },
}
const ENDED = {
  ...{ client: 401, management: 401, fabric: 401, userinfo: 401 },
  ...{ exchange: 400, exchangeForId: 400, exchangeForRefresh: 400, refresh: 400 },
}

const revoke = (type: string, id: string) => people.manage('POST', '/revocations', { type, id })

describe('a session ends', () => {
  it.each<[string, (session: Session) => Promise<unknown>]>([
    ['by its client', ({ tokens }) => call(tokens.access_token, `${CLIENT}/current-api-session`, 'DELETE')],
    [
      'by its client at the management API',
      ({ tokens }) => call(tokens.access_token, `${MANAGEMENT}/current-api-session`, 'DELETE'),
    ],
    [
      'by the end of its access token',
      ({ client, tokens }) => client.postForm('/oidc/revoke', { ...form, token: tokens.access_token }),
    ],
    [
      'by the end of its refresh token',
      ({ client, tokens }) => client.postForm('/oidc/revoke', { ...form, token: tokens.refresh_token }),
    ],
    ['by a sign-out', ({ client, tokens }) => client.get(`/oidc/end_session?id_token_hint=${tokens.id_token}`)],
    ['by an administrator', ({ id }) => people.manage('DELETE', `/api-sessions/${id}`)],
    [
      'by an administrator with an access token',
      ({ id }) => call(administrator, `${MANAGEMENT}/api-sessions/${id}`, 'DELETE'),
    ],
    ['by a revocation', ({ id }) => revoke('API_SESSION', id)],
  ])('%s, and no other session of the identity', async (_name, end) => {
    const person = await people.person({ isAdmin: true })
    const [session, other] = [await signIn(person), await signIn(person)]

    await end(session)

    expect(await useTokens(session)).toEqual(ENDED)
    expect(await useTokens(other)).toEqual(USED)
  })

  it.each<[string, (person: Person) => Promise<unknown>]>([
    ['is revoked', ({ id }) => revoke('IDENTITY', id)],
    [
      'is disabled and enabled',
      async ({ id }) => {
        await people.manage('POST', `/identities/${id}/disable`, { durationMinutes: 0 })
        await people.manage('POST', `/identities/${id}/enable`)
      },
    ],
    ['is deleted', ({ id }) => people.manage('DELETE', `/identities/${id}`)],
    ['loses its credential', ({ authenticatorId }) => people.manage('DELETE', `/authenticators/${authenticatorId}`)],
    [
      'is given another password',
      ({ authenticatorId }) =>
        people.manage('PATCH', `/authenticators/${authenticatorId}`, { password: 'another horse battery' }),
    ],
  ])('if its identity %s, and no session of another identity', async (_name, change) => {
    const [person, stranger] = [await people.person({ isAdmin: true }), await people.person({ isAdmin: true })]
    const [session, other] = [await signIn(person), await signIn(stranger)]

    await change(person)

    expect(await useTokens(session)).toEqual(ENDED)
    expect(await useTokens(other)).toEqual(USED)
    expect(world.controller.auth.apiSessions.listOfIdentity(person.id)).toEqual([])
  })
})

describe('where a sign-out leads to', () => {
  it.each(['https://console.example.com/', 'openziti://auth/logout'])(
    '%s is an address of the settings or of the app',
    async (uri) => {
      await people.manage('PATCH', '/controller-settings/global', {
        oidc: { postLogoutUris: ['https://console.example.com/'] },
      })
      const { headers, status } = await new OpenIdClient(world).get(
        `/oidc/end_session?client_id=native&post_logout_redirect_uri=${encodeURIComponent(uri)}`,
      )

      expect([status, headers.location]).toEqual([302, uri])
    },
  )

  it.each([
    'https://console.example.com',
    'https://console.example.com/?next=x',
    'https://console.example.com/#fragment',
    'https://user@console.example.com/',
    'https://console.example.com:443/',
    'https://console.example.com.evil.com/',
    'https://console.example.com@evil.com/',
    'https://console.example.com\\@evil.com/',
    'https://CONSOLE.example.com/',
    'http://console.example.com/',
    '//console.example.com/',
    'javascript:alert(1)',
    'openziti://auth/logout/..',
    'openziti://auth/logout?x=y',
    'http://localhost:8080/auth/logout',
    'https://console.example.com/\n',
    ' https://console.example.com/',
  ])('is never %j, and the session stays', async (uri) => {
    await people.manage('PATCH', '/controller-settings/global', {
      oidc: { postLogoutUris: ['https://console.example.com/'] },
    })
    const { client, tokens } = await signIn(await people.person({ isAdmin: true }))
    const query = new URLSearchParams({ id_token_hint: tokens.id_token, post_logout_redirect_uri: uri })

    const { headers, status } = await client.get(`/oidc/end_session?${query}`)

    expect([status, headers.location]).toEqual([400, undefined])
    expect((await call(tokens.access_token, `${CLIENT}/current-identity`)).status).toBe(200)
  })
})
