// Attacks on what tokens open: tokens of other kinds, streams that outlive a right, floods of passwords, and what the audit says of it.
import { beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp } from '../world/authenticator-app.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { watchEvents } from '../world/event-stream.ts'
import { Issuer } from '../world/issuers.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'
import { bearer, type Form, OIDC_SETTINGS, OpenIdClient, readClaims, type Tokens } from './client.ts'

const SETTINGS = { ...OIDC_SETTINGS, 'session.timeout': '24h' }
const world = useController({ settings: SETTINGS })
let people: People

beforeAll(async () => {
  people = await People.in(world)
})

const GRACE_MS = 60_000
const EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange'
const TYPE = 'urn:ietf:params:oauth:token-type:'

const call = (token: string, method = 'GET', path = `${CLIENT}/current-identity`, body?: object) =>
  world.send({ method, path, headers: bearer(token), ...(body ? { body } : {}) })

const isAdmitted = async (token: string) => (await call(token)).status === 200

const refresh = (client: OpenIdClient, token: string, changes: Form = {}) =>
  client.postForm('/oidc/oauth/token', {
    ...{ grant_type: 'refresh_token', client_id: client.clientId, refresh_token: token },
    ...changes,
  })

/** A session with the tokens that routers are shown: of its second factor, and of a session for a service. */
async function withRouterTokens(): Promise<{ client: OpenIdClient; tokens: Tokens; others: readonly string[] }> {
  const person = await people.person()
  const client = new OpenIdClient(world)
  const tokens = await client.signIn(person)
  const { access_token: token } = tokens
  await call(token, 'POST', `${CLIENT}/current-identity/mfa`)
  const { provisioningUrl } = (await call(token, 'GET', `${CLIENT}/current-identity/mfa`)).body.data
  const app = new AuthenticatorApp(provisioningUrl)
  await call(token, 'POST', `${CLIENT}/current-identity/mfa/verify`, { code: app.code(world.clock.now()) })
  world.clock.advance(30_000)
  const code = app.code(world.clock.now())
  const totp = await call(token, 'POST', `${CLIENT}/current-api-session/totp-token`, { code })
  expect(totp.status).toBe(200)
  const { sub, z_asid } = readClaims(token)
  const issuedAt = Math.floor(world.clock.now() / 1_000)
  const serviceToken = await world.controller.tokenKeys.sign({
    ...{ iss: 'https://127.0.0.1:1280', sub: 'a service', aud: ['openziti'], iat: issuedAt, exp: issuedAt + 3_600 },
    ...{ jti: 'a session', z_asid, z_iid: sub, z_t: 's', z_st: 'Dial' },
  })
  return { client, tokens, others: [totp.body.data.token, serviceToken] }
}

describe('tokens of other kinds', () => {
  it('of enrollments, and of an administrator who is not there yet, call nothing', async () => {
    const { id } = await people.manage('POST', '/identities', {
      name: 'to enroll',
      type: 'User',
      isAdmin: true,
      enrollment: { ott: true },
    })
    const { enrollment } = await people.manage('GET', `/identities/${id}`)
    const { token, jwt } = (enrollment as { ott: { token: string; jwt: string } }).ott

    for (const other of [token, jwt]) {
      expect(await isAdmitted(other)).toBe(false)
      for (const header of ['net-session', 'zt-session']) {
        const { status } = await world.send({
          method: 'GET',
          path: `${CLIENT}/current-identity`,
          headers: { [header]: other },
        })
        expect(status).toBe(401)
      }
    }
  })

  it('of second factors and of sessions for services call nothing, are exchanged for nothing, and end nothing', async () => {
    const { client, tokens, others } = await withRouterTokens()
    const exchange = (token: string, kind: string) =>
      client.postForm('/oidc/oauth/token', {
        ...{ grant_type: EXCHANGE, client_id: 'native' },
        ...{ subject_token: token, subject_token_type: `${TYPE}${kind}_token` },
      })

    for (const token of others) {
      expect(await isAdmitted(token)).toBe(false)
      expect((await refresh(client, token)).body.error).toBe('invalid_grant')
      for (const kind of ['access', 'refresh', 'id'])
        expect((await exchange(token, kind)).body.error).toBe('invalid_request')
      expect((await client.get('/oidc/userinfo', bearer(token))).status).toBe(401)
      const form = { client_id: 'native', token }
      expect((await client.postForm('/oidc/oauth/introspect', form)).body.error).toBe('invalid_client')
      for (const client_id of ['native', 'openziti']) await client.postForm('/oidc/revoke', { client_id, token })
      expect((await client.postForm('/oidc/end_session', { id_token_hint: token })).body.error).toBe('invalid_request')
    }
    expect(await isAdmitted(tokens.access_token)).toBe(true)
  })
})

