// Sessions by OpenID Connect at routers of release 2: which tokens they show, what routers are told, and how their rights end.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { People } from '../world/people.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { bind, newAddress, update } from '../world/router/hosting.ts'
import { TestNetwork } from '../world/router/network.ts'
import { bearer, OpenIdClient, readClaims, type Tokens } from './client.ts'

const LISTENERS = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control', 'oidc'], dialect: 'native' }]

let network: TestNetwork
let people: People
let router: ForwardingRouter
let serviceId: string

beforeEach(async () => {
  network = await TestNetwork.start({ settings: { listeners: LISTENERS, 'session.timeout': '24h' } })
  people = await People.in(network.world, newName('administrator'))
  serviceId = await network.service()
  router = await network.router(2)
  await network.terminator(serviceId, router)
})
afterEach(() => network.close())

interface Dialer {
  readonly client: OpenIdClient
  readonly tokens: Tokens
  readonly token: string
}

async function signedIn(type: 'Dial' | 'Bind' = 'Dial'): Promise<Dialer> {
  const client = new OpenIdClient(network.world)
  const tokens = await client.signIn(await people.person())
  const request = { method: 'POST', path: `${CLIENT}/sessions`, body: { serviceId, type } }
  const { body } = await network.world.send({ ...request, headers: bearer(tokens.access_token) })
  return { client, tokens, token: body.data.token }
}

const dial = ({ token }: Dialer, apiSessionToken: string) => router.dial({ token, apiSessionToken })

/** 20001: the circuit exists. */
const isOpen = async (response: ReturnType<typeof dial>) =>
  (await response).circuitId !== '' && (await response).type !== 20002

describe('a client that signed in by OpenID Connect', () => {
  it('has service tokens that name its session, and no session that routers would be told about', async () => {
    const dialer = await signedIn()

    expect(readClaims(dialer.token)).toMatchObject({
      ...{ z_t: 's', z_st: 'Dial', z_leg: false, sub: serviceId, aud: ['openziti'] },
      z_asid: readClaims(dialer.tokens.access_token).z_asid,
    })
  })

  it('dials by its access token, also by one that it received since', async () => {
    const dialer = await signedIn()
    const form = { grant_type: 'refresh_token', client_id: 'native', refresh_token: dialer.tokens.refresh_token }
    const { body } = await dialer.client.postForm('/oidc/oauth/token', form)

    expect(await isOpen(dial(dialer, dialer.tokens.access_token))).toBe(true)
    expect(await isOpen(dial(dialer, body.access_token))).toBe(true)
  })

  it('is refused what its router may have kept while it reached no controller, and dials a second later', async () => {
    const dialer = await signedIn()
    const sdkInfo = JSON.stringify({ type: 'ziti-sdk-golang', version: 'v1.7.0' })
    await network.world.system.write(({ db }) => db.updateTable('identities').set({ sdkInfo }).execute())
    await router.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.size).toBe(0)
    network.world.clock.advance(5_000)
    router = await network.reconnect(router.id, router, 2)

    expect(await isOpen(dial(dialer, dialer.tokens.access_token))).toBe(false)
    network.world.clock.advance(1_001)
    expect(await isOpen(dial(dialer, dialer.tokens.access_token))).toBe(true)
  })

  it('does not dial by a token of another session, kind or issuer', async () => {
    const [dialer, other] = [await signedIn(), await signedIn()]
    const [head, claims] = dialer.tokens.access_token.split('.')
    const tokens = [
      ...[other.tokens.access_token, dialer.tokens.refresh_token, dialer.tokens.id_token, dialer.token],
      ...[`${head}.${claims}.AAAA`, 'ey', 'eyJhbGciOiJub25lIn0.e30.'],
    ]

    for (const token of tokens) expect(await isOpen(dial(dialer, token))).toBe(false)
  })

  it('does not dial after its session has ended, nor by a token that was revoked', async () => {
    const [ended, revoked] = [await signedIn(), await signedIn()]
    await people.manage('DELETE', `/api-sessions/${readClaims(ended.tokens.access_token).z_asid}`)
    await people.manage('POST', '/revocations', { id: readClaims(revoked.tokens.access_token).jti, type: 'JTI' })

    expect(await isOpen(dial(ended, ended.tokens.access_token))).toBe(false)
    expect(await isOpen(dial(revoked, revoked.tokens.access_token))).toBe(false)
  })
})

