// Signed tokens of sessions: since when clients receive them, what they say, which are accepted, and how the rights behind them end.
import { createPrivateKey, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify, SignJWT, UnsecuredJWT } from 'jose'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  ApiSessionRemovedSchema,
  ApiSessionUpdatedSchema,
  CreateTerminatorV2ResponseSchema,
  DataState_ChangeSetSchema,
  DataState_PublicKey_Usage,
  SessionRemovedSchema,
  ValidateSessionsRequestSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { computeFingerprint } from '../../src/pki/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { bind, newAddress } from '../world/router/hosting.ts'
import { TestNetwork } from '../world/router/network.ts'
import { groupedHeaders, SimulatedRouter } from '../world/router/simulated-router.ts'

const DAY = 24 * 60 * 60_000

let network: TestNetwork

beforeEach(async () => {
  network = await TestNetwork.start({ settings: { 'session.timeout': '10000h' } })
  const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
  await network.manage.make('service-policies', { ...all, name: newName('bind'), type: 'Bind' })
})
afterEach(() => network.close())

const isSigned = (token: string) => token.split('.').length === 3

/** The tokens in the API's responses about the session of a client: read, asked for again, and listed. */
async function readTokens({ apiSessionToken: token, sessionId }: { apiSessionToken: string; sessionId: string }) {
  const { world } = network
  const read = await world.send({ method: 'GET', path: `${CLIENT}/sessions/${sessionId}`, token })
  const { serviceId, type } = read.body.data
  const again = await world.send({ method: 'POST', path: `${CLIENT}/sessions`, token, body: { serviceId, type } })
  expect(again.body.data.id).toBe(sessionId)
  const list = await world.send({ method: 'GET', path: `${CLIENT}/sessions`, token })
  return [read.body.data.token, again.body.data.token, list.body.data[0].token] as string[]
}

/** The keys by which a router verifies tokens: of all that it was told. */
function takeTokenKeys(router: ForwardingRouter): { kid: string; certificate: X509Certificate }[] {
  const keys = new Map<string, X509Certificate>()
  for (const { type, body } of router.wire.received.splice(0)) {
    if (type !== 20501) continue
    for (const { action, Model } of fromBinary(DataState_ChangeSetSchema, body).changes) {
      if (Model.case !== 'publicKey') continue
      const { kid, data, usages } = Model.value
      if (action === 2) keys.delete(kid)
      else if (usages.includes(DataState_PublicKey_Usage.JWTValidation)) keys.set(kid, new X509Certificate(data))
    }
  }
  return Array.from(keys, ([kid, certificate]) => ({ kid, certificate }))
}

const verifyBy = (token: string, { certificate }: { certificate: X509Certificate }) =>
  jwtVerify(token, certificate.publicKey, { currentDate: new Date(network.world.clock.now()) })

