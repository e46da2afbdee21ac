// Refresh, token exchange, revocation and sign-out: what a client may do with the tokens that it has, and what ends them.
import { beforeAll, describe, expect, it } from 'vitest'
import { disableIdentity } from '../../src/authentication/disabling.ts'
import { CLIENT } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, type Form, ISSUER, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const GRACE_MS = 60_000
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const TYPE = 'urn:ietf:params:oauth:token-type:'

const isAdmitted = async (token: string) =>
  (await world.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })).status === 200

async function signedIn(clientId = 'native'): Promise<{ client: OpenIdClient; person: Person; tokens: Tokens }> {
  const client = new OpenIdClient(world, clientId)
  const person = await people.person()
  return { client, person, tokens: await client.signIn(person) }
}

const refresh = (client: OpenIdClient, token: string, changes: Form = {}) =>
  client.postForm('/oidc/oauth/token', {
    grant_type: 'refresh_token',
    client_id: client.clientId,
    refresh_token: token,
    ...changes,
  })

const basic = (id: string) => ({ authorization: `Basic ${Buffer.from(`${id}:`).toString('base64url')}` })

const exchange = (client: OpenIdClient, token: string, kind: string, changes: Form = {}) =>
  client.postForm(
    '/oidc/oauth/token',
    { grant_type: EXCHANGE, subject_token: token, subject_token_type: `${TYPE}${kind}_token`, ...changes },
    basic(client.clientId),
  )

describe('a refresh', () => {
  it('gives new tokens of the same session, with what the first ones said', async () => {
    const { client, tokens } = await signedIn('openziti')
    world.clock.advance(1_000)

    const { body, status } = await refresh(client, tokens.refresh_token)

    const [before, after] = [readClaims(tokens.access_token), readClaims(body.access_token)]
    expect(status).toBe(200)
    for (const name of ['z_asid', 'sub', 'aud', 'scopes', 'amr', 'auth_time', 'z_ra', 'z_authid', 'iss'])
      expect([name, after[name]]).toEqual([name, before[name]])
    expect(after.jti).not.toBe(before.jti)
    expect(after.iat).toBe(before.iat + 1)
    expect(readClaims(body.id_token)).not.toHaveProperty('nonce')
    expect(await isAdmitted(body.access_token)).toBe(true)
  })

  it('takes a client that names itself by HTTP Basic with an empty secret', async () => {
    const { client, tokens } = await signedIn('openziti')
    const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }

    expect((await client.postForm('/oidc/oauth/token', form, basic('openziti'))).status).toBe(200)
  })

  it.each([
    ['%6Eative', 200, undefined],
    ['%6E%61%74%69%76%65', 200, undefined],
    ['native%', 400, 'invalid_client'],
    ['native%26', 400, 'invalid_client'],
    ['native&x', 400, 'invalid_client'],
    ['native+', 400, 'invalid_client'],
  ])('of a client that names itself %s by HTTP Basic, as in a form, is %d', async (id, status, error) => {
    const { client, tokens } = await signedIn('native')
    const form = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token }
    const response = await client.postForm('/oidc/oauth/token', form, basic(id))

    expect([response.status, response.body.error]).toEqual([status, error])
  })

  it.each([
    ['of another client', { client_id: 'openziti' }, 'invalid_grant'],
    ['of an unknown client', { client_id: 'stranger' }, 'invalid_client'],
    ['for more scopes', { scope: 'openid myscope' }, 'invalid_scope'],
    ['without a token', { refresh_token: '' }, 'invalid_request'],
    ['by another text', { refresh_token: 'garbage' }, 'invalid_grant'],
  ])('%s is refused', async (_name, changes, error) => {
    const { client, tokens } = await signedIn()

    const { body, status } = await refresh(client, tokens.refresh_token, changes)

    expect([status, body.error]).toEqual([400, error])
  })

  it('by an access token or an ID token is refused', async () => {
    const { client, tokens } = await signedIn()

    for (const token of [tokens.access_token, tokens.id_token])
      expect((await refresh(client, token)).body.error).toBe('invalid_grant')
  })

  it('for fewer scopes keeps to them', async () => {
    const { client, tokens } = await signedIn()
    const narrow = await refresh(client, tokens.refresh_token, { scope: 'offline_access' })

    expect(readClaims(narrow.body.id_token)).not.toHaveProperty('sub')
    expect((await refresh(client, narrow.body.refresh_token, { scope: 'openid' })).body.error).toBe('invalid_scope')
  })

  it('goes on after a restart', async () => {
    const { client, tokens } = await signedIn()
    const next = await refresh(client, tokens.refresh_token)
    await world.stop()
    await world.reopen({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })

    const { body, status } = await refresh(client, next.body.refresh_token)

    expect([status, await isAdmitted(body.access_token)]).toEqual([200, true])
  })

  it('after hours without a request goes on, and not after the lifetime of the token', async () => {
    const { client, tokens } = await signedIn()
    world.clock.advance(23 * 60 * 60_000)
    people = await People.in(world, 'an administrator of the next day')
    const next = await refresh(client, tokens.refresh_token)
    world.clock.advance(24 * 60 * 60_000)
    people = await People.in(world, 'an administrator of the day after')

    const late = await refresh(client, next.body.refresh_token)

    expect([next.status, late.status]).toEqual([200, 400])
    expect(late.body.error_description).toMatch(/expired/)
  })
})

