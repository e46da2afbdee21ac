// Attacks on sign-in by OpenID Connect: redirects, codes, tokens and requests in the wrong hands.
import { generateKeyPairSync } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { decodeProtectedHeader, SignJWT, UnsecuredJWT } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { openIdOperations } from '../../server/operations/openid-connect/operations.ts'
import { readAuthorizationParameters } from '../../src/authentication/openid-connect/authorization-parameters.ts'
import { isRedirectUriAllowed } from '../../src/authentication/openid-connect/redirect-uris.ts'
import { CLIENT, MANAGEMENT, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, encodeForm, type Form, HOST, OIDC_SETTINGS, OpenIdClient, REDIRECT, readClaims } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const ask = (token: string, path = `${CLIENT}/current-identity`) =>
  world.send({ method: 'GET', path, headers: bearer(token) })

describe('a redirect URI', () => {
  it.each([
    'openziti://auth/callback',
    'http://localhost:8080/auth/callback',
    'http://127.0.0.1:31999/auth/callback',
    'https://localhost:1/auth/callback',
    'https://127.0.0.1:65535/auth/callback',
    'https://console.example.com/auth/callback',
  ])('%s is accepted', (uri) => {
    expect(isRedirectUriAllowed(uri, ['https://console.example.com/auth/callback'])).toBe(true)
  })

  it.each([
    'https://localhost:80@evil.example.com/auth/callback',
    'https://localhost:80%40evil.example.com/auth/callback',
    'http://localhost:8080\\@evil.example.com/auth/callback',
    'http://user@localhost:8080/auth/callback',
    'http://localhost/auth/callback',
    'http://localhost:/auth/callback',
    'http://localhost:0/auth/callback',
    'http://localhost:65536/auth/callback',
    'http://localhost:08080/auth/callback',
    'http://localhost:8080/auth/callback/',
    'http://localhost:8080/auth/callback?next=x',
    'http://localhost:8080/auth/callback#fragment',
    'http://localhost:8080/auth/../auth/callback',
    'http://localhost:8080/auth%2Fcallback',
    'http://localhost:8080//auth/callback',
    'http://LOCALHOST:8080/auth/callback',
    'http://localhost.:8080/auth/callback',
    'http://localhost.evil.example.com:8080/auth/callback',
    'http://127.0.0.2:8080/auth/callback',
    'http://[::1]:8080/auth/callback',
    'http://2130706433:8080/auth/callback',
    'HTTP://localhost:8080/auth/callback',
    'javascript:alert(1)//localhost:8080/auth/callback',
    'openziti://auth/callback/..',
    'openziti://evil/auth/callback',
    ' http://localhost:8080/auth/callback',
    'http://localhost:8080/auth/callback\n',
    'https://console.example.com/auth/callback?x=y',
    'https://CONSOLE.example.com/auth/callback',
    'https://console.example.com.evil.com/auth/callback',
    '',
  ])('%j is refused', (uri) => {
    expect(isRedirectUriAllowed(uri, ['https://console.example.com/auth/callback'])).toBe(false)
  })

  it('of the settings is in force with its commit, and exactly as it is written', async () => {
    const uri = 'https://console.example.com/auth/callback'
    const before = await new OpenIdClient(world).authorize({ redirect_uri: uri })
    await people.manage('PATCH', '/controller-settings/global', {
      oidc: { redirectUris: [uri, 'https://*.example.org/cb'] },
    })

    const after = await new OpenIdClient(world).authorize({ redirect_uri: uri })
    const glob = await new OpenIdClient(world).authorize({ redirect_uri: 'https://evil.example.org/cb' })

    expect([before.status, after.status, glob.status]).toEqual([400, 302, 400])
  })
})

