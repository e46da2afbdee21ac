// Routers renew their certificates over their connection: which certificates let them connect in each step.
import { X509Certificate } from 'node:crypto'
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  EnrollmentCertsResponseSchema,
  EnrollmentExtendRouterRequestSchema,
  EnrollmentExtendRouterVerifyRequestSchema,
  ErrorSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { clientKey } from '../world/certificates.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { type EnrolledRouter, enrolledRouter, ROUTER_NAMES } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
const world = useControllerPerTest({ settings: { listeners } })
let manage: Management
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []

beforeEach(async () => {
  manage = await managementOf(world)
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})

type Credentials = Pick<EnrolledRouter, 'id' | 'cert' | 'key'>

async function connect(router: Credentials): Promise<SimulatedRouter> {
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  simulated.introduce(router.id)
  await simulated.takeType(2)
  return simulated
}

/** Whether a router may connect by these credentials, once it has no other connection. */
async function canConnect(router: Credentials): Promise<boolean> {
  for (const simulated of open.splice(0)) await simulated.close()
  await expect.poll(() => world.controller.routers.connected.get(router.id)).toBeUndefined()
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  simulated.introduce(router.id)
  return simulated.takeType(2).then(
    () => true,
    () => false,
  )
}

type Request = MessageInitShape<typeof EnrollmentExtendRouterRequestSchema>

function sendRequest(simulated: SimulatedRouter, values: Request): void {
  const request = create(EnrollmentExtendRouterRequestSchema, values)
  simulated.send(20302, toBinary(EnrollmentExtendRouterRequestSchema, request))
}

/** Asks for new certificates as a router does. */
async function renew(simulated: SimulatedRouter, { id }: Credentials, requireVerification = true) {
  const [client, server] = [await clientKey(id, 'P-256', ROUTER_NAMES), await clientKey(id, 'P-256', ROUTER_NAMES)]
  sendRequest(simulated, { clientCertCsr: client.csr, serverCertCsr: server.csr, requireVerification })
  const message = await simulated.takeType(20301)
  const { clientCertPem, serverCertPem } = fromBinary(EnrollmentCertsResponseSchema, message.body)
  return { message, serverCertPem, renewed: { id, cert: clientCertPem, key: client.keyPem } }
}

/** Confirms a certificate, and returns the code of the response; without one it was successful. */
async function confirm(simulated: SimulatedRouter, clientCertPem: string): Promise<string> {
  const request = create(EnrollmentExtendRouterVerifyRequestSchema, { clientCertPem })
  const { type, body } = await simulated.takeReply(
    simulated.send(20303, toBinary(EnrollmentExtendRouterVerifyRequestSchema, request)),
  )
  expect(type).toBe(20002)
  return fromBinary(ErrorSchema, body).code
}

const fingerprintOf = (pem: string) => new X509Certificate(pem).fingerprint.replaceAll(':', '').toLowerCase()
const read = ({ id }: Credentials, kind = 'edge-routers') => manage.get(`/${kind}/${id}`)

describe.each(['edge-routers', 'routers'] as const)('one of %s', (kind) => {
  const newRouter = () => enrolledRouter(world, { name: newName('router'), kind })

  it('receives new certificates by a message of their own, with the intermediates and without the root', async () => {
    const router = await newRouter()
    const { message, renewed, serverCertPem } = await renew(await connect(router), router)
    expect(message.headers.has(1)).toBe(false)
    for (const chain of [renewed.cert, serverCertPem]) {
      expect(chain.match(/BEGIN CERTIFICATE/g)).toHaveLength(router.cert.match(/BEGIN CERTIFICATE/g)!.length)
      expect(new X509Certificate(chain).subject).toContain(`CN=${router.id}`)
      expect(new X509Certificate(chain).subjectAltName).toBe('DNS:router.example, IP Address:127.0.0.1')
    }
  })

  it('has the new client certificate as an unverified one until it confirms it, and then as its own', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const { renewed } = await renew(simulated, router)
    const before = await read(router, kind)
    expect(before.fingerprint).toBe(fingerprintOf(router.cert))
    expect(before.unverifiedFingerprint).toBe(fingerprintOf(renewed.cert))
    expect(fingerprintOf(before.unverifiedCertPem)).toBe(fingerprintOf(renewed.cert))
    expect(await confirm(simulated, renewed.cert)).toBe('')
    const after = await read(router, kind)
    expect(after).toMatchObject({ fingerprint: fingerprintOf(renewed.cert), isVerified: true })
    expect([after.unverifiedFingerprint, after.unverifiedCertPem]).toEqual([null, null])
  })
})