describe('a refresh token', () => {
  it('that was exchanged gives the same next token for a minute, and ends the session after that', async () => {
    const { client, tokens } = await signedIn()
    const first = await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS - 1)
    const again = await refresh(client, tokens.refresh_token)
    world.clock.advance(1)

    const late = await refresh(client, tokens.refresh_token)

    expect(readClaims(again.body.refresh_token).jti).toBe(readClaims(first.body.refresh_token).jti)
    expect([late.status, late.body.error, late.body.error_description]).toEqual([
      400,
      'invalid_grant',
      expect.stringMatching(/revoked/),
    ])
    expect(await isAdmitted(first.body.access_token)).toBe(false)
    expect((await refresh(client, first.body.refresh_token)).status).toBe(400)
  })

  it('has its minute also if the clock is set forward meanwhile', async () => {
    const { client, tokens } = await signedIn()
    await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS / 2)
    world.clock.set(23 * 60 * 60_000)
    const again = await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS / 2)
    const late = await refresh(client, tokens.refresh_token)
    world.clock.set(-23 * 60 * 60_000)

    expect([again.status, late.status]).toEqual([200, 400])
  })

  it('does not have it once more if the clock is set back', async () => {
    const { client, tokens } = await signedIn()
    await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS + 10_000)
    world.clock.set(-GRACE_MS)

    const late = await refresh(client, tokens.refresh_token)
    world.clock.set(GRACE_MS)

    expect(late.body.error_description).toMatch(/used before/)
  })

  it('of two generations ago ends the session after a minute', async () => {
    const { client, tokens } = await signedIn()
    const first = await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS)
    const second = await refresh(client, first.body.refresh_token)

    const stolen = await refresh(client, tokens.refresh_token)

    expect([second.status, stolen.status]).toEqual([200, 400])
    expect(await isAdmitted(second.body.access_token)).toBe(false)
  })

  it('that fifty requests use at a time gives all of them the same next one', async () => {
    const { client, tokens } = await signedIn()

    const responses = await Promise.all(Array.from({ length: 50 }, () => refresh(client, tokens.refresh_token)))

    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(responses.map(({ body }) => readClaims(body.refresh_token).jti)).size).toBe(1)
  })

  it('is used no more often than its identity may write', async () => {
    const { client, person, tokens } = await signedIn()
    // The sign-in was counted, too.
    world.clock.advance(1_000)
    const count = world.controller.config['limits.writesPerIdentity'] * 10
    const address = '127.0.0.1'
    for (let at = 0; at < count; at++)
      world.controller.auth.writeLimits.requireRate(
        { identityId: person.id, isAdmin: false, isPartial: false },
        { address, isOwnChange: false },
        world.clock.now(),
      )

    const refused = await refresh(client, tokens.refresh_token)
    world.clock.advance(1_000)
    const next = await refresh(client, tokens.refresh_token)

    expect([refused.status, refused.headers['retry-after'], next.status]).toEqual([429, '1', 200])
  })

  it.each([
    ['disabled', (id: string) => world.system.write((tx) => disableIdentity(world.controller.entities, tx, id, 0))],
    ['deleted', (id: string) => people.manage('DELETE', `/identities/${id}`)],
    [
      'disabled and enabled again',
      async (id: string) => {
        await people.manage('POST', `/identities/${id}/disable`, { durationMinutes: 0 })
        await people.manage('POST', `/identities/${id}/enable`)
      },
    ],
  ])('of an identity that was %s is refused', async (_state, change) => {
    const { client, person, tokens } = await signedIn()
    await change(person.id)

    expect((await refresh(client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    expect((await exchange(client, tokens.refresh_token, 'refresh')).status).toBe(400)
  })

  it('whose authenticator was deleted is refused', async () => {
    const { client, person, tokens } = await signedIn()
    await people.manage('DELETE', `/authenticators/${person.authenticatorId}`)

    expect((await refresh(client, tokens.refresh_token)).body.error).toBe('invalid_grant')
  })

  it('whose identity has to pass a second factor since is refused', async () => {
    const { client, person, tokens } = await signedIn()
    await people.manage('PATCH', `/identities/${person.id}`, {
      authPolicyId: await people.policy({ requireTotp: true }),
    })

    expect((await refresh(client, tokens.refresh_token)).body.error).toBe('invalid_grant')
    expect(await isAdmitted(tokens.access_token)).toBe(false)
  })
})

describe('a token exchange', () => {
  it('takes the same refresh token twice: for a refresh token, and for an ID token', async () => {
    const { client, person, tokens } = await signedIn()

    const first = await exchange(client, tokens.refresh_token, 'refresh', {
      requested_token_type: `${TYPE}refresh_token`,
    })
    const second = await exchange(client, tokens.refresh_token, 'refresh', { requested_token_type: `${TYPE}id_token` })

    expect(first.body).toMatchObject({
      token_type: 'Bearer',
      issued_token_type: `${TYPE}refresh_token`,
      expires_in: 1_800,
    })
    expect(first.body).not.toHaveProperty('id_token')
    expect(second.body).toMatchObject({ token_type: 'N_A', issued_token_type: `${TYPE}id_token` })
    expect(readClaims(second.body.access_token)).toMatchObject({ sub: person.id, azp: 'native' })
    const { amr, scopes } = readClaims(first.body.access_token)
    expect([amr, scopes]).toEqual([['password'], ['openid', 'offline_access']])
    expect(await isAdmitted(first.body.access_token)).toBe(true)
  })

  it('takes parameters without a value as absent', async () => {
    const { client, tokens } = await signedIn()
    const empty = { actor_token: '', actor_token_type: '', audience: '', scope: '', resource: '' }

    expect((await exchange(client, tokens.refresh_token, 'refresh', empty)).status).toBe(200)
  })

  it('of a token that was just refreshed succeeds', async () => {
    const { client, tokens } = await signedIn()
    await refresh(client, tokens.refresh_token)

    const { body, status } = await exchange(client, tokens.refresh_token, 'refresh')

    expect([status, await isAdmitted(body.access_token)]).toEqual([200, true])
  })

  it('of an access token gives one that ends with it, and no refresh token', async () => {
    const { client, tokens } = await signedIn()
    world.clock.advance(10 * 60_000)
    const { body } = await exchange(client, tokens.access_token, 'access')

    expect(readClaims(body.access_token).exp).toBe(readClaims(tokens.access_token).exp)
    expect(body).not.toHaveProperty('refresh_token')
  })

  it.each([
    ['an access token for a refresh token', 'access', { requested_token_type: `${TYPE}refresh_token` }],
    ['an access token as a refresh token', 'access', { subject_token_type: `${TYPE}refresh_token` }],
    ['a token for a JWT', 'refresh', { requested_token_type: `${TYPE}jwt` }],
    ['an ID token', 'id', {}],
    ['a token with an actor', 'refresh', { actor_token: 'x' }],
  ] as const)('refuses %s', async (_name, kind, changes) => {
    const { client, tokens } = await signedIn()

    const { body, status } = await exchange(client, tokens[`${kind}_token`], kind, changes)

    expect([status, body.error]).toEqual([400, 'invalid_request'])
  })

  it('refuses the token of another client', async () => {
    const { tokens } = await signedIn('openziti')

    expect((await exchange(new OpenIdClient(world, 'native'), tokens.refresh_token, 'refresh')).status).toBe(400)
  })
})

describe('userinfo', () => {
  it('names the identity of an access token, and of no other token', async () => {
    const { client, person, tokens } = await signedIn()
    const ask = async (headers: Record<string, string>) => client.get('/oidc/userinfo', headers)

    expect((await ask(bearer(tokens.access_token))).body).toMatchObject({ sub: person.id })
    const none = await ask({})
    const others = await Promise.all(
      [tokens.refresh_token, tokens.id_token, 'garbage'].map((token) => ask(bearer(token))),
    )
    expect([none.status, none.body.error]).toEqual([401, 'invalid_request'])
    expect(others.map(({ status, body }) => [status, body.error])).toEqual(Array(3).fill([401, 'access_denied']))
  })
})

describe('revocation', () => {
  it.each(['access_token', 'refresh_token'] as const)('of an %s ends the session', async (kind) => {
    const { client, tokens } = await signedIn()

    const { status } = await client.postForm('/oidc/revoke', { client_id: 'native', token: tokens[kind] })

    expect([status, await isAdmitted(tokens.access_token)]).toEqual([200, false])
    expect((await refresh(client, tokens.refresh_token)).body.error_description).toMatch(/revoked/)
    expect((await client.postForm('/oidc/revoke', { client_id: 'native', token: tokens[kind] })).status).toBe(200)
  })

  it('of any other text succeeds and stores nothing', async () => {
    const { client, tokens } = await signedIn()
    const count = async () => (await world.system.db.selectFrom('revocations').select('id').execute()).length
    const before = await count()

    const texts = ['some text', 'a'.repeat(20_000), tokens.id_token]
    const responses = await Promise.all(
      texts.map((token) => client.postForm('/oidc/revoke', { client_id: 'native', token })),
    )

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200])
    expect([await count(), await isAdmitted(tokens.access_token)]).toEqual([before, true])
  })

  it('by another client, or without a client or a token, is refused', async () => {
    const { client, tokens } = await signedIn()
    const forms: Form[] = [
      { client_id: 'openziti', token: tokens.access_token },
      { token: tokens.access_token },
      { client_id: 'native' },
    ]

    const responses = await Promise.all(forms.map((form) => client.postForm('/oidc/revoke', form)))

    expect(responses.map(({ status }) => status)).toEqual([400, 400, 400])
    expect(await isAdmitted(tokens.access_token)).toBe(true)
  })
})