describe('authorization requests', () => {
  const countRows = async () =>
    (await world.controller.store.db.selectFrom('api_sessions').select('id').execute()).length

  it('take no memory and no commit until their client has signed in', async () => {
    const { store } = world.controller
    const [position, rows] = [store.position, await countRows()]
    setFlagsFromString('--expose-gc')
    const collect = runInNewContext('gc') as () => void
    const { requests } = world.controller.openIdConnect
    const { nonce: _, ...parameters } = readAuthorizationParameters(new OpenIdClient(world).parameters, [])
    collect()
    const before = process.memoryUsage().heapUsed
    for (let count = 0; count < 20_000; count++) requests.begin({ ...parameters, nonce: String(count) }, [])
    collect()

    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000)
    await new OpenIdClient(world).begin()
    expect([store.position, await countRows()]).toEqual([position, rows])
  })

  it('have an id that fits into the buffer of the C SDK, with what that sends', async () => {
    const client = new OpenIdClient(world, 'openziti')
    const changes = { redirect_uri: 'http://localhost:20314/auth/callback', state: 's'.repeat(54) }
    const { nonce: _, ...parameters } = client.parameters

    const { headers } = await client.postForm(
      `/oidc/authorize?${encodeForm({ ...parameters, ...changes, audience: 'openziti' })}`,
      {},
    )

    const id = new URL(String(headers.location), `https://${HOST}`).searchParams.get('authRequestID') ?? ''
    expect(`/oidc/login/ext-jwt?id=${id}`.length).toBeLessThan(256)
  })

  it('of the greatest length that is accepted can be completed', async () => {
    const client = new OpenIdClient(world)
    const person = await people.person()
    const room = 4_096 - encodeForm(client.parameters).length
    const state = 'ä'.repeat(room / 2)
    const id = await client.begin({ state })

    expect((await client.login(id, person)).status).toBe(302)
    const { headers } = await client.get(`/oidc/authorize/callback?id=${id}`)
    expect(new URL(String(headers.location)).searchParams.get('state')).toBe(state)
  })

  it('end after ten minutes, whether their client has signed in or not', async () => {
    const client = new OpenIdClient(world)
    const [open, signedIn] = [await client.begin(), await client.begin()]
    const person = await people.person()
    await client.login(signedIn, person)
    world.clock.advance(10 * 60_000)

    expect((await client.login(open, person)).status).toBe(401)
    for (const id of [open, signedIn]) expect((await client.get(`/oidc/authorize/callback?id=${id}`)).status).toBe(400)
  })

  it('are over once their code is redeemed, also for a sign-in that would replace it', async () => {
    const client = new OpenIdClient(world)
    const person = await people.person()
    const id = await client.begin()
    await client.login(id, person)
    const { status, body } = await client.redeem(await client.finish(id))

    const again = await client.login(id, person)

    expect([status, again.status]).toEqual([200, 401])
    expect((await client.get(`/oidc/authorize/callback?id=${id}`)).status).toBe(400)
    expect((await ask(body.access_token)).status).toBe(200)
  })

  it('are not found by an id that was changed anywhere', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    for (let at = 0; at < id.length; at++) {
      const changed = id.slice(0, at) + (id[at] === 'A' ? 'B' : 'A') + id.slice(at + 1)
      expect((await client.get(`/oidc/login/username?authRequestID=${changed}`)).status).toBe(401)
    }
    for (const changed of [`${id}A`, `${id}==`, id.slice(1), id.slice(0, -1), ` ${id}`])
      expect((await client.get(`/oidc/login/username?authRequestID=${encodeURIComponent(changed)}`)).status).toBe(401)
  })

  it('are not found by a code, nor is a code of an id', async () => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, await people.person())
    const code = await client.finish(id)

    expect((await client.get(`/oidc/authorize/callback?id=${code}`)).status).toBe(400)
    expect((await client.redeem(id)).body.error).toBe('invalid_grant')
    expect((await client.redeem(code)).status).toBe(200)
  })

  it('go on after a restart of the controller, also with a code that was issued before', async () => {
    const own = await testController({ settings: OIDC_SETTINGS })
    const person = await (await People.in(own)).person()
    const client = new OpenIdClient(own)
    const [begun, signedIn, issued] = [await client.begin(), await client.begin(), await client.begin()]
    for (const id of [signedIn, issued]) await client.login(id, person)
    const code = await client.finish(issued)
    await own.stop()
    const again = await testController({ settings: OIDC_SETTINGS, directory: own.directory, clock: own.clock })
    const later = client.at(again)

    expect((await later.login(begun, person)).status).toBe(302)
    expect((await later.redeem(code)).status).toBe(200)
    expect((await later.redeem(await later.finish(signedIn))).status).toBe(200)
    await again.close()
  })

  it('are refused if the config types that they name are too long', async () => {
    const client = new OpenIdClient(world)
    const configTypes = Array.from({ length: 50 }, (_, at) => `${at}${'x'.repeat(1_000)}`)

    const { body, status } = await client.postForm('/oidc/authorize', { ...client.parameters, configTypes })

    expect([status, body.error]).toEqual([400, 'invalid_request'])
  })

  it('by the thousand leave sign-ins possible', async () => {
    const client = new OpenIdClient(world)
    await Promise.all(Array.from({ length: 3_000 }, () => client.authorize()))

    expect((await client.signIn(await people.person())).access_token).toBeDefined()
  })

  it('are not found by guessed ids', async () => {
    const client = new OpenIdClient(world)
    await client.begin()
    const ids = ['', '0', '00000000-0000-4000-8000-000000000000', '*', '__proto__', 'constructor', "' or 1=1"]

    for (const id of ids) {
      expect((await client.get(`/oidc/login/username?authRequestID=${encodeURIComponent(id)}`)).status).toBe(401)
      expect((await client.get(`/oidc/authorize/callback?id=${encodeURIComponent(id)}`)).status).toBe(400)
    }
  })
})