describe('a router that renews its certificates', () => {
  const newRouter = () => enrolledRouter(world, { name: newName('router') })

  it('may connect by either certificate while it has not confirmed the new one', async () => {
    const router = await newRouter()
    const { renewed } = await renew(await connect(router), router)
    expect(await canConnect(router)).toBe(true)
    expect(await canConnect(renewed)).toBe(true)
  })

  it('keeps its connection when it confirms the new one', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const { renewed } = await renew(simulated, router)
    await confirm(simulated, renewed.cert)
    await simulated.takeReply(simulated.send(1))
    expect(await read(router)).toMatchObject({ isOnline: true })
  })

  it('may connect by the former one until it has connected by the new one, because the response may be lost', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const { renewed } = await renew(simulated, router)
    await confirm(simulated, renewed.cert)
    expect(await canConnect(router)).toBe(true)
    expect(await canConnect(renewed)).toBe(true)
    await expect.poll(() => canConnect(router)).toBe(false)
    expect(await canConnect(renewed)).toBe(true)
  })

  it('may renew them again over the same connection', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const { renewed: first } = await renew(simulated, router)
    await confirm(simulated, first.cert)
    world.clock.advance(10_000)
    const { renewed: second } = await renew(simulated, router)
    expect(await confirm(simulated, second.cert)).toBe('')
    expect((await read(router)).fingerprint).toBe(fingerprintOf(second.cert))
  })

  it('need not confirm them if it cannot', async () => {
    const router = await newRouter()
    const { renewed } = await renew(await connect(router), router, false)
    expect(await read(router)).toMatchObject({ fingerprint: fingerprintOf(renewed.cert), unverifiedFingerprint: null })
  })

  it('is refused by the reason if it confirms another certificate, or none', async () => {
    const [router, other] = [await newRouter(), await newRouter()]
    const simulated = await connect(router)
    expect(await confirm(simulated, router.cert)).toBe('INVALID_ROUTER_STATE')
    await renew(simulated, router)
    expect(await confirm(simulated, '')).toBe('MISSING_CLIENT_PEM')
    expect(await confirm(simulated, 'garbage')).toBe('INVALID_CLIENT_PEM')
    expect(await confirm(simulated, other.cert)).toBe('VERIFY_ERROR')
    expect((await read(router)).fingerprint).toBe(fingerprintOf(router.cert))
  })

  it('loses all of them when it must enroll again', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const { renewed } = await renew(simulated, router)
    await confirm(simulated, renewed.cert)
    await manage.change('POST', `/edge-routers/${router.id}/re-enroll`)
    await simulated.closed
    expect(await canConnect(router)).toBe(false)
    expect(await canConnect(renewed)).toBe(false)
  })
})

describe('a request for new certificates is not served', () => {
  /** Sends a request, and returns whether any certificate came. */
  async function isServed(simulated: SimulatedRouter, values: Request): Promise<boolean> {
    sendRequest(simulated, { requireVerification: true, ...values })
    await simulated.takeReply(simulated.send(1))
    // Later than the reply to the ping, if at all.
    await world.system.write(async () => {})
    await simulated.takeReply(simulated.send(1))
    return simulated.received.some(({ type }) => type === 20301)
  }

  it('if it is malformed, asks for the name of another router, or comes a moment after another one', async () => {
    const router = await enrolledRouter(world, { name: newName('router') })
    const simulated = await connect(router)
    const [own, foreign] = [await clientKey(router.id), await clientKey('another-id')]
    for (const values of [
      {},
      { clientCertCsr: own.csr },
      { clientCertCsr: 'garbage', serverCertCsr: own.csr },
      { clientCertCsr: foreign.csr, serverCertCsr: own.csr },
    ]) {
      world.clock.advance(10_000)
      expect(await isServed(simulated, values)).toBe(false)
    }
    world.clock.advance(10_000)
    await renew(simulated, router)
    expect(await isServed(simulated, { clientCertCsr: own.csr, serverCertCsr: own.csr })).toBe(false)
  })
})