describe('clients receive', () => {
  it('opaque tokens until a router of release 2 connects, then signed ones, also of sessions that they have', async () => {
    const serviceId = await network.service()
    await network.router()
    const client = await network.client(serviceId)
    expect(isSigned(client.token)).toBe(false)
    await network.router(2)
    const tokens = await readTokens(client)
    expect(tokens.map(isSigned)).toEqual([true, true, true])
    expect(new Set(tokens).size).toBe(1)
    expect(isSigned((await network.client(serviceId)).token)).toBe(true)
  })

  it('opaque tokens still, if a router of release 2 is refused that was disabled', async () => {
    const serviceId = await network.service()
    const enrolled = await enrolledRouter(network.world, { name: newName('router') })
    await network.manage.change('PATCH', `/edge-routers/${enrolled.id}`, { disabled: true })
    const wire = await SimulatedRouter.open({ ...network.address, ...enrolled })
    wire.introduce(enrolled.id, groupedHeaders())
    await wire.closed
    expect(isSigned((await network.client(serviceId)).token)).toBe(false)
  })

  it('no session that they host by and have an opaque token of, until they ask for it again: then a signed one', async () => {
    const serviceId = await network.service()
    await network.router()
    const { sessionId, apiSessionToken: token } = await network.client(serviceId, 'Bind')
    const path = `${CLIENT}/sessions/${sessionId}`
    const { world } = network
    const read = () => world.send({ method: 'GET', path, token })
    expect((await read()).status).toBe(200)
    await network.router(2)
    expect((await read()).status).toBe(404)
    expect(await network.manage.get(`/sessions/${sessionId}`)).toMatchObject({ id: sessionId })
    const again = await world.send({
      method: 'POST',
      path: `${CLIENT}/sessions`,
      token,
      body: { serviceId, type: 'Bind' },
    })
    expect(again.body.data).toMatchObject({ id: sessionId, token: expect.toSatisfy(isSigned) })
    expect((await read()).body.data.token).toBe(again.body.data.token)
  })

  it('the session that they host by, once they asked for it again, also of another process', async () => {
    const serviceId = await network.service()
    await network.router()
    const [asked, silent] = [await network.client(serviceId, 'Bind'), await network.client(serviceId, 'Bind')]
    await network.router(2)
    const send = (method: 'GET' | 'POST', { sessionId, apiSessionToken: token }: typeof asked) =>
      network.world.send(
        method === 'GET'
          ? { method, path: `${CLIENT}/sessions/${sessionId}`, token }
          : { method, path: `${CLIENT}/sessions`, token, body: { serviceId, type: 'Bind' } },
      )
    await send('POST', asked)
    const later = await network.client(serviceId, 'Bind')
    await network.restart()
    expect([(await send('GET', asked)).status, (await send('GET', later)).status]).toEqual([200, 200])
    expect((await send('GET', silent)).status).toBe(404)
    await send('POST', silent)
    expect((await send('GET', silent)).status).toBe(200)
  })

  it('no session that they host by either, after they listed their sessions: they take no token from a list', async () => {
    const serviceId = await network.service()
    await network.router()
    const { sessionId, apiSessionToken: token } = await network.client(serviceId, 'Bind')
    await network.router(2)
    const { world } = network
    expect((await world.send({ method: 'GET', path: `${CLIENT}/sessions`, token })).status).toBe(200)
    expect((await world.send({ method: 'GET', path: `${CLIENT}/sessions/${sessionId}`, token })).status).toBe(404)
  })

  it('signed tokens for ever: also when that router was deleted, and by another process', async () => {
    const serviceId = await network.service()
    await network.router()
    const router = await network.router(2)
    const client = await network.client(serviceId)
    await network.manage.change('DELETE', `/edge-routers/${router.id}`)
    await network.restart()
    expect((await readTokens(client)).every(isSigned)).toBe(true)
    expect((await network.client(serviceId)).token).toSatisfy(isSigned)
  })

  it('signed tokens that name the session, its owner and its service, under a key that routers have', async () => {
    const serviceId = await network.service()
    const router = await network.router(2)
    const client = await network.client(serviceId, 'Bind')
    const [key] = takeTokenKeys(router)
    expect(key!.kid).toBe(computeFingerprint(key!.certificate))
    expect(decodeProtectedHeader(client.token)).toEqual({ alg: 'ES256', kid: key!.kid, typ: 'JWT' })
    const { payload } = await verifyBy(client.token, key!)
    const { data } = (
      await network.world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token: client.apiSessionToken })
    ).body
    const iat = network.world.clock.now() / 1000
    expect(payload).toEqual({
      iss: 'https://127.0.0.1:1280',
      sub: serviceId,
      aud: ['openziti'],
      iat,
      exp: iat + 365 * 24 * 3600,
      jti: client.sessionId,
      z_asid: data.id,
      z_iid: client.identityId,
      z_t: 's',
      z_st: 'Bind',
      z_leg: true,
    })
  })

  it('the token that they have already, until it is a month old', async () => {
    await network.router(2)
    const client = await network.client(await network.service())
    network.world.clock.advance(29 * DAY)
    expect((await readTokens(client))[0]).toBe(client.token)
    network.world.clock.advance(2 * DAY)
    const [later] = await readTokens(client)
    expect(decodeJwt(later!).exp! - decodeJwt(client.token).exp!).toBe(31 * 24 * 3600)
  })
})

