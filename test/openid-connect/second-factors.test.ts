// Second factors of a sign-in by OpenID Connect: codes, enrollment, tokens of external signers, and what must not count.
import { beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, HOST, ISSUER, OIDC_SETTINGS, OpenIdClient, readClaims } from './client.ts'

const world = useController({ settings: { ...OIDC_SETTINGS, 'session.timeout': '24h' } })
let people: People
let totpPolicy: string

beforeAll(async () => {
  people = await People.in(world)
  totpPolicy = await people.policy({ requireTotp: true })
})

const TOTP_QUERY = {
  typeId: 'TOTP',
  provider: 'ziti',
  format: 'numeric',
  minLength: 6,
  maxLength: 8,
  httpMethod: 'POST',
  httpUrl: './oidc/login/totp',
  scopes: null,
}

const now = () => world.clock.now()
const callback = (id: string) => `${ISSUER}/authorize/callback?id=${id}`

/** Signs in, and stops before the second factor. */
async function beginAs(person: Person, client = new OpenIdClient(world)) {
  const id = await client.begin()
  return { client, id, login: await client.login(id, person) }
}

/** A person with a verified factor, which was enrolled during a sign-in. */
async function personWithTotp(): Promise<{ person: Person; app: AuthenticatorApp; recoveryCodes: string[] }> {
  const person = await people.person({ authPolicyId: totpPolicy })
  const { client, id } = await beginAs(person)
  const { body } = await client.postJson('/oidc/login/totp/enroll', { id })
  const app = new AuthenticatorApp(body.provisioningUrl)
  const { status } = await client.postJson('/oidc/login/totp/enroll/verify', { id, code: app.code(now()) })
  expect(status).toBe(302)
  world.clock.advance(STEP_MS)
  return { person, app, recoveryCodes: body.recoveryCodes }
}

const sendCode = (client: OpenIdClient, id: string, code: string) => client.postJson('/oidc/login/totp', { id, code })

