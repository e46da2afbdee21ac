// The token of a service session is worth nothing alone: its client must be connected by the API session that it belongs to.
import { X509Certificate } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { newName } from '../world/names.ts'
import { type Device, People } from '../world/people.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { bind, type Client, type HostProof, type OpenNetwork, openNetwork, update } from '../world/router/hosting.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const HOUR = 60 * 60_000
const CERTIFICATES = `${CLIENT}/current-api-session/certificates`

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
const world = useControllerPerTest({ settings: { listeners, 'session.timeout': '48h' } })
let people: People
let network: OpenNetwork
let address: { url: string; rootPem: string }
let router: ForwardingRouter
let serviceId: string

beforeEach(async () => {
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  people = await People.in(world, newName('administrator'))
  network = await openNetwork(world)
  router = await ForwardingRouter.connect(address, await enrolledRouter(world, { name: newName('router') }))
  serviceId = await network.makeService({ encryptionRequired: false })
})
afterEach(async () => {
  await router.wire.close()
})

const toFingerprint = (pem: string) => new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase()

/** The fingerprints of certificates as routers send them: all that the client presented, in no particular order. */
const toFingerprints = (chain: string) => {
  const [own = '', ...others] = chain.split(/(?<=-----END CERTIFICATE-----\n)/).filter((pem) => pem.trim() !== '')
  return [...others, own].map(toFingerprint)
}

/** Signs a device in by its certificate, and opens a session for the service. */
async function signedIn(device: Device, type: 'Bind' | 'Dial' = 'Bind'): Promise<Client> {
  const { body } = await people.signInBy(address, device)
  expect(body.error).toBeUndefined()
  const client = { identityId: device.id, apiToken: body.data.token, sessionId: '', sessionToken: '' }
  return network.openSession(serviceId, type, client)
}

async function issueSessionCertificate({ apiToken }: Client): Promise<string> {
  const { csr } = await clientKey('device')
  const { body } = await world.send({ method: 'POST', path: CERTIFICATES, token: apiToken, body: { csr } })
  return body.data.certificate
}

/** Exchanges the certificate of a device for another one. */
async function extend(device: Device, { apiToken: token }: Client): Promise<Device> {
  const key = await clientKey(device.id)
  const path = `${CLIENT}/current-identity/authenticators/${device.authenticatorId}/extend`
  const tls = { method: 'POST', cert: device.chain, key: device.key.keyPem, headers: { 'net-session': token } }
  const body = { clientCertCsr: key.csr }
  const { data } = (await callOverTls(address.url, address.rootPem, { ...tls, path, body })).body
  const verified = await world.send({
    method: 'POST',
    path: `${path}-verify`,
    token,
    body: { clientCert: data.clientCert },
  })
  expect(verified.status).toBe(200)
  return { ...device, key, chain: data.clientCert }
}

const readOwnApiSession = (token: string) => world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })

let terminators = 0

const bindBy = (client: Client, proof: HostProof) => bind(router.wire, { address: `t-${++terminators}`, client, proof })

describe('a host is refused', () => {
  it('by the API session of another identity, and by another one of its own', async () => {
    const host = await network.openSession(serviceId)
    const other = await network.openSession(serviceId)
    const { token } = await world.signInAgain(host.identityId)
    for (const apiSessionToken of [other.apiToken, token, 'unknown']) {
      const response = await bindBy(host, { apiSessionToken })
      expect(response).toMatchObject({ result: 2, msg: expect.stringContaining('API session') })
    }
    expect(world.controller.fabric.terminators.listOfService(serviceId, '')).toEqual([])
  })

  it('if its router says nothing by which it is connected', async () => {
    const host = await network.openSession(serviceId)
    expect((await bindBy(host, {})).result).toBe(2)
    expect((await bindBy(host, { fingerprints: [] })).result).toBe(2)
  })

  it('if its router names certificates that are unknown, of another device, or of another API session of the device', async () => {
    const [device, other] = [await people.device(), await people.device()]
    const host = await signedIn(device)
    const sibling = await issueSessionCertificate(await signedIn(device))
    for (const fingerprints of [['ab'.repeat(20)], toFingerprints(other.chain), [toFingerprint(sibling)]])
      expect((await bindBy(host, { fingerprints })).result).toBe(2)
  })

  it('if a certificate of another device is beside its own: one of them only fills the chain', async () => {
    const [device, other] = [await people.device(), await people.device()]
    const host = await signedIn(device)
    const stranger = await signedIn(other)
    const own = toFingerprints(device.chain)
    const ofStranger = [toFingerprints(other.chain), [toFingerprint(await issueSessionCertificate(stranger))]]
    for (const others of ofStranger) expect((await bindBy(host, { fingerprints: [...own, ...others] })).result).toBe(2)
  })

  it('when it changes its terminator, too', async () => {
    const device = await people.device()
    const host = await signedIn(device)
    const other = await network.openSession(serviceId)
    await bind(router.wire, { address: 'own', client: host })
    const change = { cost: 7, updateCost: true }
    for (const proof of [{ apiSessionToken: other.apiToken }, {}, { fingerprints: ['ab'.repeat(20)] }])
      expect(await update(router.wire, host, 'own', change, proof)).toEqual({ type: 20002, code: 2 })
    const proof = { fingerprints: toFingerprints(device.chain) }
    expect(await update(router.wire, host, 'own', change, proof)).toMatchObject({ type: 20210 })
  })
})