describe('the key of tokens', () => {
  it('has a certificate of the intermediate, for signatures only, and is encrypted in the database', async () => {
    const [key] = takeTokenKeys(await network.router(2))
    const { certificate } = key!
    const { authority, store } = network.world.controller
    expect(certificate.checkIssued(authority.intermediate.certificate)).toBe(true)
    expect(certificate.verify(authority.intermediate.certificate.publicKey)).toBe(true)
    expect(certificate.publicKey.asymmetricKeyDetails).toEqual({ namedCurve: 'prime256v1' })
    expect(certificate.keyUsage).toEqual(['1.3.6.1.5.5.7.3.36'])
    expect(certificate.ca).toBe(false)
    const [row] = await store.db.selectFrom('token_keys').selectAll().execute()
    expect(row!.encryptedKey).not.toContain('PRIVATE KEY')
    expect(() => createPrivateKey(row!.encryptedKey)).toThrow()
  })

  it('stays the same in another process', async () => {
    const router = await network.router(2)
    const { kid } = takeTokenKeys(router)[0]!
    await network.restart()
    const again = await network.reconnect(router.id, undefined, 2)
    expect(takeTokenKeys(again).map((key) => key.kid)).toEqual([kid])
  })

  it('is followed by another one, which routers have a day before it signs; tokens of both are accepted', async () => {
    const { controller, clock, system } = network.world
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const [first] = takeTokenKeys(router)
    const before = await network.client(serviceId)
    clock.advance(89 * DAY - 1)
    await controller.tokenKeys.renewDue(system)
    await router.settle()
    expect(takeTokenKeys(router)).toEqual([])
    clock.advance(1)
    await controller.tokenKeys.renewDue(system)
    await router.settle()
    const [second] = takeTokenKeys(router)
    expect(second!.kid).not.toBe(first!.kid)
    const meanwhile = await network.client(serviceId)
    expect(decodeProtectedHeader(meanwhile.token).kid).toBe(first!.kid)
    clock.advance(DAY)
    await controller.tokenKeys.renewDue(system)
    const after = await network.client(serviceId)
    expect(decodeProtectedHeader(after.token).kid).toBe(second!.kid)
    await verifyBy(after.token, second!)
    for (const client of [before, meanwhile, after]) expect(await router.dial(client)).toMatchObject({ type: 20219 })
  })

  it('is deleted when all that it signed has expired', async () => {
    const { controller, clock, system } = network.world
    const router = await network.router(2)
    const [first] = takeTokenKeys(router)
    for (let day = 0; day < 560; day += 10) {
      clock.advance(10 * DAY)
      await controller.tokenKeys.renewDue(system)
    }
    const kids = controller.tokenKeys.listCertificates().map(computeFingerprint)
    expect(kids).not.toContain(first!.kid)
    // The keys that signed in the last year, the present one and the next one.
    expect(kids.length).toBeLessThanOrEqual(8)
  })
})

describe('a token is accepted', () => {
  it('of a session that began before, opaque at routers of release 1, and signed at all', async () => {
    const serviceId = await network.service()
    const old = await network.router()
    await network.terminator(serviceId, old)
    const client = await network.client(serviceId)
    const current = await network.router(2)
    network.link(current, old)
    const [signed] = await readTokens(client)
    expect(await old.dial(client)).toMatchObject({ type: 20219 })
    for (const router of [old, current])
      expect(await router.dial({ ...client, token: signed! })).toMatchObject({ type: 20219 })
  })
})

describe('a client that refreshes the routers of a service', () => {
  it('shows the signed token of its session, and no other one', async () => {
    await network.router(2)
    const serviceId = await network.service()
    const [client, other] = [await network.client(serviceId), await network.client(serviceId)]
    const read = (token: string) => {
      const path = `${CLIENT}/services/${serviceId}/edge-routers`
      return network.world.send({
        method: 'GET',
        path,
        token: client.apiSessionToken,
        headers: { 'session-token': token },
      })
    }
    const { status, body } = await read(client.token)
    expect([status, body.data.edgeRouters.length]).toEqual([200, 1])
    expect((await read(other.token)).status).toBe(401)
    expect((await read(`${client.token}x`)).status).toBe(401)
  })
})

