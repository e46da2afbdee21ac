// Tokens of external signers in a sign-in by OpenID Connect: as the credential, and as a second factor.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { authorityFile, json, openEndpoint } from '../world/endpoints.ts'
import { createIssuerKey, Issuer, type IssuerKey, toJwk } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, ISSUER, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const authority = authorityFile()
afterAll(() => authority.remove())

const world = useController({
  settings: { ...OIDC_SETTINGS, 'session.timeout': '24h', 'signers.caFile': authority.path },
})
let people: People
let issuer: Issuer
let signerId: string
let secondFactorPolicy: string

beforeAll(async () => {
  people = await People.in(world)
  issuer = new Issuer()
  const advice = { externalAuthUrl: 'https://issuer.example/auth', clientId: 'the-client', scopes: ['openid'] }
  signerId = await issuer.trustedBy(people, advice)
  secondFactorPolicy = await people.policy({ requireExtJwtSigner: signerId })
})

let sequence = 0
const newSubject = () => `oidc-subject-${++sequence}`

const loginBy = (client: OpenIdClient, id: string, token?: string) =>
  client.postForm('/oidc/login/ext-jwt', { id }, token === undefined ? {} : bearer(token))

const challenge = (use: string, fault: string) =>
  expect.stringMatching(
    new RegExp(`^Bearer realm="openziti-${use}-ext-jwt" error="${fault}".*id="${signerId}" issuer="${issuer.issuer}"$`),
  )

describe('a token as the credential', () => {
  it('signs its identity in', async () => {
    const externalId = newSubject()
    const identityId = await people.identity({ externalId })
    const client = new OpenIdClient(world)
    const id = await client.begin({ method: 'ext-jwt' })

    const login = await loginBy(client, id, issuer.token(world, externalId))

    expect([login.status, login.headers['www-authenticate']]).toEqual([302, undefined])
    const { body } = await client.redeem(await client.finish(id))
    expect(readClaims(body.access_token)).toMatchObject({
      ...{ sub: identityId, amr: ['ext-jwt'], z_authid: `extJwtId:${signerId}`, z_eid: externalId, z_cfs: null },
    })
  })

  it('is refused with a challenge that names the signers', async () => {
    const externalId = newSubject()
    await people.identity({ externalId })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const expired = Math.floor(world.clock.now() / 1000) - 3_600
    const refuse = async (token?: string) => {
      const { headers, status } = await loginBy(client, id, token)
      return [status, headers['www-authenticate']]
    }

    expect(await refuse()).toEqual([401, challenge('primary', 'missing')])
    expect(await refuse('garbage')).toEqual([401, challenge('primary', 'missing')])
    expect(await refuse(issuer.token(world, externalId, { claims: { exp: expired } }))).toEqual([
      401,
      challenge('primary', 'expired'),
    ])
    expect(await refuse(issuer.token(world, externalId, { claims: { aud: 'another' } }))).toEqual([
      401,
      challenge('primary', 'invalid'),
    ])
  })

  it('is read from the header alone', async () => {
    const externalId = newSubject()
    await people.identity({ externalId })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const access_token = issuer.token(world, externalId)

    expect(
      (await client.postForm(`/oidc/login/ext-jwt?access_token=${access_token}`, { id, access_token })).status,
    ).toBe(401)
  })
})

describe('a token as a second factor', () => {
  const beginAs = async (token?: (externalId: string) => string) => {
    const externalId = newSubject()
    const person = await people.person({ externalId, authPolicyId: secondFactorPolicy })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const headers = token ? bearer(token(externalId)) : {}
    const form = { id, username: person.username, password: person.password }
    return { client, id, externalId, login: await client.postForm('/oidc/login/password', form, headers) }
  }

  it('is asked for, with the place where its signer issues it', async () => {
    const { client, id, login } = await beginAs()
    const query = { typeId: 'EXT-JWT', provider: 'url', id: signerId, clientId: 'the-client', scopes: ['openid'] }

    expect(login.status).toBe(200)
    expect(login.body.authQueries).toEqual([{ ...query, httpUrl: 'https://issuer.example/auth' }])
    expect(login.headers['www-authenticate']).toEqual(challenge('secondary', 'missing'))
    expect((await client.get(`/oidc/authorize/callback?id=${id}`)).headers.location).toMatch(
      /error=interaction_required/,
    )
  })

  it('of another identity does not count', async () => {
    const { login } = await beginAs(() => issuer.token(world, 'another subject'))

    expect([login.status, login.headers['www-authenticate']]).toEqual([200, challenge('secondary', 'invalid')])
  })

  it('comes with the credential, and with each request of the session, in any order', async () => {
    const { client, externalId, id, login } = await beginAs((subject) => issuer.token(world, subject))
    expect([login.status, login.headers.location]).toEqual([302, `${ISSUER}/authorize/callback?id=${id}`])
    const { body } = await client.redeem(await client.finish(id))
    expect(readClaims(body.access_token).amr).toEqual(['password', `ejs:${signerId}`])
    const ask = (...tokens: string[]) =>
      world.send({
        method: 'GET',
        path: `${CLIENT}/current-identity`,
        headers: { authorization: tokens.map((token) => `Bearer ${token}`) as unknown as string },
      })
    const own = issuer.token(world, externalId)

    const statuses = [
      await ask(body.access_token),
      await ask(body.access_token, own),
      await ask(own, body.access_token),
      await ask(body.access_token, issuer.token(world, 'another subject')),
      await ask(own),
    ].map(({ status }) => status)

    expect(statuses).toEqual([401, 200, 200, 401, 401])
  })
})

