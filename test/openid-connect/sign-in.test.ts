// Sign-in by OpenID Connect: the steps of a client, the tokens that it receives, and what they are good for.
import { createLocalJWKSet, jwtVerify } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, FABRIC, MANAGEMENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, ISSUER, OIDC_SETTINGS, OpenIdClient, REDIRECT, readClaims } from './client.ts'

const LONG = 'x'.repeat(5_000)
const OTHER_VERIFIER = 'x'.repeat(43)

const world = useController({
  settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' },
})
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const ask = (path: string, token: string, method = 'GET') => world.send({ method, path, headers: bearer(token) })

describe('the discovery document', () => {
  it('names the issuer by which its client reaches the controller, and all endpoints below it', async () => {
    const { body, headers, status } = await new OpenIdClient(world).get('/oidc/.well-known/openid-configuration')

    expect([status, headers['content-type']]).toEqual([200, 'application/json'])
    expect(body).toMatchObject({
      issuer: ISSUER,
      authorization_endpoint: `${ISSUER}/authorize`,
      token_endpoint: `${ISSUER}/oauth/token`,
      jwks_uri: `${ISSUER}/keys`,
      openziti_endpoints: {
        password: `${ISSUER}/login/password`,
        totp_enroll_verify: `${ISSUER}/login/totp/enroll/verify`,
      },
    })
    expect(Object.keys(body.openziti_endpoints)).toHaveLength(7)
  })

  it('has the issuer of another name of the controller, in lower case', async () => {
    const path = '/oidc/.well-known/openid-configuration'
    const { body } = await world.send({ method: 'GET', path, headers: { host: 'LOCALHOST:1280' } })

    expect(body.issuer).toBe('https://localhost:1280/oidc')
  })

  it.each(['evil.example.com:1280', '127.0.0.1:9', 'evil@127.0.0.1:1280', ''])(
    'is not found at the host %j',
    async (host) => {
      const path = '/oidc/.well-known/openid-configuration'
      const { status } = await world.send({ method: 'GET', path, headers: { host } })

      expect(status).toBe(404)
    },
  )
})