describe('a host whose router names only certificates can bind', () => {
  it('by the certificate that it signed in with, and by one of its API session', async () => {
    const device = await people.device()
    const host = await signedIn(device)
    expect((await bindBy(host, { fingerprints: toFingerprints(device.chain) })).result).toBe(0)
    const certificate = await issueSessionCertificate(host)
    expect((await bindBy(host, { fingerprints: toFingerprints(certificate) })).result).toBe(0)
  })

  it('by its certificates in another case, because they are numbers', async () => {
    const device = await people.device()
    const fingerprints = toFingerprints(device.chain).map((fingerprint) => fingerprint.toUpperCase())
    expect((await bindBy(await signedIn(device), { fingerprints })).result).toBe(0)
  })

  it('by the certificate that its connection began with, after the certificate was exchanged for another one', async () => {
    const device = await people.device()
    const host = await signedIn(device)
    const extended = await extend(device, host)
    expect((await bindBy(host, { fingerprints: toFingerprints(device.chain) })).result).toBe(0)
    expect((await bindBy(host, { fingerprints: toFingerprints(extended.chain) })).result).toBe(0)
  })

  it('by a certificate of its API session that has expired meanwhile, because its connection goes on', async () => {
    const host = await network.openSession(serviceId)
    const fingerprints = toFingerprints(await issueSessionCertificate(host))
    world.clock.advance(12 * HOUR)
    await issueSessionCertificate(host)
    expect((await bindBy(host, { fingerprints })).result).toBe(0)
  })
})

describe('a client that dials', () => {
  it('is known by its certificates if its router names no API session', async () => {
    const [device, other] = [await people.device(), await people.device()]
    const client = await signedIn(device, 'Dial')
    await bind(router.wire, { address: 'host', client: await network.openSession(serviceId) })
    const tokens = { token: client.sessionToken, apiSessionToken: '' }
    const dial = (fingerprints: readonly string[]) => router.dial(tokens, { fingerprints })
    expect(await dial([])).toMatchObject({ type: 20002, code: 2 })
    expect(await dial(toFingerprints(other.chain))).toMatchObject({ type: 20002, code: 2 })
    expect((await dial(toFingerprints(device.chain))).type).toBe(20219)
  })

  it('is refused by the API session of another identity, whatever its certificates are', async () => {
    const device = await people.device()
    const client = await signedIn(device, 'Dial')
    const tokens = { token: client.sessionToken, apiSessionToken: (await world.signIn()).token }
    const response = await router.dial(tokens, { fingerprints: toFingerprints(device.chain) })
    expect(response).toMatchObject({ type: 20002, code: 2 })
  })

  it('is refused, as a host is, from the moment at which its API session reaches its greatest age', async () => {
    const person = await people.person()
    const begin = async (type: 'Bind' | 'Dial') => {
      const client = {
        identityId: person.id,
        apiToken: await people.sessionOf(person),
        sessionId: '',
        sessionToken: '',
      }
      return network.openSession(serviceId, type, client)
    }
    const [client, host] = [await begin('Dial'), await begin('Bind')]
    await bind(router.wire, { address: 'host', client: await network.openSession(serviceId) })
    const dial = () => router.dial({ token: client.sessionToken, apiSessionToken: client.apiToken })
    for (let days = 0; days < 29; days++) {
      world.clock.advance(24 * HOUR)
      for (const token of [client.apiToken, host.apiToken]) await readOwnApiSession(token)
    }
    world.clock.advance(24 * HOUR - 1)
    expect([(await dial()).type, (await bindBy(host, { apiSessionToken: host.apiToken })).result]).toEqual([20219, 0])

    world.clock.advance(1)
    expect(await dial()).toMatchObject({ type: 20002, code: 2 })
    expect((await bindBy(host, { apiSessionToken: host.apiToken })).result).toBe(2)
    expect((await readOwnApiSession(client.apiToken)).status).toBe(401)
  })
})
