// Sign-in and enrollment at several controllers: what may be used once, is used once, and what is limited has one limit.
import { beforeEach, describe, expect, it } from 'vitest'
import { bearer, OIDC_SETTINGS, OpenIdClient } from '../openid-connect/client.ts'
import type { AuthenticatorApp } from '../world/authenticator-app.ts'
import { STEP_MS } from '../world/authenticator-app.ts'
import { clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { LIMITED, MfaPeople, MfaSession, outcome, WRONG } from '../world/mfa.ts'
import { useNetworkPerTest } from '../world/network-of-controllers.ts'
import { People } from '../world/people.ts'

const world = useNetworkPerTest({ settings: OIDC_SETTINGS })
let people: readonly People[]

beforeEach(async () => {
  people = await Promise.all(world.nodes.map((node) => People.in(node, `administrator of ${node.name}`)))
})

/** A session of a person at each controller, in turn, whose second factor is verified at both. */
async function enrollFactor() {
  const mfa = world.nodes.map((node, at) => new MfaPeople(node, people[at]!))
  const { person, device, recoveryCodes } = await mfa[0]!.enrolled()
  world.nodes[1]!.clock.advance(STEP_MS)
  await world.network.catchUp()
  const signIn = async (at: number, from: string) => {
    const session = await mfa[at]!.signIn(person, { from })
    await world.network.catchUp()
    return session
  }
  return { device, recoveryCodes, signIn }
}

/** Lets time pass until the app shows a code that does not have the form of a recovery code. */
function awaitPlainCode(device: AuthenticatorApp): void {
  const [{ clock }] = world.nodes as [(typeof world.nodes)[0]]
  while (!/[0189]/.test(device.code(clock.now()))) world.network.advance(STEP_MS)
}

describe('the second factor', () => {
  it('permits ten wrong codes in five minutes at all controllers together', async () => {
    const { device, signIn } = await enrollFactor()
    awaitPlainCode(device)
    const wrong = device.wrongCode(world.nodes[0]!.clock.now())
    for (let guess = 0; guess < 10; guess += 1) {
      const session = await signIn(guess % 2, '198.51.100.7')
      expect(outcome(await session.pass(wrong))).toEqual(WRONG)
    }
    for (const at of [0, 1]) {
      const session = await signIn(at, '198.51.100.7')
      expect(outcome(await session.pass(device.code(world.nodes[0]!.clock.now())))).toEqual(LIMITED)
    }
  })

  it('is passed once by a code, or a recovery code, at whichever controller, also at the same moment', async () => {
    const { device, recoveryCodes, signIn } = await enrollFactor()
    for (const code of [device.code(world.nodes[0]!.clock.now()), recoveryCodes[0]!]) {
      const sessions = [await signIn(0, '192.0.2.1'), await signIn(1, '192.0.2.1')]
      const results = await Promise.all(sessions.map((session) => session.pass(code)))
      expect(results.map(({ status }) => status).toSorted()).toEqual([200, 401])
    }
  })

  it('is set up at one controller, and verified and removed at the other', async () => {
    const person = await people[0]!.person()
    const token = await people[0]!.sessionOf(person)
    await world.network.catchUp()
    const [first, second] = world.nodes.map((node) => new MfaSession(node, token))
    await first!.start()
    await world.network.catchUp()
    const device = await second!.app()
    expect((await second!.verify(device.code(world.nodes[1]!.clock.now()))).status).toBe(200)
    await world.network.catchUp()
    world.network.advance(STEP_MS)
    expect((await first!.show()).body.data.isVerified).toBe(true)
    expect((await first!.remove(device.code(world.nodes[0]!.clock.now()))).status).toBe(200)
    await world.network.catchUp()
    expect((await second!.show()).status).toBe(404)
  })
})

describe('wrong passwords', () => {
  it('lock the identity out by their number at all controllers together', async () => {
    const authPolicyId = await people[0]!.policy({ updb: { maxAttempts: 3 } })
    const person = await people[0]!.person({ authPolicyId })
    await world.network.catchUp()
    for (const at of [0, 1, 0]) {
      expect((await people[at]!.signIn({ ...person, password: 'wrong' })).status).toBe(401)
      await world.network.catchUp()
    }
    for (const one of people) expect((await one.signIn(person)).status).toBe(401)
    expect((await people[1]!.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
  })
})

describe('an enrollment token', () => {
  it('of one controller is accepted by the other, and is used once by all that come at the same moment', async () => {
    const id = await people[0]!.identity({ enrollment: { ott: true } })
    const { enrollment } = await people[0]!.manage('GET', `/identities/${id}`)
    await world.network.catchUp()
    const { csr } = await clientKey(id)
    const results = await Promise.all(people.map((one) => one.enroll(enrollment.ott.token, csr)))
    expect(results.filter(({ status }) => status === 200)).toHaveLength(1)
    expect(await world.network.listDifferences()).toEqual([])
  })
})

describe('the token of a machine', () => {
  it('is used at both controllers, and at none once it was deleted at one', async () => {
    const { id: identityId } = await world.nodes[0]!.signIn({ isAdmin: true, name: 'robot' })
    const expiresAt = new Date(world.nodes[0]!.clock.now() + 86_400_000).toISOString()
    const body = { name: 'robot', identityId, expiresAt, permissions: ['service.read'] }
    const { id, token } = await people[0]!.manage('POST', '/controller/tokens', body)
    await world.network.catchUp()
    const read = (at: number) =>
      world.nodes[at]!.send({ method: 'GET', path: `${MANAGEMENT}/services`, headers: bearer(token) })
    expect([(await read(0)).status, (await read(1)).status]).toEqual([200, 200])
    await people[1]!.manage('DELETE', `/controller/tokens/${id}`)
    await world.network.catchUp()
    expect([(await read(0)).status, (await read(1)).status]).toEqual([401, 401])
  })
})

describe('a sign-in by OpenID Connect', () => {
  const clients = () => world.nodes.map((node) => new OpenIdClient(node))

  const isAdmitted = async (at: number, token: string) =>
    (await world.nodes[at]!.send({ method: 'GET', path: `${CLIENT}/current-identity`, headers: bearer(token) }))
      .status === 200

  const refresh = (client: OpenIdClient, token: string) =>
    client.postForm('/oidc/oauth/token', {
      grant_type: 'refresh_token',
      client_id: client.clientId,
      refresh_token: token,
    })

  it('gives tokens that both controllers accept, and refresh: the former is good for a minute at both, and ends it then', async () => {
    const [first, second] = clients()
    const tokens = await first!.signIn(await people[0]!.person())
    await world.network.catchUp()
    expect([await isAdmitted(0, tokens.access_token), await isAdmitted(1, tokens.access_token)]).toEqual([true, true])

    const next = await refresh(second!, tokens.refresh_token)
    expect(next.status).toBe(200)
    await world.network.catchUp()
    expect((await refresh(first!, tokens.refresh_token)).status).toBe(200)
    world.network.advance(61_000)
    const reused = await refresh(first!, tokens.refresh_token)
    await world.network.catchUp()
    expect([reused.status, reused.body.error]).toEqual([400, 'invalid_grant'])
    expect((await refresh(second!, next.body.refresh_token)).status).toBe(400)
    expect([await isAdmitted(0, tokens.access_token), await isAdmitted(1, tokens.access_token)]).toEqual([false, false])
  })
})