describe('a token is refused', () => {
  interface Place {
    readonly router: ForwardingRouter
    readonly serviceId: string
    readonly client: Awaited<ReturnType<TestNetwork['client']>>
    readonly kid: string
    readonly certificate: X509Certificate
    readonly claims: JWTPayload
  }

  async function place(): Promise<Place> {
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    const [key] = takeTokenKeys(router)
    return { router, serviceId, client, ...key!, claims: decodeJwt(client.token) }
  }

  const strangersKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey

  const forgeries: [string, (place: Place) => string | Promise<string>][] = [
    ['that is not signed', ({ claims }) => new UnsecuredJWT(claims).encode()],
    [
      'that another key signed under the name of ours',
      ({ claims, kid }) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid }).sign(strangersKey()),
    ],
    [
      'that another key signed under its own name',
      ({ claims }) => new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid: 'other' }).sign(strangersKey()),
    ],
    [
      'whose secret is our certificate',
      ({ claims, kid, certificate }) =>
        new SignJWT(claims).setProtectedHeader({ alg: 'HS256', kid }).sign(new Uint8Array(certificate.raw)),
    ],
    [
      'that brings a key of its own',
      ({ claims, kid }) => {
        const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
        const jwk = publicKey.export({ format: 'jwk' })
        return new SignJWT(claims).setProtectedHeader({ alg: 'ES256', kid, jwk } as never).sign(privateKey)
      },
    ],
    ['whose claims were changed', ({ client, claims }) => withClaims(client.token, { ...claims, z_st: 'Bind' })],
    ['without its signature', ({ client }) => client.token.split('.').slice(0, 2).join('.')],
    ['that is endless', ({ client }) => client.token + 'A'.repeat(10_000)],
    ['that only looks like one', () => 'ey.ey.ey'],
  ]

  it.each(forgeries)('%s, with code 3', async (_name, forge) => {
    const there = await place()
    const token = await forge(there)
    expect(await there.router.dial({ ...there.client, token })).toMatchObject({ type: 20002, code: 3 })
    const host = { sessionToken: token, apiToken: there.client.apiSessionToken }
    const refusal = await bind(there.router.wire, { address: newAddress(), client: host })
    expect(refusal).toMatchObject({ errorCode: 3, retryHint: 2 })
  })

  const signByOwn: [string, JWTPayload][] = [
    ['for another purpose', { z_t: 'a' }],
    ['for another audience', { aud: ['native'] }],
    ['of a session that does not exist', { jti: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
    ['that names another API session', { z_asid: '01ARZ3NDEKTSV4RRFFQ69G5FAV' }],
    ['that names another type', { z_st: 'Bind' }],
    ['without a time', { exp: undefined as never }],
  ]

  it.each(signByOwn)('%s, though the controller signed it', async (_name, change) => {
    const { router, client, claims } = await place()
    const token = await network.world.controller.tokenKeys.sign({ ...claims, ...change })
    expect(await router.dial({ ...client, token })).toMatchObject({ type: 20002, code: 3 })
  })

  it('after a year', async () => {
    const { router, client } = await place()
    network.world.clock.advance(365 * DAY - 1000)
    expect((await router.dial(client)).type).toBe(20219)
    network.world.clock.advance(1000)
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
  })

  it('with code 2 if the client is connected by another API session', async () => {
    const { router, serviceId, client } = await place()
    const { apiSessionToken } = await network.client(serviceId)
    expect(await router.dial({ ...client, apiSessionToken })).toMatchObject({ type: 20002, code: 2 })
  })

  it('with code 4 and the hint to start over, to host by a session to dial', async () => {
    const { router, client } = await place()
    const host = { sessionToken: client.token, apiToken: client.apiSessionToken }
    const refusal = await bind(router.wire, { address: newAddress(), client: host })
    expect(refusal).toMatchObject({ result: 2, errorCode: 4, retryHint: 2 })
  })

  it('when its session ended', async () => {
    const { router, client } = await place()
    expect((await router.dial(client)).type).toBe(20219)
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
  })
})

