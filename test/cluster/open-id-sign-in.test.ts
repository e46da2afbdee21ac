// Sign-ins by OpenID Connect whose steps reach different controllers, as behind a load balancer.
import { randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { beforeEach, describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims } from '../openid-connect/client.ts'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, copyOfTemplate, TestClock, type TestController, testController } from '../world/controller.ts'
import { People, type Person } from '../world/people.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const world = useClusterPerTest(TestCluster)
let clock: TestClock
let first: TestController
let second: TestController
let people: People

beforeEach(async () => {
  clock = new TestClock()
  first = await world.cluster.open('first', { settings: OIDC_SETTINGS, clock })
  second = await world.cluster.open('second', { settings: OIDC_SETTINGS, clock })
  people = await People.in(first)
})

const use = (node: TestController, token: string) =>
  node.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) })

/** A person whom both controllers know. */
async function addPerson(values: Record<string, unknown> = {}): Promise<Person> {
  const person = await people.person(values)
  await second.controller.cluster?.catchUp()
  return person
}

/** A client with a sign-in that is complete at the first controller, and its code. */
async function withCode(person: Person) {
  const client = new OpenIdClient(first)
  const id = await client.begin()
  await client.login(id, person)
  return { client, id, code: await client.finish(id) }
}

describe('a sign-in', () => {
  it('begun at one controller is completed by turns at both', async () => {
    const person = await addPerson()
    for (let times = 0; times < 5; times += 1) {
      const client = new OpenIdClient(first)
      const id = await client.begin()
      expect((await client.at(second).login(id, person)).status).toBe(302)
      const code = await client.at(first).finish(id)
      const { status, body } = await client.at(second).redeem(code)
      expect(status).toBe(200)
      expect((await use(first, body.access_token)).status).toBe(200)
    }
  })

  it('that owes a second factor enrolls it and passes it elsewhere', async () => {
    const person = await addPerson({ authPolicyId: await people.policy({ requireTotp: true }) })
    const client = new OpenIdClient(first)
    const id = await client.begin()
    expect((await client.at(second).login(id, person)).headers['totp-required']).toBe('true')
    const { body } = await client.at(first).postJson('/oidc/login/totp/enroll', { id })
    const app = new AuthenticatorApp(body.provisioningUrl)
    const verification = { id, code: app.code(clock.now()) }
    expect((await client.at(second).postJson('/oidc/login/totp/enroll/verify', verification)).status).toBe(302)
    expect((await client.at(second).redeem(await client.at(first).finish(id))).status).toBe(200)
    clock.advance(STEP_MS)

    const next = new OpenIdClient(first)
    const nextId = await next.begin()
    await next.at(second).login(nextId, person)
    const wrong = await next.at(first).postJson('/oidc/login/totp', { id: nextId, code: app.wrongCode(clock.now()) })
    expect(wrong.status).toBe(400)
    const factors = await next.at(first).get(`/oidc/login/auth-queries?id=${nextId}`)
    expect(factors.body.authQueries).toHaveLength(1)
    const passed = await next.at(first).postJson('/oidc/login/totp', { id: nextId, code: app.code(clock.now()) })
    expect(passed.status).toBe(302)
    const tokens = await next.at(first).redeem(await next.at(second).finish(nextId))
    expect(readClaims(tokens.body.access_token).amr).toEqual(['password', 'totp'])
  })

  it('ends after five wrong codes, at whichever controllers they are sent', async () => {
    const person = await addPerson({ authPolicyId: await people.policy({ requireTotp: true }) })
    const client = new OpenIdClient(first)
    const id = await client.begin()
    await client.login(id, person)
    const { body } = await client.postJson('/oidc/login/totp/enroll', { id })
    const app = new AuthenticatorApp(body.provisioningUrl)
    await client.postJson('/oidc/login/totp/enroll/verify', { id, code: app.code(clock.now()) })
    clock.advance(STEP_MS)
    const nextId = await client.begin()
    await client.login(nextId, person)
    for (let count = 0; count < 5; count += 1) {
      const code = app.wrongCode(clock.now())
      await client.at(count % 2 === 0 ? second : first).postJson('/oidc/login/totp', { id: nextId, code })
    }
    for (const node of [first, second]) {
      const right = await client.at(node).postJson('/oidc/login/totp', { id: nextId, code: app.code(clock.now()) })
      expect(right.status).not.toBe(302)
    }
  })

  it('with a browser goes on at another controller, and for no other client', async () => {
    const { username, password } = await addPerson()
    const client = new OpenIdClient(first)
    const begun = await client.begin()
    const accept = { accept: 'text/html' }
    const page = await client.get(`/oidc/login/username?authRequestID=${begun}`, accept)
    const id = String(page.headers['auth-request-id'])
    const [cookie = ''] = String(page.headers['set-cookie']).split(';')
    const form = { id, username, password }

    expect((await client.at(second).postForm('/oidc/login/password', form, accept)).status).toBe(401)
    expect((await client.postForm('/oidc/login/password', form, { ...accept, cookie })).status).toBe(302)
    for (const node of [first, second]) {
      for (const other of [begun, id])
        expect((await client.at(node).get(`/oidc/authorize/callback?id=${other}`)).status).toBe(400)
      expect((await client.postForm('/oidc/login/password', { ...form, id: begun })).status).toBe(401)
    }
    const { headers } = await client.at(first).get(`/oidc/authorize/callback?id=${id}`, { cookie })
    const code = new URL(String(headers.location)).searchParams.get('code') ?? ''
    expect((await client.at(second).redeem(code)).status).toBe(200)
  })

  it('replaces an earlier one of the request elsewhere, with all that it had passed', async () => {
    const [former, later] = [await addPerson(), await addPerson()]
    const { client, id, code } = await withCode(former)
    await client.at(second).login(id, later)

    expect((await client.at(first).redeem(code)).body.error).toBe('invalid_grant')
    const { body } = await client.at(first).redeem(await client.finish(id))
    expect(readClaims(body.access_token).sub).toBe(later.id)
  })

  it('whose time is over is refused everywhere', async () => {
    const person = await addPerson()
    const { client, id, code } = await withCode(person)
    clock.advance(60_000)
    expect((await client.at(second).redeem(code)).body.error).toBe('invalid_grant')
    clock.advance(9 * 60_000)
    for (const node of [first, second]) expect((await client.at(node).login(id, person)).status).toBe(401)
  })

  it('of another network is unknown', async () => {
    const directory = copyOfTemplate()
    // The directories of the tests have one key.
    writeFileSync(getDataPaths(directory).tokenKey, randomBytes(32), { mode: 0o600 })
    const stranger = await testController({ settings: OIDC_SETTINGS, clock, directory })
    const client = new OpenIdClient(stranger)
    const id = await client.begin()
    await client.login(id, await (await People.in(stranger)).person())
    const code = await client.finish(id)

    expect((await client.at(first).login(id, await addPerson())).status).toBe(401)
    expect((await client.at(first).redeem(code)).body.error).toBe('invalid_grant')
    expect((await client.at(stranger).redeem(code)).status).toBe(200)
    await stranger.close()
  })
})

