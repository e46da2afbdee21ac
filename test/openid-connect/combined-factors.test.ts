// Sign-ins by OpenID Connect with several factors: certificates with codes, codes with tokens of issuers, and policies that change.
import { beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { CLIENT } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { type Device, People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { CertificateClient, holderOf, toForm } from './certificate-client.ts'
import { bearer, ISSUER, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let client: CertificateClient
let people: People

beforeAll(async () => {
  client = new CertificateClient(world, await world.listen())
  people = await People.in(world)
})

const now = () => world.clock.now()

/** Begins a sign-in by a certificate, and sends it. */
async function beginBy(device: Device) {
  const request = await client.begin(holderOf(device))
  const login = await client.call(holderOf(device), 'POST', '/oidc/login/cert', { id: request.id })
  return { request, login }
}

const callServices = (device: Device, token: string) =>
  client.call(holderOf(device), 'GET', `${CLIENT}/services`, undefined, bearer(token))

describe('a certificate with a code', () => {
  it('is what a policy requires since a sign-in: its token is refused, and the next sign-in passes both', async () => {
    const authPolicyId = await people.policy({})
    const device = await people.device({ authPolicyId })
    const { body: before } = await client.signIn(holderOf(device), '/oidc/login/cert')
    expect((await callServices(device, before.access_token)).status).toBe(200)
    await people.manage('PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireTotp: true } })

    const refused = await callServices(device, before.access_token)
    const { request, login } = await beginBy(device)
    const holder = holderOf(device)
    const { id } = request
    const { body: enrolled } = await client.call(holder, 'POST', '/oidc/login/totp/enroll', { id })
    const app = new AuthenticatorApp(enrolled.provisioningUrl)
    const verified = await client.call(holder, 'POST', '/oidc/login/totp/enroll/verify', { id, code: app.code(now()) })
    const { body: tokens } = await client.finish(holder, request)
    const { body: next } = await client.refresh(holder, tokens.refresh_token)

    expect([refused.status, login.status, login.headers['totp-required'], verified.status]).toEqual([
      401,
      200,
      'true',
      302,
    ])
    for (const { access_token: token } of [tokens, next]) {
      expect(readClaims(token).amr).toEqual(['cert', 'totp'])
      expect((await callServices(device, token)).status).toBe(200)
    }
    world.clock.advance(STEP_MS)
  })
})

describe('a code and a token of an issuer', () => {
  it('are asked for together, and the sign-in is complete with both', async () => {
    const issuer = new Issuer()
    const advice = {
      externalAuthUrl: 'https://issuer.example/auth',
      clientId: 'the-client',
      scopes: ['openid'],
    }
    const signerId = await issuer.trustedBy(people, advice)
    const authPolicyId = await people.policy({ requireTotp: true, requireExtJwtSigner: signerId })
    const externalId = 'of a code and a token'
    const person = await people.person({ authPolicyId, externalId })
    const own = new OpenIdClient(world)
    const begin = async (headers: Record<string, string> = {}) => {
      const id = await own.begin()
      return { id, login: await own.postForm('/oidc/login/password', { id, ...toForm(person) }, headers) }
    }
    const totp = expect.objectContaining({ typeId: 'TOTP' })
    const token = { typeId: 'EXT-JWT', id: signerId, clientId: 'the-client', scopes: ['openid'] }
    const queries = [totp, expect.objectContaining({ ...token, httpUrl: 'https://issuer.example/auth' })]

    const withToken = () => begin(bearer(issuer.token(world, externalId)))

    const first = await begin()
    const early = await own.postJson('/oidc/login/totp/enroll', { id: first.id })
    const { id, login } = await withToken()
    const { body: enrolled } = await own.postJson('/oidc/login/totp/enroll', { id })
    const app = new AuthenticatorApp(enrolled.provisioningUrl)
    const verified = await own.postJson('/oidc/login/totp/enroll/verify', { id, code: app.code(now()) })
    world.clock.advance(STEP_MS)
    const later = await begin()
    const passed = await own.postJson('/oidc/login/totp', { id: later.id, code: app.code(now()) })
    world.clock.advance(STEP_MS)
    const complete = await withToken()
    const last = await own.postJson('/oidc/login/totp', { id: complete.id, code: app.code(now()) })

    expect([first.login.status, first.login.body.authQueries]).toEqual([200, queries])
    expect(first.login.body.authQueries[0]).not.toHaveProperty('isTotpEnrolled')
    // A stranger with the password alone gets no second factor of his own.
    expect(early.status).toBe(401)
    expect([login.body.authQueries, verified.status]).toEqual([[totp], 302])
    expect(later.login.body.authQueries).toEqual([expect.objectContaining({ isTotpEnrolled: true }), queries[1]])
    expect([passed.status, passed.body.authQueries]).toEqual([200, queries.slice(1)])
    expect((await own.get(`/oidc/authorize/callback?id=${later.id}`)).headers.location).toMatch(
      /error=interaction_required/,
    )
    expect([complete.login.status, complete.login.body.authQueries]).toEqual([200, [totp]])
    expect([last.status, last.headers.location]).toEqual([302, `${ISSUER}/authorize/callback?id=${complete.id}`])
    const { body } = await own.redeem(await own.finish(complete.id))
    expect(readClaims(body.access_token).amr).toEqual(['password', 'totp', `ejs:${signerId}`])
    world.clock.advance(STEP_MS)
  })
})

describe('a code', () => {
  it('of another minute does not pass', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ requireTotp: true }) })
    const own = new OpenIdClient(world)
    const id = await own.begin()
    await own.login(id, person)
    const { body } = await own.postJson('/oidc/login/totp/enroll', { id })
    const app = new AuthenticatorApp(body.provisioningUrl)
    await own.postJson('/oidc/login/totp/enroll/verify', { id, code: app.code(now()) })
    world.clock.advance(10 * STEP_MS)
    const next = await own.begin()
    await own.login(next, person)

    for (const steps of [-2, 2, 4]) {
      const code = app.code(now() + steps * STEP_MS)
      expect([steps, (await own.postJson('/oidc/login/totp', { id: next, code })).status]).toEqual([steps, 400])
    }
    expect((await own.postJson('/oidc/login/totp', { id: next, code: app.code(now()) })).status).toBe(302)
  })
})