describe('a stream of events', () => {
  let address: { url: string; rootPem: string }
  beforeAll(async () => {
    address = await world.listen()
  })

  const watch = async (scope = 'openid offline_access') => {
    const administrator = await people.person({ isAdmin: true })
    const client = new OpenIdClient(world)
    const id = await client.begin({ scope })
    await client.login(id, administrator)
    const tokens = (await client.redeem(await client.finish(id))).body as Tokens
    const watcher = await watchEvents(address, '', '', bearer(tokens.access_token))
    expect(watcher.status).toBe(200)
    return { tokens, watcher }
  }
  const beat = () => world.controller.events.beat()

  it.each([
    ['its access token has expired', async () => world.clock.advance(30 * 60_000)],
    [
      'its access token was revoked',
      (token: string) => people.manage('POST', '/revocations', { id: readClaims(token).jti, type: 'JTI' }),
    ],
    [
      'its session was deleted',
      (token: string) => people.manage('DELETE', `/api-sessions/${readClaims(token).z_asid}`),
    ],
  ])('ends once %s', async (_name, end) => {
    const { tokens, watcher } = await watch()
    await end(tokens.access_token)
    beat()

    await expect.poll(() => watcher.hasEnded).toBe(true)
    expect(watcher.events.filter(({ type }) => type === 'record-deleted')).toEqual([])
    await watcher.close()
  })
})

describe('two uses of one refresh token at a time', () => {
  it('just before its grace ends both succeed, and just after it both end the session', async () => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person())
    const next = await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS - 1)
    const twice = () => Promise.all([refresh(client, tokens.refresh_token), refresh(client, tokens.refresh_token)])
    const before = await twice()
    world.clock.advance(1)
    const after = await twice()

    expect([...before, ...after].map(({ status }) => status)).toEqual([200, 200, 400, 400])
    expect(new Set(before.map(({ body }) => readClaims(body.refresh_token).jti)).size).toBe(1)
    expect((await refresh(client, next.body.refresh_token)).status).toBe(400)
  })

  it('together with its successor leave one line of tokens', async () => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person())
    const next = await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS - 1)
    const uses = [next.body.refresh_token, next.body.refresh_token, tokens.refresh_token, tokens.refresh_token]
    const responses = await Promise.all(uses.map((token) => refresh(client, token)))

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    const successor = readClaims(next.body.refresh_token).jti
    const [last, lastAgain, ...afterFirst] = responses.map(({ body }) => readClaims(body.refresh_token).jti)
    expect(lastAgain).toBe(last)
    expect(last).not.toBe(successor)
    // They get the successor if they are processed before that is used: signatures are verified in threads, in any order.
    for (const id of afterFirst) expect([successor, last]).toContain(id)
  })
})

describe('a certificate', () => {
  it('is issued neither to a session that was ended, nor for a token that was revoked', async () => {
    const [ended, revoked] = [
      await new OpenIdClient(world).signIn(await people.person()),
      await new OpenIdClient(world).signIn(await people.person()),
    ]
    await people.manage('DELETE', `/api-sessions/${readClaims(ended.access_token).z_asid}`)
    await people.manage('POST', '/revocations', { id: readClaims(revoked.access_token).jti, type: 'JTI' })

    for (const { access_token: token } of [ended, revoked])
      expect((await call(token, 'POST', `${CLIENT}/current-api-session/certificates`, { csr: 'any' })).status).toBe(401)
  })
})