describe('a client', () => {
  it('receives tokens by name and password that the published keys verify', async () => {
    const person = await people.person()
    const client = new OpenIdClient(world)

    const tokens = await client.signIn(person)

    const keys = createLocalJWKSet((await client.get('/oidc/keys')).body)
    const options = { issuer: ISSUER, audience: 'native', currentDate: new Date(world.clock.now()) }
    for (const token of [tokens.access_token, tokens.refresh_token, tokens.id_token])
      expect((await jwtVerify(token, keys, options)).protectedHeader).toMatchObject({ alg: 'ES256', typ: 'JWT' })
    const claims = readClaims(tokens.access_token)
    expect(claims).toMatchObject({
      sub: person.id,
      client_id: 'native',
      z_aid: 'native',
      scopes: ['openid', 'offline_access'],
      amr: ['password'],
      z_t: 'a',
      z_authid: person.authenticatorId,
      z_cfs: null,
      z_ice: false,
    })
    expect(claims.z_asid).toMatch(/^[0-9A-Z]{26}$/)
    expect(claims.exp - claims.iat).toBe(30 * 60)
    expect(claims).not.toHaveProperty('z_ia')
    expect(readClaims(tokens.refresh_token)).toMatchObject({ z_t: 'r', z_asid: claims.z_asid, jti: claims.jti })
    expect(readClaims(tokens.id_token)).toMatchObject({
      sub: person.id,
      nonce: client.nonce,
      z_ia: false,
      azp: 'native',
    })
  })

  it('calls every API by its access token, with the rights of its identity', async () => {
    const person = await people.person({ isAdmin: true })
    const { access_token: token } = await new OpenIdClient(world, 'openziti').signIn(person)

    const paths = [`${CLIENT}/current-identity`, `${MANAGEMENT}/identities`, `${FABRIC}/routers`]
    const statuses = await Promise.all(paths.map(async (path) => (await ask(path, token)).status))

    expect(statuses).toEqual([200, 200, 200])
  })

  it('without the right is refused by its token as by a session header', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())

    const { body, status } = await ask(`${MANAGEMENT}/identities`, token)

    expect([status, body.error.cause.code]).toEqual([401, 'PERMISSION_DENIED'])
  })

  it.each(['refresh_token', 'id_token'] as const)('calls nothing by its %s', async (kind) => {
    const tokens = await new OpenIdClient(world).signIn(await people.person())

    expect((await ask(`${CLIENT}/current-identity`, tokens[kind])).status).toBe(401)
  })

  it('has a session as any other, whose token is the one of the request', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    const id = readClaims(token).z_asid

    const own = await ask(`${CLIENT}/current-api-session`, token)
    const listed = await people.manage('GET', `/api-sessions/${id}`)

    expect(own.body.data).toMatchObject({ id, token })
    expect(listed).toMatchObject({ id, token: null })
  })

  it('calls nothing by its token after its session was deleted', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    await people.manage('DELETE', `/api-sessions/${readClaims(token).z_asid}`)

    expect((await ask(`${CLIENT}/current-identity`, token)).status).toBe(401)
  })

  it('ends its session by its token', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())

    const { status } = await ask(`${CLIENT}/current-api-session`, token, 'DELETE')

    expect([status, (await ask(`${CLIENT}/current-identity`, token)).status]).toEqual([200, 401])
  })

  it('calls nothing by a token whose time is over', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    expect((await ask(`${CLIENT}/current-identity`, token)).status).toBe(200)

    world.clock.advance(30 * 60_000)

    expect((await ask(`${CLIENT}/current-identity`, token)).status).toBe(401)
  })

  it('is sent to the page of its method, which says the id of the request', async () => {
    const client = new OpenIdClient(world)
    const { headers } = await client.authorize({ method: 'ext-jwt' })
    const id = await client.begin()

    expect(headers.location).toMatch(/^\/oidc\/login\/ext-jwt\?authRequestID=[\w-]+$/)
    expect((await client.get(`/oidc/login/username?authRequestID=${id}`)).headers['auth-request-id']).toBe(id)
  })

  it('may send everything in the query of a POST, and JSON to the login', async () => {
    const person = await people.person()
    const client = new OpenIdClient(world, 'openziti')
    const response = await client.postForm(`/oidc/authorize?${new URLSearchParams(client.parameters)}`, {})
    const location = String(response.headers.location)
    const id = location.slice(location.indexOf('=') + 1)

    const body = {
      username: person.username,
      password: person.password,
      sdkInfo: { type: 'ziti-sdk-c' },
      envInfo: { os: 'Linux' },
    }
    const login = await client.postJson(`/oidc/login/password?id=${id}`, body)
    const tokens = await client.redeem(await client.finish(id))

    expect(login.status).toBe(302)
    expect(readClaims(tokens.body.access_token)).toMatchObject({
      z_sdk: { type: 'ziti-sdk-c' },
      z_env: { os: 'Linux' },
    })
    expect(await people.manage('GET', `/identities/${person.id}`)).toMatchObject({
      sdkInfo: { type: 'ziti-sdk-c' },
      envInfo: { os: 'Linux' },
    })
  })

  it('is told the state that it sent, after the code', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, await people.person())

    const { headers } = await client.get(`/oidc/authorize/callback?id=${id}`)

    expect(headers.location).toMatch(new RegExp(`^${REDIRECT}\\?code=[\\w-]+&state=${client.state}$`))
  })

  it('is told that the sign-in is not complete', async () => {
    const client = new OpenIdClient(world)
    const { headers } = await client.get(`/oidc/authorize/callback?id=${await client.begin()}`)

    expect(String(headers.location)).toMatch(/error=interaction_required/)
  })
})