describe('a sign-in whose policy requires TOTP', () => {
  it('without an enrollment is told so, and enrolls', async () => {
    const { client, id, login } = await beginAs(await people.person({ authPolicyId: totpPolicy }))
    const enrolled = await client.postJson('/oidc/login/totp/enroll', { id })
    const again = await client.postJson('/oidc/login/totp/enroll', { id })
    const { provisioningUrl, recoveryCodes } = enrolled.body

    expect([login.status, login.headers['totp-required'], login.body]).toEqual([
      200,
      'true',
      { authQueries: [TOTP_QUERY] },
    ])
    expect(enrolled.status).toBe(201)
    expect(enrolled.body).toMatchObject({
      id: expect.any(String),
      createdAt: expect.any(String),
      isVerified: false,
      _links: null,
    })
    expect(recoveryCodes.length).toBeGreaterThan(9)
    expect([again.status, again.body.code, typeof again.body.message]).toEqual([409, 'MFA_EXISTS', 'string'])
    const app = new AuthenticatorApp(provisioningUrl)
    for (const code of [app.wrongCode(now()), '', 'letters', '1', '123456789', recoveryCodes[0]]) {
      const wrong = await client.postJson('/oidc/login/totp/enroll/verify', { id, code })
      expect([code, wrong.status, wrong.body.code]).toEqual([code, 400, 'MFA_INVALID_TOKEN'])
    }
    const verified = await client.postJson('/oidc/login/totp/enroll/verify', { id, code: app.code(now()) })
    expect([verified.status, verified.headers.location]).toEqual([302, callback(id)])
    const { body } = await client.redeem(await client.finish(id))
    expect(readClaims(body.access_token).amr).toEqual(['password', 'totp'])
    world.clock.advance(STEP_MS)
  })

  it('drops an enrollment that is not verified, and starts another one', async () => {
    const { client, id } = await beginAs(await people.person({ authPolicyId: totpPolicy }))
    await client.postJson('/oidc/login/totp/enroll', { id })
    const drop = () =>
      world.send({
        method: 'DELETE',
        path: `/oidc/login/totp/enroll?id=${id}`,
        headers: { host: '127.0.0.1:1280', 'content-type': 'application/x-www-form-urlencoded', 'content-length': '0' },
      })

    const dropped = await drop()

    expect([dropped.status, dropped.text, (await drop()).status]).toEqual([200, '{}', 404])
    expect((await client.postJson('/oidc/login/totp/enroll', { id })).status).toBe(201)
  })

  it('changes its enrollment no more often than a session may', async () => {
    const { client, id } = await beginAs(await people.person({ authPolicyId: totpPolicy }))
    const statuses = new Set<number>()
    for (let count = 0; count < 30; count++) {
      statuses.add((await client.postJson('/oidc/login/totp/enroll', { id })).status)
      await world.send({ method: 'DELETE', path: `/oidc/login/totp/enroll?id=${id}`, headers: { host: HOST } })
    }

    expect(statuses).toContain(429)
  })

  it('with an enrollment is told so, and passes by a code, which is good once', async () => {
    const { app, person } = await personWithTotp()
    const { client, id, login } = await beginAs(person)
    const other = await beginAs(person)
    const code = app.code(now())

    const passed = await client.postForm('/oidc/login/totp', { id, code })
    const replayed = await sendCode(other.client, other.id, code)

    expect(login.body).toEqual({ authQueries: [{ ...TOTP_QUERY, isTotpEnrolled: true }] })
    expect([passed.status, passed.headers.location]).toEqual([302, callback(id)])
    expect([replayed.status, replayed.body.code]).toEqual([400, 'INVALID TOTP CODE'])
    const { body } = await client.redeem(await client.finish(id))
    const { status } = await world.send({
      method: 'GET',
      path: `${CLIENT}/services`,
      headers: bearer(body.access_token),
    })
    expect(status).toBe(200)
    const refreshed = await client.postForm('/oidc/oauth/token', {
      grant_type: 'refresh_token',
      client_id: 'native',
      refresh_token: body.refresh_token,
    })
    expect(readClaims(refreshed.body.access_token).amr).toEqual(['password', 'totp'])
    world.clock.advance(STEP_MS)
  })

  it('that owes its code cannot remove the enrollment by it', async () => {
    const { person, app } = await personWithTotp()
    const { client, id } = await beginAs(person)
    const code = app.code(now())

    const removed = await world.send({
      method: 'DELETE',
      path: '/oidc/login/totp/enroll',
      headers: { host: HOST },
      body: { id, code },
    })

    expect(removed.status).toBe(401)
    expect((await sendCode(client, id, code)).headers.location).toBe(callback(id))
  })

  it('passes by a recovery code once', async () => {
    const { person, recoveryCodes } = await personWithTotp()
    const [code = ''] = recoveryCodes
    const [first, second] = [await beginAs(person), await beginAs(person)]

    expect((await sendCode(first.client, first.id, code)).status).toBe(302)
    expect((await sendCode(second.client, second.id, code)).status).toBe(400)
  })

  it('accepts one code of fifty requests at a time once', async () => {
    const { app, person } = await personWithTotp()
    const attempts = await Promise.all(Array.from({ length: 50 }, () => beginAs(person)))
    const code = app.code(now())

    const responses = await Promise.all(attempts.map(({ client, id }) => sendCode(client, id, code)))

    expect(responses.filter(({ status }) => status === 302)).toHaveLength(1)
    world.clock.advance(STEP_MS)
  })

  it('ends after five wrong codes', async () => {
    const { app, person } = await personWithTotp()
    const { client, id } = await beginAs(person)
    for (let count = 0; count < 5; count++) expect((await sendCode(client, id, app.wrongCode(now()))).status).toBe(400)

    expect((await sendCode(client, id, app.code(now()))).status).not.toBe(302)
    expect((await client.get(`/oidc/authorize/callback?id=${id}`)).headers.location).toMatch(
      /error=interaction_required/,
    )
  })
})