describe('the audit', () => {
  const listRefusals = async () => {
    const { auth, contexts } = world.controller
    await auth.failedSignIns.flush(contexts)
    const rows = await world.system.db
      .selectFrom('audit_records')
      .selectAll()
      .where('operation', '=', 'refuse')
      .execute()
    return rows.length
  }

  it.each([
    [
      'password',
      (client: OpenIdClient, id: string) =>
        client.postForm('/oidc/login/password', { id, username: `someone ${id.slice(0, 16)}`, password: 'wrong' }),
    ],
    ['certificate', (client: OpenIdClient, id: string) => client.postForm('/oidc/login/cert', { id })],
    [
      'token',
      async (client: OpenIdClient, id: string) =>
        client.postForm('/oidc/login/ext-jwt', { id }, bearer(new Issuer().token(world, 'any'))),
    ],
  ])('has a record of a %s that was refused', async (_name, attempt) => {
    world.clock.advance(60_000)
    await listRefusals()
    const before = await listRefusals()
    const client = new OpenIdClient(world)

    expect((await attempt(client, await client.begin())).status).toBe(401)

    expect((await listRefusals()) - before).toBe(1)
  })

  it('has a record of a session that ended because its refresh token was used twice', async () => {
    const client = new OpenIdClient(world)
    const tokens = await client.signIn(await people.person())
    await refresh(client, tokens.refresh_token)
    world.clock.advance(GRACE_MS)
    await refresh(client, tokens.refresh_token)

    const record = await world.system.db
      .selectFrom('audit_records')
      .select(['operation', 'resource'])
      .where('entityId', '=', readClaims(tokens.access_token).z_asid)
      .where('operation', '=', 'delete')
      .executeTakeFirst()
    expect(record).toEqual({ operation: 'delete', resource: 'api-sessions' })
  })
})

describe('a flood of passwords through the pages', () => {
  let busy: TestController | undefined

  it('waits in the same queue as other sign-ins, and leaves requests by tokens alone', async () => {
    const passwordCost = { memoryCost: 8_192, timeCost: 2, parallelism: 1 }
    busy = await testController({ settings: { ...SETTINGS, 'limits.passwordQueue': 1 }, passwordCost })
    const ownPeople = await People.in(busy)
    const person = await ownPeople.person()
    const client = new OpenIdClient(busy)
    const { access_token: token } = await client.signIn(person)
    const ids = await Promise.all(Array.from({ length: 30 }, () => client.begin()))
    const flood = ids.map((id) => client.login(id, { username: person.username, password: `wrong ${id.slice(0, 16)}` }))
    const { status } = await busy.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })
    const statuses = new Set((await Promise.all(flood)).map((response) => response.status))

    expect(status).toBe(200)
    expect([...statuses].every((each) => each === 401 || each === 429 || each === 503)).toBe(true)
    expect(statuses.has(429) || statuses.has(503)).toBe(true)
    await busy.close()
  })
})

describe('what is sent in a sign-in', () => {
  const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

  it.each([
    ['nested a thousand times', nested(1_000), 400],
    ['nested within the report of a client', `{"envInfo":${nested(500)}}`, 400],
    ['a list of lists', `${'['.repeat(5_000)}${']'.repeat(5_000)}`, 400],
    ['of 200 kilobytes', JSON.stringify({ username: 'x'.repeat(200_000) }), 413],
  ])('is refused if it is %s', async (_name, body, status) => {
    const client = new OpenIdClient(world)
    const id = await client.begin()
    const response = await world.send({
      ...{ method: 'POST', path: `/oidc/login/password?authRequestID=${id}`, body },
      headers: { host: '127.0.0.1:1280', 'content-type': 'application/json' },
    })

    expect(response.status).toBe(status)
  })

  it.each([
    ['state', 5_000],
    ['nonce', 5_000],
    ['scope', 5_000],
    ['redirect_uri', 5_000],
  ])('is refused if its %s has %i characters', async (name, length) => {
    const client = new OpenIdClient(world)

    expect(
      (await client.postForm('/oidc/authorize', { ...client.parameters, [name]: 'x'.repeat(length) })).status,
    ).toBe(400)
  })

  it.each(['code', 'code_verifier', 'refresh_token', 'subject_token', 'scope', 'csr_pem', 'client_id', 'grant_type'])(
    'is refused if its %s has fifty thousand characters',
    async (name) => {
      const client = new OpenIdClient(world)
      const tokens = await client.signIn(await people.person())
      const form = { grant_type: 'refresh_token', client_id: 'native', refresh_token: tokens.refresh_token }
      const ignored = ['code', 'code_verifier', 'subject_token', 'csr_pem'].includes(name)

      const { status } = await client.postForm('/oidc/oauth/token', { ...form, [name]: 'x'.repeat(50_000) })

      // Parameters of other grants are not read.
      expect(status).toBe(ignored ? 200 : 400)
    },
  )
})