function withClaims(token: string, claims: JWTPayload): string {
  const [header, , signature] = token.split('.')
  return [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.')
}

describe('a router of release 2', () => {
  it('knows sessions by their ids: which have ended, and which it asks about', async () => {
    const router = await network.router(2)
    const serviceId = await network.service()
    const [ended, live] = [await network.client(serviceId), await network.client(serviceId)]
    await network.manage.change('DELETE', `/sessions/${ended.sessionId}`)
    const removed = fromBinary(SessionRemovedSchema, (await router.wire.takeType(20102)).body)
    expect(removed).toMatchObject({ tokens: [ended.sessionId], ids: [ended.sessionId] })
    const sessionTokens = [live.sessionId, ended.sessionId]
    const question = create(ValidateSessionsRequestSchema, { sessionTokens })
    router.wire.send(20213, toBinary(ValidateSessionsRequestSchema, question))
    const response = fromBinary(SessionRemovedSchema, (await router.wire.takeType(20102)).body)
    expect(response).toMatchObject({ tokens: [ended.sessionId], ids: [ended.sessionId] })
  })

  it('is told the ids of the API sessions that have ended, beside their tokens', async () => {
    const [current, old] = [await network.router(2), await network.router()]
    const { id, token } = await network.world.signIn()
    const apiSessionId = network.world.controller.auth.apiSessions.listOfIdentity(id)[0]!.id
    await network.world.controller.routers.sessionSync.settle()
    await network.world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token })
    const take = async (router: ForwardingRouter) =>
      fromBinary(ApiSessionRemovedSchema, (await router.wire.takeType(20202)).body)
    expect(await take(current)).toMatchObject({ tokens: [token], ids: [apiSessionId] })
    expect(await take(old)).toMatchObject({ tokens: [token], ids: [] })
  })

  it.each([
    ['a cost that is out of range', { cost: 70_000 }, { result: 2, errorCode: 10, retryHint: 3 }],
    ['a precedence that there is not', { precedence: 3 }, { result: 2, errorCode: 9, retryHint: 3 }],
    ['an address of another form', { address: 'no address' }, { result: 2, errorCode: 1, retryHint: 0 }],
  ])('learns what its host may do about %s', async (_name, mistake, expected) => {
    const router = await network.router(2)
    const { token: sessionToken, apiSessionToken: apiToken } = await network.client(await network.service(), 'Bind')
    const client = { sessionToken, apiToken }
    expect(await bind(router.wire, { address: newAddress(), client, ...mistake })).toMatchObject(expected)
  })

  it('is told that an id is taken by a failure that its host does not repeat; one of release 1, that the id conflicts', async () => {
    const [current, old] = [await network.router(2), await network.router()]
    const host = async () => {
      const { token: sessionToken, apiSessionToken: apiToken } = await network.client(await network.service(), 'Bind')
      return { sessionToken, apiToken }
    }
    expect(await bind(current.wire, { address: 'taken', client: await host() })).toMatchObject({ result: 0 })
    const refusals = [current, old].map(async ({ wire }) => bind(wire, { address: 'taken', client: await host() }))
    expect(await Promise.all(refusals)).toMatchObject([
      { result: 2, retryHint: 3 },
      { result: 1, retryHint: 3 },
    ])
  })

  it('closes connections itself, and loses the circuits that are still open after ten seconds', async () => {
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    const { circuitId } = await router.dial(client)
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    await router.settle()
    expect(router.unroutes).toEqual([])
    network.advance(10_000)
    await router.settle()
    expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
  })
})

describe('a host behind a router of release 2', () => {
  it('whose right ends loses its circuits after ten seconds, because some clients do not end them', async () => {
    const router = await network.router(2)
    const serviceId = await network.service()
    const host = await network.client(serviceId, 'Bind')
    const client = { sessionToken: host.token, apiToken: host.apiSessionToken }
    await bind(router.wire, { address: newAddress(), client })
    const { circuitId } = await router.dial(await network.client(serviceId))
    await network.manage.change('DELETE', `/sessions/${host.sessionId}`)
    const removed = fromBinary(SessionRemovedSchema, (await router.wire.takeType(20102)).body)
    expect(removed.ids).toEqual([host.sessionId])
    network.advance(9_999)
    await router.settle()
    expect(router.unroutes).toEqual([])
    network.advance(1)
    await router.settle()
    expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
    expect(router.wire.received.filter(({ type }) => type === 20217)).toEqual([])
  })
})