describe('a second factor', () => {
  it('that one identity passed does not count for another that signs in within the same request', async () => {
    const { app, person } = await personWithTotp()
    const victim = await personWithTotp()
    const { client, id } = await beginAs(person)
    expect((await sendCode(client, id, app.code(now()))).status).toBe(302)

    const login = await client.login(id, victim.person)

    expect([login.status, login.headers['totp-required']]).toEqual([200, 'true'])
    expect((await client.get(`/oidc/authorize/callback?id=${id}`)).headers.location).toMatch(
      /error=interaction_required/,
    )
    world.clock.advance(STEP_MS)
  })

  it('that is not verified does not count', async () => {
    const { client, id } = await beginAs(await people.person({ authPolicyId: totpPolicy }))
    const { body } = await client.postJson('/oidc/login/totp/enroll', { id })

    const { status } = await sendCode(client, id, new AuthenticatorApp(body.provisioningUrl).code(now()))

    expect(status).toBe(400)
  })

  it('cannot be enrolled before a credential is proven, whatever identity a hint names', async () => {
    const person = await people.person()
    const { id_token } = await new OpenIdClient(world).signIn(person)
    const client = new OpenIdClient(world)
    const id = await client.begin({ id_token_hint: id_token })

    for (const path of ['/oidc/login/totp/enroll', '/oidc/login/totp/enroll/verify'])
      expect((await client.postJson(path, { id, code: '123456' })).status).toBe(401)
    expect((await sendCode(client, id, '123456')).status).toBe(401)
  })

  it('is listed as long as it is pending', async () => {
    const { app, person } = await personWithTotp()
    const { client, id } = await beginAs(person)
    const list = async () => (await client.get(`/oidc/login/auth-queries?id=${id}`)).body

    expect((await list()).authQueries).toHaveLength(1)
    await sendCode(client, id, app.code(now()))
    expect(await list()).toEqual({ authQueries: null })
    expect((await client.get('/oidc/login/auth-queries?id=6fd72218-2e8f-46ac-92d4-236df815fede')).status).toBe(401)
    world.clock.advance(STEP_MS)
  })
})

describe('a new credential within a request', () => {
  it('ends the session of the first one', async () => {
    const [first, second] = [await people.person(), await people.person()]
    const client = new OpenIdClient(world)
    const id = await client.begin()
    await client.login(id, first)
    const code = await client.finish(id)
    const count = async (personId: string) =>
      (await people.manage('GET', `/api-sessions?filter=identity="${personId}"`)).length
    expect(await count(first.id)).toBe(1)

    await client.login(id, second)

    expect([await count(first.id), await count(second.id)]).toEqual([0, 1])
    expect((await client.redeem(code)).body.error).toBe('invalid_grant')
    const { body } = await client.redeem(await client.finish(id))
    expect(readClaims(body.access_token).sub).toBe(second.id)
  })
})

describe('the TOTP token of a session', () => {
  it.each([CLIENT, MANAGEMENT])('is issued for a code of the app at %s', async (api) => {
    const { app, person, recoveryCodes } = await personWithTotp()
    const { client, id } = await beginAs(person)
    await sendCode(client, id, app.code(now()))
    const { body } = await client.redeem(await client.finish(id))
    world.clock.advance(STEP_MS)
    const ask = (code: string) =>
      world.send({
        method: 'POST',
        path: `${api}/current-api-session/totp-token`,
        body: { code },
        headers: bearer(body.access_token),
      })

    const wrong = await ask(app.wrongCode(now()))
    const recovery = await ask(recoveryCodes[0] ?? '')
    const right = await ask(app.code(now()))

    expect([wrong.body.error.code, recovery.body.error.code]).toEqual(['MFA_INVALID_TOKEN', 'MFA_INVALID_TOKEN'])
    const claims = readClaims(right.body.data.token)
    expect(claims).toMatchObject({
      z_t: 't',
      z_asid: readClaims(body.access_token).z_asid,
      sub: person.id,
      aud: ['native'],
    })
    expect(claims).not.toHaveProperty('exp')
    const { status } = await world.send({
      method: 'GET',
      path: `${api}/current-identity`,
      headers: bearer(right.body.data.token),
    })
    expect(status).toBe(401)
    world.clock.advance(STEP_MS)
  })

  it('is refused to a session with a token of its own', async () => {
    const token = await people.sessionOf(await people.person())
    const path = `${CLIENT}/current-api-session/totp-token`
    const { body, status } = await world.send({ method: 'POST', path, token, body: { code: '123456' } })

    expect([status, body.error.code]).toEqual([400, 'INVALID_BACKING_TOKEN_TYPE'])
  })
})