describe('a body', () => {
  const routes = openIdOperations.flatMap(({ atRoot = [], body, method }) =>
    body ? atRoot.map((path) => [`${method} ${path}`, { method, path }] as const) : [],
  )
  const BODIES = {
    'application/json': [
      '{"id":',
      '[1]',
      '"text"',
      '{"__proto__":{"id":"x"}}',
      `{"id":${'['.repeat(20_000)}`,
      '{"id":5}',
    ],
    'application/x-www-form-urlencoded': [
      '%',
      '%ff%fe',
      '__proto__=x',
      'id=x&id=y',
      `id=${'x'.repeat(30_000)}`,
      '\u0000',
    ],
    'application/xml': ['<xml/>'],
  }

  it.each(routes)('for %s that is malformed is refused in the form of its path', async (_name, { method, path }) => {
    for (const [type, bodies] of Object.entries(BODIES)) {
      for (const body of bodies) {
        const headers = { host: HOST, 'content-type': type }
        const response = await world.send({ method, path, body, headers })

        expect([302, 400, 401, 415]).toContain(response.status)
        if (response.status !== 302) expect(typeof (response.body.code ?? response.body.error)).toBe('string')
      }
    }
  })
})

describe('credentials in a URL', () => {
  it('are not read', async () => {
    const person = await people.person()
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const query = encodeForm({ username: person.username, password: person.password })

    expect((await client.postForm(`/oidc/login/password?${query}`, { id })).status).toBe(400)
    await client.login(id, person)
    const code = await client.finish(id)
    const parameters = { grant_type: 'authorization_code', client_id: 'native', code, code_verifier: client.verifier }
    const tokenQuery = encodeForm({ ...parameters, redirect_uri: REDIRECT })
    expect((await client.postForm(`/oidc/oauth/token?${tokenQuery}`, {})).status).toBe(400)
    expect((await client.get(`/oidc/oauth/token?${tokenQuery}`)).status).toBe(405)
    expect((await client.get('/oidc/revoke?client_id=native&token=x')).status).toBe(405)
  })
})