/** A host at the router, which bound by a signed token, and a client with an open circuit to it. */
async function hosted(router: ForwardingRouter) {
  await network.router(2)
  const serviceId = await network.service()
  const host = await network.client(serviceId, 'Bind')
  const address = newAddress()
  const client = { sessionToken: host.token, apiToken: host.apiSessionToken }
  expect(await bind(router.wire, { address, client })).toMatchObject({ result: 0 })
  const dialer = await network.client(serviceId)
  const { circuitId } = await router.dial(dialer)
  expect(circuitId).not.toBe('')
  return { serviceId, host, dialer, address, circuitId }
}

describe('a router of release 1 in a network with one of release 2', () => {
  const exists = async (id: string) => (await network.manage.get(`/terminators?filter=id="${id}"`)).length > 0

  it('is not told that a session has ended whose signed token it asks about, but one that it knows by an opaque token', async () => {
    const router = await network.router()
    await network.router(2)
    const { token } = await network.client(await network.service())
    const question = create(ValidateSessionsRequestSchema, { sessionTokens: [token, 'unknown'] })
    router.wire.send(20213, toBinary(ValidateSessionsRequestSchema, question))
    const response = fromBinary(SessionRemovedSchema, (await router.wire.takeType(20102)).body)
    expect(response.tokens).toEqual(['unknown'])
  })

  it('loses the circuits of a client at once when its right ends, because it does not follow the end of the session', async () => {
    const router = await network.router()
    const { dialer, circuitId } = await hosted(router)
    await network.manage.change('DELETE', `/sessions/${dialer.sessionId}`)
    await router.settle()
    expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('gives up the terminators of a host whose right ends, and loses their circuits', async () => {
    const router = await network.router()
    const { host, address, circuitId } = await hosted(router)
    await network.manage.change('DELETE', `/sessions/${host.sessionId}`)
    const refusal = fromBinary(CreateTerminatorV2ResponseSchema, (await router.wire.takeType(20217)).body)
    expect(refusal).toMatchObject({ terminatorId: address, result: 4 })
    await router.settle()
    expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
    await expect.poll(() => exists(address)).toBe(false)
  })

  it('gives them up when it is back, if it was away when the right ended', async () => {
    const router = await network.router()
    const { host, address } = await hosted(router)
    await router.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(router.id)).toBeUndefined()
    await network.manage.change('DELETE', `/sessions/${host.sessionId}`)
    expect(await exists(address)).toBe(true)
    const again = await network.reconnect(router.id, router)
    const refusal = fromBinary(CreateTerminatorV2ResponseSchema, (await again.wire.takeType(20217)).body)
    expect(refusal).toMatchObject({ terminatorId: address, result: 4 })
    await expect.poll(() => exists(address)).toBe(false)
  })

  it('keeps what sessions with opaque tokens opened until it has closed it, or ten seconds have passed', async () => {
    const router = await network.router()
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    const client = await network.client(serviceId)
    await network.router(2)
    await router.dial(client)
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    const removed = fromBinary(SessionRemovedSchema, (await router.wire.takeType(20102)).body)
    expect(removed.tokens).toEqual([client.token])
    expect(router.unroutes).toEqual([])
    network.advance(10_000)
    await router.settle()
    expect(router.unroutes).toHaveLength(1)
  })
})

describe.each([1, 2] as const)(
  'a router of release %i that carries circuits of an earlier process of the controller',
  (release) => {
    /** A client that dialed at the router before the controller restarted; the router is away. */
    async function dialed() {
      const router = await network.router(release)
      const { dialer, serviceId } = await hosted(router)
      await network.restart()
      return { id: router.id, router, dialer, serviceId }
    }

    /** Resolves when the controller has noticed that a router is away. */
    async function leave({ id, wire }: ForwardingRouter) {
      await wire.close()
      await expect.poll(() => network.world.controller.routers.connected.get(id)).toBeUndefined()
    }

    const takeClosed = async ({ wire }: ForwardingRouter) =>
      fromBinary(ApiSessionRemovedSchema, (await wire.takeType(20202)).body).tokens

    /** Takes announcements until one brings the API session again. */
    async function takeAgain({ wire }: ForwardingRouter, token: string) {
      await expect
        .poll(() =>
          wire.received
            .filter(({ type }) => type === 20201)
            .some(({ body }) =>
              fromBinary(ApiSessionUpdatedSchema, body).apiSessions.some((each) => each.token === token),
            ),
        )
        .toBe(true)
    }

    it.each([
      ['its session is ended', (place: Awaited<ReturnType<typeof dialed>>) => `/sessions/${place.dialer.sessionId}`],
      ['the service is deleted', (place: Awaited<ReturnType<typeof dialed>>) => `/services/${place.serviceId}`],
    ])('closes the connections of a client when %s, and lets the client come back', async (_name, toPath) => {
      const place = await dialed()
      const router = await network.reconnect(place.id, release === 1 ? place.router : undefined, release)
      await router.settle()
      router.wire.received.splice(0)
      await network.manage.change('DELETE', toPath(place))
      expect(await takeClosed(router)).toContain(place.dialer.apiSessionToken)
      await takeAgain(router, place.dialer.apiSessionToken)
    })

    it('closes them when it returns, if it was away when the right ended', async () => {
      const { id, router: earlier, dialer } = await dialed()
      await network.manage.change('DELETE', `/sessions/${dialer.sessionId}`)
      const router = await network.reconnect(id, release === 1 ? earlier : undefined, release)
      expect(await takeClosed(router)).toEqual([dialer.apiSessionToken])
      await takeAgain(router, dialer.apiSessionToken)
    })

    it('closes them when it returns to yet another process, because the one that ended the session knew what was owed', async () => {
      const router = await network.router(release)
      const { dialer } = await hosted(router)
      await leave(router)
      await network.manage.change('DELETE', `/sessions/${dialer.sessionId}`)
      await network.restart()

      const again = await network.reconnect(router.id, release === 1 ? router : undefined, release)

      expect(await takeClosed(again)).toEqual([dialer.apiSessionToken])
      await takeAgain(again, dialer.apiSessionToken)
    })

    it('closes them also if it came only for a moment, in which the message may not have arrived', async () => {
      const router = await network.router(release)
      const { dialer } = await hosted(router)
      await leave(router)
      await network.manage.change('DELETE', `/sessions/${dialer.sessionId}`)
      await network.restart()
      const first = await network.reconnect(router.id, release === 1 ? router : undefined, release)
      await takeClosed(first)
      await leave(first)
      await network.restart()

      const second = await network.reconnect(router.id, release === 1 ? first : undefined, release)

      expect(await takeClosed(second)).toEqual([dialer.apiSessionToken])
    })

    it('keeps those of clients whose sessions ended before it went away, though the controller restarts twice', async () => {
      const router = await network.router(release)
      const { dialer } = await hosted(router)
      const { endedSessions } = network.world.controller.routers
      network.advance(61_000)
      endedSessions.tick()
      await network.manage.change('DELETE', `/sessions/${dialer.sessionId}`)
      network.advance(61_000)
      await leave(router)
      await network.restart()
      await network.restart()

      const again = await network.reconnect(router.id, release === 1 ? router : undefined, release)

      await again.settle()
      expect(again.wire.received.map(({ type }) => type)).not.toContain(20202)
    })

    it('keeps those of clients whose sessions began later, of which the controller knows the circuits', async () => {
      const place = await dialed()
      const router = await network.reconnect(place.id, release === 1 ? place.router : undefined, release)
      const later = await network.client(await network.service())
      await network.manage.change('DELETE', `/sessions/${later.sessionId}`)
      await network.manage.change('DELETE', `/sessions/${place.dialer.sessionId}`)
      expect(await takeClosed(router)).toEqual([place.dialer.apiSessionToken])
    })
  },
)