describe('a code', () => {
  it('is redeemed once over all controllers, and a second use ends the session', async () => {
    const { client, code } = await withCode(await addPerson())
    const { body } = await client.at(second).redeem(code)
    expect((await use(first, body.access_token)).status).toBe(200)

    const again = await client.at(first).redeem(code)

    expect([again.status, again.body.error]).toEqual([400, 'invalid_grant'])
    expect((await use(first, body.access_token)).status).toBe(401)
    // As soon as that one has followed the log.
    await expect.poll(async () => (await use(second, body.access_token)).status).toBe(401)
    expect((await client.at(second).redeem(code)).body.error).toBe('invalid_grant')
  })

  it('sent to both at a time issues tokens once at most', async () => {
    const person = await addPerson()
    for (let times = 0; times < 10; times += 1) {
      const { client, code } = await withCode(person)
      const exchanges = [first, second, first, second].map((node) => client.at(node).redeem(code))
      const successes = (await Promise.all(exchanges)).filter(({ status }) => status === 200)
      expect(successes.length).toBeLessThanOrEqual(1)
      for (const { body } of successes)
        await expect.poll(async () => (await use(second, body.access_token)).status).toBe(401)
    }
  })

  it('of a session that was ended elsewhere a moment ago issues none', async () => {
    const person = await addPerson()
    const { client, code } = await withCode(person)
    const [session] = await people.manage('GET', `/api-sessions?filter=identity="${person.id}"`)
    await people.manage('DELETE', `/api-sessions/${session.id}`)

    expect((await client.at(second).redeem(code)).body.error).toBe('invalid_grant')
  })
})

describe('tokens that were issued at one controller a moment ago', () => {
  it.each<[string, (client: OpenIdClient, token: string) => Promise<unknown>]>([
    ['a revocation', (client, token) => client.postForm('/oidc/revoke', { client_id: 'native', token })],
    ['a sign-out', (client, token) => client.get(`/oidc/end_session?id_token_hint=${token}`)],
  ])('end by %s at another one', async (_name, end) => {
    const client = new OpenIdClient(first)
    const person = await addPerson()
    // Both know the key of tokens from here on.
    await client.signIn(person)
    await second.controller.cluster?.catchUp()
    const { access_token: token } = await client.signIn(person)

    await end(client.at(second), token)

    expect((await use(second, token)).status).toBe(401)
    await first.controller.cluster?.catchUp()
    expect((await use(first, token)).status).toBe(401)
  })
})