describe('a host that signed in by OpenID Connect', () => {
  beforeEach(() =>
    network.manage.make('service-policies', {
      ...{ name: newName('bind'), type: 'Bind', semantic: 'AnyOf' },
      ...{ identityRoles: ['#all'], serviceRoles: ['#all'] },
    }),
  )

  const MINUTE = 60_000
  const hostBy = ({ token: sessionToken }: Dialer, apiToken: string) => ({ sessionToken, apiToken })

  it('has a terminator by its access token, also by one that it received since, and changes it', async () => {
    const host = await signedIn('Bind')
    const address = newAddress()
    const client = hostBy(host, host.tokens.access_token)
    expect(await bind(router.wire, { address, client })).toMatchObject({ result: 0 })
    const form = { grant_type: 'refresh_token', client_id: 'native', refresh_token: host.tokens.refresh_token }
    const { body } = await host.client.postForm('/oidc/oauth/token', form)

    const later = hostBy(host, body.access_token)

    expect(await bind(router.wire, { address, client: later })).toMatchObject({ result: 0 })
    const change = { cost: 7, updateCost: true }
    expect(await update(router.wire, later, address, change)).toMatchObject({ type: 20210 })
    expect(await network.manage.get(`/terminators/${address}`)).toMatchObject({ cost: 7 })
  })

  it.each<[string, (host: Dialer) => Promise<string>]>([
    [
      'that has expired',
      async ({ tokens }) => {
        network.world.clock.advance(31 * MINUTE)
        return tokens.access_token
      },
    ],
    [
      'that was revoked',
      async ({ tokens }) => {
        await people.manage('POST', '/revocations', { id: readClaims(tokens.access_token).jti, type: 'JTI' })
        return tokens.access_token
      },
    ],
    [
      'whose session has ended',
      async ({ tokens }) => {
        await people.manage('DELETE', `/api-sessions/${readClaims(tokens.access_token).z_asid}`)
        return tokens.access_token
      },
    ],
    ['of another identity', async () => (await signedIn('Bind')).tokens.access_token],
    ['that is for refreshing', async ({ tokens }) => tokens.refresh_token],
    ['that names a client', async ({ tokens }) => tokens.id_token],
  ])('gets and changes no terminator by a token %s', async (_name, toToken) => {
    const host = await signedIn('Bind')
    const address = newAddress()
    await bind(router.wire, { address, client: hostBy(host, host.tokens.access_token) })
    const client = hostBy(host, await toToken(host))

    const refusal = await bind(router.wire, { address: newAddress(), client })

    expect(refusal.retryHint).toBe(2)
    // Of the API session, or of the session for the service, which ended with it.
    const unknown = [
      [2, 2],
      [4, 3],
    ]
    expect(unknown).toContainEqual([refusal.result, refusal.errorCode])
    const { type, code } = await update(router.wire, client, address, { cost: 7, updateCost: true })
    expect([type, code]).toEqual([20002, refusal.errorCode])
    expect(await network.manage.get(`/terminators?filter=id="${address}"`)).not.toMatchObject([{ cost: 7 }])
  })
})

describe('a router', () => {
  const follow = async () => {
    const following = await FollowingRouter.connect(
      network.address,
      await enrolledRouter(network.world, { name: newName('router') }),
    )
    following.subscribe()
    await following.reach(network.world.controller.routers.model.index)
    return following
  }
  const reach = (following: FollowingRouter) => following.reach(network.world.controller.routers.model.index)

  it('is told by a revocation that such a session was ended, and by nothing that its time is over', async () => {
    const following = await follow()
    const [signedOut, idle] = [await signedIn(), await signedIn()]
    const idOf = ({ tokens }: Dialer) => readClaims(tokens.access_token).z_asid
    await network.world.send({
      method: 'DELETE',
      path: `${CLIENT}/current-api-session`,
      headers: bearer(signedOut.tokens.access_token),
    })
    await reach(following)
    network.world.clock.advance(24 * 60 * 60_000)
    await network.world.controller.auth.apiSessions.termination.deleteExpired(network.world.system)
    await reach(following)

    expect(following.replica.get('revocation', idOf(signedOut))).toMatchObject({ type: 'API_SESSION' })
    expect(following.replica.has('revocation', idOf(idle))).toBe(false)
    await following.wire.close()
  })

  it('admits who signs in again in the second in which the identity was revoked; each session from before is revoked by itself', async () => {
    const following = await follow()
    const person = await people.person()
    const signIn = async () => readClaims((await new OpenIdClient(network.world).signIn(person)).access_token)
    const earlier = await signIn()
    network.world.clock.advance(700)

    await people.manage('POST', `/identities/${person.id}/disable`, { durationMinutes: 0 })
    await people.manage('POST', `/identities/${person.id}/enable`)
    const later = await signIn()
    await reach(following)

    const { type, issuedBefore } = following.replica.get('revocation', person.id) ?? {}
    // Routers compare it with the time at which a token was issued, which is in whole seconds.
    expect([type, later.iat * 1_000 < Date.parse(String(issuedBefore))]).toEqual(['IDENTITY', false])
    expect(following.replica.get('revocation', earlier.z_asid)).toMatchObject({ type: 'API_SESSION' })
    expect(following.replica.has('revocation', later.z_asid)).toBe(false)
    await following.wire.close()
  })

  it('is told nothing when such a session begins', async () => {
    const { tokens } = await signedIn()
    const { id: laterId } = await network.world.signIn({ name: newName('later') })
    const isTold = (id: string) => router.wire.received.some(({ type, body }) => type === 20200 && body.includes(id))

    await expect.poll(() => isTold(laterId)).toBe(true)

    expect(isTold(readClaims(tokens.access_token).z_asid)).toBe(false)
  })
})