describe('a login', () => {
  it('is refused with a wrong password, of a stranger, for an unknown request, and without a password', async () => {
    const person = await people.person()
    const client = new OpenIdClient(world)
    const id = await client.begin()

    const wrong = await client.login(id, { ...person, password: 'wrong horse' })
    const stranger = await client.login(id, { ...person, username: 'a stranger' })
    const unknown = await client.login('6fd72218-2e8f-46ac-92d4-236df815fede', person)
    const missing = await client.postForm('/oidc/login/password', { id, username: person.username })

    for (const { body, headers, status } of [wrong, stranger])
      expect([status, headers['content-type'], body.code]).toEqual([401, 'application/json', 'INVALID_AUTH'])
    expect([unknown.status, unknown.body.code]).toEqual([401, 'UNAUTHORIZED'])
    expect([missing.status, missing.body.code]).toEqual([400, 'COULD_NOT_VALIDATE'])
  })

  it('takes a form or JSON and nothing else', async () => {
    const client = new OpenIdClient(world)
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const response = await client.postForm('/oidc/login/password', { id: await client.begin() }, headers)

    expect([response.status, response.body.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE'])
  })
})

describe('an authorization request', () => {
  it.each([
    ['without a client', { client_id: undefined }, 'invalid_request'],
    ['of an unknown client', { client_id: 'stranger' }, 'invalid_client'],
    ['without a redirect URI', { redirect_uri: undefined }, 'invalid_request'],
    ['with another redirect URI', { redirect_uri: 'https://evil.example.com/auth/callback' }, 'invalid_request'],
    ['without a scope', { scope: undefined }, 'invalid_request'],
    ['without a response type', { response_type: undefined }, 'invalid_request'],
    ['with another response type', { response_type: 'token' }, 'unauthorized_client'],
    ['without a challenge', { code_challenge: undefined }, 'invalid_request'],
    ['with a plain challenge', { code_challenge_method: 'plain' }, 'invalid_request'],
    ['without a method of the challenge', { code_challenge_method: undefined }, 'invalid_request'],
    ['with a text as max_age', { max_age: 'text' }, 'invalid_request'],
    ['with a contradictory prompt', { prompt: 'none login' }, 'invalid_request'],
    ['with a request object', { request: 'e30.e30.' }, 'request_not_supported'],
    ['with a state that is too long', { state: LONG }, 'invalid_request'],
  ])('%s is refused, and nothing is redirected', async (_name, changes, error) => {
    const { body, headers, status } = await new OpenIdClient(world).authorize(changes)

    expect([status, body.error, headers.location]).toEqual([400, error, undefined])
  })

  it.each([
    ['http://127.0.0.1:*/auth/callback', 'http://127.0.0.1:*/auth/callback'],
    ['https://%.example.com/callback', 'https://%.example.com/callback'],
    ['https://*.example.com/callback', '*.example.com'],
  ])('for the registered redirect URI %s shows a browser where it leads to', async (uri, destination) => {
    await people.manage('PATCH', '/controller-settings/global', { oidc: { redirectUris: [uri] } })
    const client = new OpenIdClient(world)
    const id = await client.begin({ redirect_uri: uri })

    const page = await client.get(`/oidc/login/password?authRequestID=${id}`, { accept: 'text/html' })

    expect([page.status, page.text.includes(`you return to ${destination}.<`)]).toEqual([200, true])
  })

  it('that may show no page is sent back', async () => {
    const client = new OpenIdClient(world)
    const { headers } = await client.authorize({ prompt: 'none' })

    expect(headers.location).toMatch(/^http:\/\/localhost:8080\/auth\/callback\?error=login_required&.*state=/)
  })
})

describe('the exchange of a code', () => {
  const begin = async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, await people.person())
    return { client, id, code: await client.finish(id) }
  }

  it.each([
    [{ client_id: 'openziti' }, 'invalid_grant'],
    [{ client_id: 'stranger' }, 'invalid_client'],
    [{ redirect_uri: 'http://localhost:8081/auth/callback' }, 'invalid_grant'],
    [{ code_verifier: OTHER_VERIFIER }, 'invalid_grant'],
    [{ code_verifier: '' }, 'invalid_request'],
    [{ code: 'bogus' }, 'invalid_grant'],
    [{ grant_type: 'password' }, 'unsupported_grant_type'],
    [{ grant_type: '' }, 'invalid_request'],
  ])('with %j is refused, and the code stays good', async (changes, error) => {
    const { client, code } = await begin()

    const refused = await client.redeem(code, changes)

    expect([refused.status, refused.body.error]).toEqual([400, error])
    expect((await client.redeem(code)).status).toBe(200)
  })

  it('succeeds once of fifty at a time, and a second use ends the session', async () => {
    const { client, code } = await begin()

    const responses = await Promise.all(Array.from({ length: 50 }, () => client.redeem(code)))

    const successes = responses.filter(({ status }) => status === 200)
    expect(successes.length).toBeLessThanOrEqual(1)
    for (const { body } of successes)
      expect((await ask(`${CLIENT}/current-identity`, body.access_token)).status).toBe(401)
  })

  it('is refused after a minute', async () => {
    const { client, code } = await begin()
    world.clock.advance(60_000)

    expect((await client.redeem(code)).body.error).toBe('invalid_grant')
  })

  it('is not stored by caches', async () => {
    const { client, code } = await begin()

    expect((await client.redeem(code)).headers).toMatchObject({ 'cache-control': 'no-store', pragma: 'no-cache' })
  })
})
