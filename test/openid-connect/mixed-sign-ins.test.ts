// Several identities, clients and credentials within one sign-in by OpenID Connect: nothing that one of them proved counts for another.
import { beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp } from '../world/authenticator-app.ts'
import { CLIENT } from '../world/controller.ts'
import { Issuer } from '../world/issuers.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People
let issuer: Issuer
let signerId: string
let totpPolicy: string
let signerPolicy: string

beforeAll(async () => {
  people = await People.in(world)
  issuer = new Issuer()
  signerId = await issuer.trustedBy(people)
  totpPolicy = await people.policy({ requireTotp: true })
  signerPolicy = await people.policy({ requireExtJwtSigner: signerId })
})

const login = (client: OpenIdClient, id: string, { username, password }: Person, headers = {}) =>
  client.postForm('/oidc/login/password', { id, username, password }, headers)

const countSessions = ({ id }: { readonly id: string }) => world.controller.auth.apiSessions.listOfIdentity(id).length

/** Checks that the way back leads to no code. */
const expectIncomplete = async (client: OpenIdClient, id: string) =>
  expect((await client.get(`/oidc/authorize/callback?id=${id}`)).headers.location).toMatch(/error=interaction_required/)

describe('of two identities within one request', () => {
  it('the second one has not the token of an issuer that came with the first one', async () => {
    const [first, second] = [
      await people.person({ authPolicyId: signerPolicy, externalId: 'mixed-1' }),
      await people.person({ authPolicyId: signerPolicy, externalId: 'mixed-2' }),
    ]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const token = bearer(issuer.token(world, 'mixed-1'))
    const complete = await login(client, id, first, token)

    const other = await login(client, id, second)
    const withForeignToken = await login(client, id, second, token)

    expect([complete.status, other.status, withForeignToken.status]).toEqual([302, 200, 200])
    await expectIncomplete(client, id)
  })

  it('the second one does not verify the enrollment of the first one, and sees nothing of it', async () => {
    const [first, second] = [
      await people.person({ authPolicyId: totpPolicy }),
      await people.person({ authPolicyId: totpPolicy }),
    ]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await login(client, id, first)
    const { body: enrolled } = await client.postJson('/oidc/login/totp/enroll', { id })
    const code = new AuthenticatorApp(enrolled.provisioningUrl).code(world.clock.now())
    await login(client, id, second)

    const verified = await client.postJson('/oidc/login/totp/enroll/verify', { id, code })
    const passed = await client.postJson('/oidc/login/totp', { id, code })
    const own = await client.postJson('/oidc/login/totp/enroll', { id })

    expect([verified.status, passed.status, own.status]).toEqual([404, 400, 201])
    expect(own.body.provisioningUrl).not.toBe(enrolled.provisioningUrl)
    await expectIncomplete(client, id)
  })

  it('the one whose password was refused leaves the sign-in of the other one', async () => {
    const [first, second] = [await people.person(), await people.person()]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await login(client, id, first)

    const refused = await login(client, id, { ...second, password: 'wrong horse' })

    expect(refused.status).toBe(401)
    const { body } = await client.redeem(await client.finish(id))
    expect(readClaims(body.access_token).sub).toBe(first.id)
  })

  it('that sign in at a time one has the sign-in, and the session of the other one ends', async () => {
    const both = [await people.person(), await people.person()]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await Promise.all(Array.from({ length: 10 }, (_, at) => login(client, id, both[at % 2] as Person)))

    const { body } = await client.redeem(await client.finish(id))

    const counts = both.map((person) => [person.id, countSessions(person)] as const)
    expect(counts.reduce((sum, [, count]) => sum + count, 0)).toBe(1)
    expect(counts.find(([, count]) => count === 1)?.[0]).toBe(readClaims(body.access_token).sub)
  })

  it('the second one gets nothing by a code of the first one, and the first one nothing after it', async () => {
    const [first, second] = [await people.person(), await people.person()]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await login(client, id, first)
    const code = await client.finish(id)
    const responses = await Promise.all([login(client, id, second), client.redeem(code)])

    // The one that came first is signed in; never both, and never one by the code of the other.
    const { status, body } = responses[1]
    if (status === 200) expect(readClaims(body.access_token).sub).toBe(first.id)
    expect([200, 400]).toContain(status)
    expect(countSessions(first) + countSessions(second)).toBeLessThanOrEqual(1)
  })
})

describe('of two clients', () => {
  it('neither redeems, refreshes, exchanges or revokes what the other one was issued', async () => {
    const person = await people.person()
    const [native, other] = [new OpenIdClient(world, 'native'), new OpenIdClient(world, 'openziti')]
    const id = await native.begin()
    await login(native, id, person)
    const code = await native.finish(id)
    const foreign = await other.redeem(code, { code_verifier: native.verifier })
    const { body: tokens } = await native.redeem(code)
    const form = { client_id: 'openziti', refresh_token: tokens.refresh_token, token: tokens.access_token }
    const subject = {
      subject_token: tokens.refresh_token,
      subject_token_type: 'urn:ietf:params:oauth:token-type:refresh_token',
    }
    const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'

    const attempts = [
      await other.postForm('/oidc/oauth/token', { ...form, grant_type: 'refresh_token' }),
      await other.postForm('/oidc/oauth/token', { ...subject, client_id: 'openziti', grant_type: EXCHANGE }),
      await other.postForm('/oidc/revoke', form),
      await other.get(`/oidc/end_session?client_id=openziti&id_token_hint=${tokens.id_token}`),
    ]

    expect([foreign, ...attempts].map(({ status }) => status)).toEqual([400, 400, 400, 400, 400])
    const path = `${CLIENT}/current-identity`
    expect((await world.send({ method: 'GET', path, headers: bearer(tokens.access_token) })).status).toBe(200)
  })

  it('that one request names, by the header and in the form, neither is believed', async () => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person())
    const headers = { authorization: `Basic ${Buffer.from('openziti:').toString('base64')}` }
    const form = { client_id: 'native', refresh_token: tokens.refresh_token, grant_type: 'refresh_token' }

    const { body, status } = await client.postForm('/oidc/oauth/token', form, headers)

    expect([status, body.error]).toEqual([400, 'invalid_client'])
  })

  it('the code of one request is not redeemed by the verifier or for the address of another request', async () => {
    const person = await people.person()
    const [own, stranger] = [new OpenIdClient(world), new OpenIdClient(world)]
    const id = await own.begin()
    await login(own, id, person)
    const code = await own.finish(id)

    const byVerifier = await stranger.redeem(code)
    const forAddress = await own.redeem(code, { redirect_uri: 'http://127.0.0.1:8080/auth/callback' })

    expect([byVerifier.body.error, forAddress.body.error]).toEqual(['invalid_grant', 'invalid_grant'])
    expect((await own.redeem(code)).status).toBe(200)
  })
})