describe('a bearer token', () => {
  const forge = async (changes: Record<string, unknown>) => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    const { kid } = decodeProtectedHeader(token)
    return { claims: { ...readClaims(token), ...changes }, kid: String(kid) }
  }

  it('that another key signed in the name of the controller is refused', async () => {
    const { claims, kid } = await forge({})
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const forged = await new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(privateKey)

    const { headers, status } = await ask(forged)

    expect([status, headers['www-authenticate']]).toEqual([
      401,
      'Bearer realm="openziti-oidc" error="invalid" error_description="token is invalid"',
    ])
  })

  it('without a signature, or of another algorithm, is refused', async () => {
    const { claims, kid } = await forge({})
    const unsigned = new UnsecuredJWT(claims).encode()
    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const secret = publicKey.export({ type: 'spki', format: 'der' })
    const hmac = await new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid }).sign(secret)

    expect([(await ask(unsigned)).status, (await ask(hmac)).status]).toEqual([401, 401])
  })

  it.each([
    ['for another audience', { aud: ['another'] }],
    ['of another kind', { z_t: 'r' }],
    ['of no kind', { z_t: undefined }],
    ['of no session', { z_asid: undefined }],
    ['of a session that does not exist', { z_asid: '01AAAAAAAAAAAAAAAAAAAAAAAA' }],
    ['without an end', { exp: undefined }],
    ['that begins later', { nbf: 99_999_999_999 }],
  ])('%s is refused', async (_name, changes) => {
    const { claims } = await forge(changes)

    expect((await ask(await world.controller.tokenKeys.sign(claims))).status).toBe(401)
  })

  it('that names a session with a token of its own is refused', async () => {
    const person = await people.person()
    await people.sessionOf(person)
    const [session] = await people.manage('GET', `/api-sessions?filter=identity="${person.id}"`)
    const { claims } = await forge({ z_asid: session.id })

    expect((await ask(await world.controller.tokenKeys.sign(claims))).status).toBe(401)
  })

  it('for a service, or for TOTP, calls no API', async () => {
    const { claims } = await forge({ z_t: 's', aud: ['openziti'] })

    expect((await ask(await world.controller.tokenKeys.sign(claims))).status).toBe(401)
  })

  it('is not read beside a session header', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    const headers = { ...bearer(token), 'zt-session': 'something' }
    const response = await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers })

    expect([response.status, response.headers['www-authenticate']]).toEqual([
      401,
      'zt-session realm="zt-session" error="invalid" error_description="token is invalid"',
    ])
  })

  it('stays no good in memory after its session has ended', async () => {
    const { access_token: token } = await new OpenIdClient(world).signIn(await people.person())
    expect((await ask(token)).status).toBe(200)
    await people.manage('DELETE', `/api-sessions/${readClaims(token).z_asid}`)

    expect((await ask(token)).status).toBe(401)
  })

  it('is in no record of the audit', async () => {
    const { access_token, refresh_token } = await new OpenIdClient(world).signIn(await people.person({ isAdmin: true }))
    await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/services`,
      body: { name: 'audited', encryptionRequired: true },
      headers: bearer(access_token),
    })
    const audit = await people.manage('GET', '/controller/audit?limit=500')

    const text = JSON.stringify(audit)
    for (const token of [access_token, refresh_token]) expect(text).not.toContain(token.split('.')[2])
    expect(text).not.toContain(readClaims(refresh_token).jti)
  })
})

const MISSING =
  'zt-session realm="zt-session" error="missing" error_description="no matching token was provided", Bearer realm="openziti-oidc" error="missing" error_description="no matching token was provided"'

describe('a refusal', () => {
  it('says which credential is missing, invalid or expired', async () => {
    const tokens = await new OpenIdClient(world).signIn(await people.person())
    const challengeOf = async (authorization?: string) =>
      (await world.send({ method: 'GET', path: `${CLIENT}/services`, headers: authorization ? { authorization } : {} }))
        .headers['www-authenticate']

    expect(await challengeOf()).toBe(MISSING)
    expect(await challengeOf('Basic eDp5')).toBe(MISSING)
    expect(await challengeOf(`bearer ${tokens.access_token}`)).toBe(MISSING)
    expect(await challengeOf(`Bearer ${tokens.refresh_token}`)).toBe(MISSING)
    expect(await challengeOf('Bearer garbage')).toMatch(/^Bearer realm="openziti-oidc" error="invalid"/)
    world.clock.advance(31 * 60_000)
    expect(await challengeOf(`Bearer ${tokens.access_token}`)).toBe(
      'Bearer realm="openziti-oidc" error="expired" error_description="token expired"',
    )
  })

  it('of an open operation has no challenge, whatever token is sent along', async () => {
    const tokens = await new OpenIdClient(world).signIn(await people.person())
    const { access_token: token } = tokens
    const allTokens = ['garbage', tokens.refresh_token, tokens.id_token, `${token.slice(0, -8)}AAAAAAAA`, token]
    world.clock.advance(31 * 60_000)

    for (const each of allTokens) {
      const { headers, status } = await ask(each, `${CLIENT}/version`)
      expect([status, headers['www-authenticate']]).toEqual([200, undefined])
    }
  })
})

describe('a revocation by an administrator', () => {
  it.each([
    ['of the token', 'JTI', 'jti'],
    ['of the session', 'API_SESSION', 'z_asid'],
    ['of the identity', 'IDENTITY', 'sub'],
  ])('%s ends what it names, and is shown', async (_name, type, claim) => {
    const person = await people.person()
    const { access_token: token } = await new OpenIdClient(world).signIn(person)
    const id = readClaims(token)[claim]
    expect((await ask(token)).status).toBe(200)

    const created = await people.ask('POST', '/revocations', { id, type, tags: { a: 'b' } })

    expect([created.status, created.body.data.id]).toEqual([201, id])
    expect((await ask(token)).status).toBe(401)
    expect(await people.manage('GET', `/revocations/${id}`)).toMatchObject({ id, type })
    const filter = encodeURIComponent(`type = "${type}" and id = "${id}" sort by createdAt`)
    expect(await people.manage('GET', `/revocations?filter=${filter}`)).toMatchObject([{ id, type }])
    expect((await people.manage('GET', '/revocations?limit=-1')).map((each: { id: string }) => each.id)).toContain(id)
    const later = await new OpenIdClient(world).signIn(person)
    expect((await ask(later.access_token)).status).toBe(200)
  })

  it('of a refresh token has it refused', async () => {
    const client = new OpenIdClient(world)
    const { refresh_token } = await client.signIn(await people.person())
    await people.manage('POST', '/revocations', { id: readClaims(refresh_token).jti, type: 'JTI' })

    const { body } = await client.postForm('/oidc/oauth/token', {
      grant_type: 'refresh_token',
      client_id: 'native',
      refresh_token,
    })

    expect([body.error, body.error_description]).toEqual(['invalid_grant', expect.stringMatching(/revoked/)])
  })

  it.each([
    ['another type', { id: '81aeb781-0421-4aa0-b97b-309548f29d61', type: 'jti' }, 400],
    ['no type', { id: '81aeb781-0421-4aa0-b97b-309548f29d61' }, 400],
    ['no id', { type: 'JTI' }, 400],
    ['an id that is none of a token', { id: 'abc', type: 'JTI' }, 400],
    ['an id that is none of a session', { id: 'abc', type: 'API_SESSION' }, 400],
    ['an identity that does not exist', { id: 'nope', type: 'IDENTITY' }, 404],
  ])('with %s is refused', async (_name, body, status) => {
    expect((await people.ask('POST', '/revocations', body)).status).toBe(status)
  })
})

describe('a parameter that is given twice is refused (RFC 6749, section 3.1)', () => {
  it.each(['client_id', 'redirect_uri', 'scope', 'state', 'code_challenge'])(
    '%s, in the query or in the form of an authorization request, or once in each',
    async (name) => {
      const client = new OpenIdClient(world)
      const once = String(client.parameters[name as keyof typeof client.parameters])
      const twice = { ...client.parameters, [name]: [once, once] }
      const { [name]: _, ...others } = client.parameters

      const responses = [
        await client.get(`/oidc/authorize?${encodeForm(twice)}`),
        await client.postForm('/oidc/authorize', twice),
        await client.postForm(`/oidc/authorize?${encodeForm({ [name]: once })}`, client.parameters),
      ]

      for (const { body, status } of responses) expect([status, body.error]).toEqual([400, 'invalid_request'])
      expect((await client.postForm(`/oidc/authorize?${encodeForm({ [name]: once })}`, others)).status).toBe(302)
    },
  )

  it.each(['grant_type', 'client_id', 'code', 'code_verifier', 'redirect_uri'])(
    '%s of a request for tokens, which leaves the code good',
    async (name) => {
      const client = new OpenIdClient(world)
      const id = await client.begin()
      await client.login(id, await people.person())
      const code = await client.finish(id)
      const values: Record<string, string> = {
        ...{ grant_type: 'authorization_code', client_id: 'native', code, code_verifier: client.verifier },
        redirect_uri: REDIRECT,
      }
      const twice = { ...values, [name]: [String(values[name]), 'another'] }

      const { body, status } = await client.postForm('/oidc/oauth/token', twice)

      expect([status, body.error]).toEqual([400, 'invalid_request'])
      expect((await client.redeem(code)).status).toBe(200)
    },
  )

  it('the token of a revocation, the hint of a sign-out, and the name of a sign-in', async () => {
    const client = new OpenIdClient(world)
    const person = await people.person()
    const { access_token: token } = await client.signIn(person)
    const id = await client.begin()
    const requests: readonly (readonly [string, Form])[] = [
      ['/oidc/revoke', { client_id: 'native', token: [token, token] }],
      ['/oidc/end_session', { id_token_hint: [token, token] }],
      [`/oidc/end_session?id_token_hint=${token}`, { id_token_hint: token }],
      ['/oidc/login/password', { id, username: ['other', person.username], password: person.password }],
    ]

    for (const [path, form] of requests) expect((await client.postForm(path, form)).status).toBe(400)
    expect((await client.get('/oidc/userinfo', bearer(token))).status).toBe(200)
  })

  it('but for one without a value, config types, and audiences', async () => {
    const client = new OpenIdClient(world)
    const form = { ...client.parameters, state: ['one', ''], configTypes: ['a', 'b'], audience: ['a', 'b'] }

    expect((await client.postForm('/oidc/authorize', form)).status).toBe(302)
  })
})