it('a token of an external signer alone calls nothing', async () => {
  const externalId = newSubject()
  await people.identity({ externalId, isAdmin: true })
  const headers = bearer(issuer.token(world, externalId))

  expect((await world.send({ method: 'GET', path: `${MANAGEMENT}/identities`, headers })).status).toBe(401)
})

describe('a signer that an auth policy requires', () => {
  const refresh = async (client: OpenIdClient, token: string) =>
    (
      await client.postForm('/oidc/oauth/token', {
        grant_type: 'refresh_token',
        client_id: 'native',
        refresh_token: token,
      })
    ).body

  it('since a sign-in without it leaves that no further tokens', async () => {
    const authPolicyId = await people.policy({})
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person({ authPolicyId }))
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireExtJwtSigner: signerId } })

    expect(await refresh(client, tokens.refresh_token)).toMatchObject({
      error: 'invalid_grant',
      error_description: expect.stringMatching(/owes a second factor/),
    })
  })

  it('and by which the sign-in began leaves it further tokens', async () => {
    const externalId = newSubject()
    await people.identity({ externalId, authPolicyId: secondFactorPolicy })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await loginBy(client, id, issuer.token(world, externalId))
    const { body } = await client.redeem(await client.finish(id))

    expect(await refresh(client, body.refresh_token)).toMatchObject({ token_type: 'Bearer' })
  })

  it('and whose token came with the credential leaves it further tokens', async () => {
    const externalId = newSubject()
    const person = await people.person({ authPolicyId: secondFactorPolicy, externalId })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const { username, password } = person
    await client.postForm('/oidc/login/password', { id, username, password }, bearer(issuer.token(world, externalId)))
    const { body } = await client.redeem(await client.finish(id))

    expect(await refresh(client, body.refresh_token)).toMatchObject({ token_type: 'Bearer' })
  })

  /** Signs a person in with a token of a signer as second factor, and returns what follows once that token has expired. */
  const signInWithFactor = async (ownIssuer: Issuer, changes: Readonly<Record<string, unknown>> = {}) => {
    const ownSignerId = await ownIssuer.trustedBy(people, changes)
    const authPolicyId = await people.policy({ requireExtJwtSigner: ownSignerId })
    const externalId = newSubject()
    const { id: identityId, ...person } = await people.person({ authPolicyId, externalId })
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const token = ownIssuer.token(world, externalId)
    await client.postForm(
      '/oidc/login/password',
      { id, username: person.username, password: person.password },
      bearer(token),
    )
    let { body } = await client.redeem(await client.finish(id))
    world.clock.advance(60 * 60_000)
    const next = async () => {
      const response = await refresh(client, body.refresh_token)
      if (response.refresh_token) body = response
      return response.error_description ?? 'refreshed'
    }
    return { identityId, externalId, signerId: ownSignerId, next }
  }
  const OWED = expect.stringMatching(/owes a second factor/)

  it.each([
    ['is disabled', { enabled: false }],
    ['has another audience', { audience: 'another' }],
    ['has another key', { certPem: new Issuer().certificate() }],
  ])('and that %s since leaves no further tokens by its earlier one', async (_name, change) => {
    const signIn = await signInWithFactor(new Issuer())
    const before = await signIn.next()
    await people.manage('PATCH', `/external-jwt-signers/${signIn.signerId}`, change)

    expect([before, await signIn.next()]).toEqual(['refreshed', OWED])
  })

  it('and whose key set lacks the key since leaves no further tokens by it', async () => {
    const ownIssuer = new Issuer()
    const [first, second] = [ownIssuer.key, createIssuerKey()]
    const endpoint = await openEndpoint(json({ keys: [toJwk(first)] }))
    const signIn = await signInWithFactor(ownIssuer, { jwksEndpoint: `${endpoint.url}/jwks` })
    const fetchAndRefresh = async (...keys: IssuerKey[]) => {
      endpoint.respond = json({ keys: keys.map(toJwk) })
      world.clock.advance(11 * 60_000)
      await world.controller.auth.signers.keyRefresher.refreshDue(world.controller.contexts)
      return signIn.next()
    }

    expect([await fetchAndRefresh(first, second), await fetchAndRefresh(second)]).toEqual(['refreshed', OWED])
    await endpoint.close()
  })

  it('and whose token named an external id that the identity does not have any more leaves no further tokens', async () => {
    const signIn = await signInWithFactor(new Issuer())
    const before = await signIn.next()
    await people.manage('PATCH', `/identities/${signIn.identityId}`, { externalId: newSubject() })

    expect([before, await signIn.next()]).toEqual(['refreshed', OWED])
  })

  it('only for a while leaves further tokens afterwards', async () => {
    const { identityId, next } = await signInWithFactor(new Issuer())
    const withoutFactor = await people.policy({})
    await people.manage('PATCH', `/identities/${identityId}`, { authPolicyId: withoutFactor })

    expect(await next()).toBe('refreshed')
  })
})