describe('a sign-out', () => {
  it('by any token of the session ends that session alone', async () => {
    for (const kind of ['access_token', 'refresh_token', 'id_token'] as const) {
      const { client, person, tokens } = await signedIn()
      const other = await new OpenIdClient(world).signIn(person)

      const { headers, status } = await client.get(`/oidc/end_session?id_token_hint=${tokens[kind]}`)

      expect([status, headers.location]).toEqual([302, '/oidc/logged-out'])
      expect([await isAdmitted(tokens.access_token), await isAdmitted(other.access_token)]).toEqual([false, true])
    }
  })

  it('by an ID token that has expired ends nothing', async () => {
    const { client, tokens } = await signedIn()
    world.clock.advance(31 * 60_000)
    const { body } = await refresh(client, tokens.refresh_token)

    await client.get(`/oidc/end_session?id_token_hint=${tokens.id_token}`)

    expect(await isAdmitted(body.access_token)).toBe(true)
  })

  it('that is refused, or that shows the identity of a token, tells browsers so by a page', async () => {
    const client = new OpenIdClient(world)
    for (const path of ['/oidc/end_session?id_token_hint=garbage', '/oidc/userinfo']) {
      const [page, json] = [await client.get(path, { accept: 'text/html' }), await client.get(path)]
      expect(page.headers['content-type']).toMatch(/^text\/html/)
      expect([page.status, page.text.includes('<title>The request is refused</title>')]).toEqual([json.status, true])
      expect(json.body.error).toMatch(/^invalid_request$/)
    }
  })

  it('sends the client to a registered address only', async () => {
    const { client } = await signedIn()
    const ask = (uri: string) =>
      client.get(`/oidc/end_session?client_id=native&state=s&post_logout_redirect_uri=${encodeURIComponent(uri)}`)

    expect((await ask('openziti://auth/logout')).headers.location).toBe('openziti://auth/logout?state=s')
    expect((await ask('https://evil.example.com/')).status).toBe(400)
  })

  it('by a token of another issuer is refused', async () => {
    const { client, tokens } = await signedIn()
    const [head, body] = tokens.id_token.split('.')

    expect((await client.get(`/oidc/end_session?id_token_hint=${head}.${body}.AAAA`)).status).toBe(400)
  })
})

describe('tokens that are issued before the clock is set back', () => {
  /** Tokens, by a clock that is ahead until they are issued: by a millisecond, but in another second, or by five seconds. */
  const issuedAhead = async (milliseconds: number) => {
    world.clock.advance(1_000 - (world.clock.now() % 1_000))
    const { client, tokens } = await signedIn()
    world.clock.set(-milliseconds)
    return { client, tokens }
  }

  it.each([1, 5_000])('by %d ms are good at once', async (milliseconds) => {
    const { client, tokens } = await issuedAhead(milliseconds)
    const isAdmittedEarly = await isAdmitted(tokens.access_token)

    const next = await refresh(client, tokens.refresh_token)

    expect([isAdmittedEarly, next.status]).toEqual([true, 200])
    expect(await isAdmitted(next.body.access_token)).toBe(true)
    world.clock.advance(5_000)
  })

  it('end their session by a revocation, and by a sign-out', async () => {
    const [revoked, signedOut] = [await issuedAhead(5_000), await issuedAhead(5_000)]
    const form = { token: revoked.tokens.refresh_token, client_id: 'native' }
    const revocation = await revoked.client.postForm('/oidc/revoke', form)
    const signOut = await signedOut.client.get(`/oidc/end_session?id_token_hint=${signedOut.tokens.access_token}`)
    world.clock.advance(10_000)

    expect([revocation.status, signOut.status]).toEqual([200, 302])
    for (const { client, tokens } of [revoked, signedOut]) {
      expect(await isAdmitted(tokens.access_token)).toBe(false)
      expect((await refresh(client, tokens.refresh_token)).status).toBe(400)
    }
  })

  it('end at the time that they say', async () => {
    const { tokens } = await issuedAhead(5_000)
    const { exp } = readClaims(tokens.access_token)
    world.clock.advance(exp * 1_000 - world.clock.now() - 1)
    const isAdmittedBefore = await isAdmitted(tokens.access_token)
    world.clock.advance(1)

    expect([isAdmittedBefore, await isAdmitted(tokens.access_token)]).toEqual([true, false])
  })
})

it('introspection is refused to every client', async () => {
  const { client, tokens } = await signedIn()
  const { body, status } = await client.postForm('/oidc/oauth/introspect', {
    client_id: 'native',
    token: tokens.access_token,
  })

  expect([status, body.error]).toEqual([400, 'invalid_client'])
})

it('every token names the issuer by which its client reaches the controller', async () => {
  const { tokens } = await signedIn()

  expect(readClaims(tokens.access_token).iss).toBe(ISSUER)
})
