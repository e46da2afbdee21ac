// The control channel: which routers may connect, what they and the controller say first, and what ends a connection.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { RouterInterfacesUpdateSchema } from '../../server/control-channel/messages/control_pb.ts'
import {
  ClientHelloSchema,
  ConnectEventsSchema,
  ServerHelloSchema,
} from '../../server/control-channel/messages/edge_pb.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { recordingLog } from '../world/recording-log.ts'
import { reasonOfDisconnection, reasonOfRejection } from '../world/router/end-reasons.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { ROUTER_VERSION, SimulatedRouter } from '../world/router/simulated-router.ts'

const log = recordingLog()
let world: TestController
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []

beforeAll(async () => {
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
  // The work of each second is done when a test says so.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  world = await testController({ settings: { listeners }, log })
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})
afterAll(async () => {
  await world.close()
  vi.useRealTimers()
})

let names = 0
const newRouter = (kind: 'edge-routers' | 'routers' = 'edge-routers') =>
  enrolledRouter(world, { name: `router-${++names}`, kind })

async function dial(options: { cert?: string; key?: string; protocols?: readonly string[] }): Promise<SimulatedRouter> {
  const router = await SimulatedRouter.open({ ...address, ...options, respondsToHeartbeats: false })
  open.push(router)
  return router
}

/** Connects as the router; resolves when the controller responded to its hello. */
async function connect(router: EnrolledRouter): Promise<SimulatedRouter> {
  const simulated = await dial(router)
  simulated.introduce(router.id)
  await simulated.takeType(2)
  return simulated
}

async function read(router: EnrolledRouter, kind = 'edge-routers') {
  const token = await world.admin()
  const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/${kind}/${router.id}`, token })
  return body.data
}

describe('a router that has enrolled', () => {
  it('is told the version, the id of the controller and its capabilities', async () => {
    const router = await newRouter()
    const simulated = await dial(router)
    simulated.introduce(router.id)
    const response = await simulated.takeType(2)
    expect(response.sequence).toBe(-1)
    expect(response.headers.get(1)!.readInt32LE()).toBe(-1)
    expect(response.headers.get(2)).toEqual(Buffer.from([1]))
    expect(response.headers.get(4)!.toString()).toMatch(/^v\d+\.\d+\.\d+\|[^|]+\|[^|]+\|[^|]+\|[^|]+$/)
    expect(response.headers.get(8)!.toString()).toBe(world.controller.membership.ownId)
    expect(response.headers.get(12)).toEqual(Buffer.from([0x0e]))
    expect(response.headers.get(0)!.length).toBeGreaterThan(0)
  })

  it('is online while it is connected, with its version and where its clients reach it', async () => {
    const router = await newRouter()
    expect(await read(router)).toMatchObject({ isOnline: false, hostname: '', supportedProtocols: {} })
    const simulated = await connect(router)
    const greeting = await simulated.takeType(20000)
    expect(fromBinary(ServerHelloSchema, greeting.body).data).toEqual({ instant: 'true' })
    const hello = create(ClientHelloSchema, {
      version: 'v1.6.5',
      hostname: 'router.example',
      listeners: [{ advertise: { protocol: 'tls', hostname: 'router.example', port: 3022 } }],
    })
    simulated.send(20001, toBinary(ClientHelloSchema, hello))
    await expect
      .poll(() => read(router))
      .toMatchObject({
        isOnline: true,
        hostname: 'router.example',
        supportedProtocols: { tls: 'tls://router.example:3022' },
        versionInfo: { version: 'v1.6.5', revision: '0efb60b21134', os: 'linux', arch: 'amd64' },
      })
    await simulated.close()
    await expect
      .poll(() => read(router))
      .toMatchObject({ isOnline: false, hostname: '', supportedProtocols: {}, versionInfo: { version: '' } })
  })

  it('is known by the time at which it lost its connection, until it connects again or is deleted', async () => {
    const { connected } = world.controller.routers
    const router = await newRouter()
    const first = await connect(router)
    expect(connected.getDisconnectTime(router.id)).toBeUndefined()
    await first.close()
    await expect.poll(() => connected.getDisconnectTime(router.id)).toBe(world.clock.now())
    await connect(router)
    expect(connected.getDisconnectTime(router.id)).toBeUndefined()
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/edge-routers/${router.id}`, token: await world.admin() })
    await expect.poll(() => connected.getPresence(router.id)).toBe('offline')
    expect(connected.getDisconnectTime(router.id)).toBeUndefined()
  })

  it('of the transit kind is online too, and is not greeted as an edge router', async () => {
    const router = await newRouter('routers')
    const simulated = await connect(router)
    await simulated.takeReply(simulated.send(1))
    expect(simulated.received.map(({ type }) => type)).not.toContain(20000)
    expect(await read(router, 'routers')).toMatchObject({ isOnline: true })
  })

  it.each([
    ['a host name that is too long', { hostname: 'x'.repeat(256) }],
    ['more protocols than a router has', { hostname: 'r', protocols: Array(65).fill('tls'), protocolPorts: ['1'] }],
    ['a port that is too long', { hostname: 'r', protocols: ['tls'], protocolPorts: ['1'.repeat(256)] }],
    [
      'a listener that is too long',
      { listeners: [{ advertise: { protocol: 'tls', hostname: 'x'.repeat(256), port: 1 } }] },
    ],
  ])('loses its connection if it describes itself by %s', async (_what, description) => {
    const router = await newRouter()
    const simulated = await connect(router)
    simulated.send(20001, toBinary(ClientHelloSchema, create(ClientHelloSchema, description)))
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toMatch(/a word that is too long|at most 64 are accepted/)
  })

  it('is told where its clients reach it by protocols and ports if it names no listeners', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const lists = { hostname: 'r.example', protocols: ['tls', 'wss'], protocolPorts: ['3022', '443'] }
    simulated.send(20001, toBinary(ClientHelloSchema, create(ClientHelloSchema, lists)))
    await expect
      .poll(async () => (await read(router)).supportedProtocols)
      .toEqual({ tls: 'tls://r.example:3022', wss: 'wss://r.example:443' })
  })

  it('has its interfaces stored, which are shown while it is offline', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const one = { name: 'eth0', hardwareAddress: '02:00:00:00:00:01', mtu: 1500n, index: 2n, flags: 51n }
    const update = create(RouterInterfacesUpdateSchema, { interfaces: [{ ...one, addresses: ['192.0.2.7/24'] }] })
    const reply = await simulated.takeReply(simulated.send(1052, toBinary(RouterInterfacesUpdateSchema, update)))
    expect(reply.headers.get(2)).toEqual(Buffer.from([1]))
    await simulated.close()
    expect((await read(router)).interfaces).toEqual([
      {
        name: 'eth0',
        hardwareAddress: '02:00:00:00:00:01',
        mtu: 1500,
        index: 2,
        isUp: true,
        isBroadcast: true,
        isLoopback: false,
        isMulticast: true,
        isRunning: true,
        addresses: ['192.0.2.7/24'],
      },
    ])
  })

  it('says which identities are connected to it', async () => {
    const router = await newRouter()
    const { id: identityId } = await world.signIn()
    const simulated = await connect(router)
    const report = (isConnected: boolean, fullState = false) => {
      const events = fullState ? [] : [{ identityId, isConnected }]
      simulated.send(20415, toBinary(ConnectEventsSchema, create(ConnectEventsSchema, { events, fullState })))
    }
    const hasConnection = async () => {
      const token = await world.admin()
      const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/identities/${identityId}`, token })
      return body.data.hasEdgeRouterConnection
    }
    report(true)
    await expect.poll(hasConnection).toBe(true)
    report(false, true)
    await expect.poll(hasConnection).toBe(false)
    report(true)
    await expect.poll(hasConnection).toBe(true)
    await simulated.close()
    await expect.poll(hasConnection).toBe(false)
  })

  it('gets a response to heartbeats at once, with the value that it sent', async () => {
    const simulated = await connect(await newRouter())
    const value = Buffer.from('0102030405060708', 'hex')
    simulated.send(5, Buffer.alloc(0), [[5, value]])
    const response = await simulated.take(({ headers }) => headers.has(6))
    expect(response.headers.get(6)).toEqual(value)
  })

  it('gets a response to a ping, with the headers that replies repeat', async () => {
    const simulated = await connect(await newRouter())
    const sequence = simulated.send(1, Buffer.alloc(0), [[128, Buffer.from('trace')]])
    const reply = await simulated.takeReply(sequence)
    expect(reply.headers.get(128)!.toString()).toBe('trace')
  })

  it('is not disturbed by kinds of message that the controller does not know', async () => {
    const simulated = await connect(await newRouter())
    for (const type of [-33, 6, 99_999, 1007]) simulated.send(type)
    await simulated.takeReply(simulated.send(1))
  })
})

describe('the controller does not respond to', () => {
  /** The reason of the rejection that ends a connection without a response. */
  async function awaitRejection(simulated: SimulatedRouter): Promise<string> {
    await simulated.closed
    expect(simulated.received).toEqual([])
    return reasonOfRejection(world, log)
  }

  /** Introduces a router by these credentials; resolves with the reason once the controller has cut the connection. */
  async function rejectionOf(id: string, credentials: { cert?: string; key?: string }): Promise<string> {
    const simulated = await dial(credentials)
    simulated.introduce(id)
    return awaitRejection(simulated)
  }

  it('a router that presents no certificate', async () => {
    expect(await rejectionOf((await newRouter()).id, {})).toBe('the router presented no certificate')
  })

  it('a router that does not exist', async () => {
    const router = await newRouter()
    expect(await rejectionOf('no-such-router', router)).toBe('the router does not exist')
  })

  it('a router that introduces itself as another one', async () => {
    const [one, another] = [await newRouter(), await newRouter()]
    expect(await rejectionOf(another.id, one)).toBe('the router enrolled with another certificate')
  })

  it('an identity with its own certificate', async () => {
    const router = await newRouter()
    const identity = await enrollIdentity()
    expect(await rejectionOf(router.id, identity)).toBe('the router enrolled with another certificate')
  })

  it('a disabled router', async () => {
    const router = await newRouter()
    await change(router, { disabled: true })
    expect(await rejectionOf(router.id, router)).toBe('the router is disabled')
  })

  it('a router that must enroll again', async () => {
    const router = await newRouter()
    await reEnroll(router)
    expect(await rejectionOf(router.id, router)).toBe('the router has not enrolled')
  })

  it.each([
    ['a hello without a version', 'the hello has no version', []],
    ['a hello with a version of other parts', 'the version does not have five parts', [[4, Buffer.from('v1.6.5')]]],
    [
      'a hello with a version that is too long',
      'the version is too long',
      [[4, Buffer.from(`v1.6.5|${'x'.repeat(512)}|c|d|e`)]],
    ],
    [
      'a hello whose listeners are garbage',
      'the listeners are malformed',
      [
        [4, Buffer.from(ROUTER_VERSION)],
        [10, Buffer.from([255, 255])],
      ],
    ],
  ] as const)('%s', async (_name, reason, headers) => {
    const router = await newRouter()
    const simulated = await dial(router)
    simulated.introduce(router.id, headers as unknown as [number, Buffer][])
    expect(await awaitRejection(simulated)).toBe(reason)
  })

  it.each([
    ['HTTP', /another magic number/, Buffer.from('GET / HTTP/1.1\r\nHost: a\r\n\r\n')],
    [
      'a frame of 4 GB',
      /the headers have -1 bytes/,
      Buffer.from(`0306090c${'00000000'}ffffffff${'ffffffff'}ffffffff`, 'hex'),
    ],
    [
      'another message than a hello',
      /the first message has type 2/,
      Buffer.from(`0306090c${'02000000'}ffffffff${'00000000'}00000000`, 'hex'),
    ],
  ])('%s on the control channel', async (_name, reason, bytes) => {
    const simulated = await dial(await newRouter())
    simulated.write(bytes)
    expect(await awaitRejection(simulated)).toMatch(reason)
  })
})

describe('a connection ends', () => {
  it('if the router is disabled', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    await change(router, { disabled: true })
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe('the router is disabled')
    expect(await read(router)).toMatchObject({ isOnline: false })
  })

  it('if the router is deleted', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    const token = await world.admin()
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/edge-routers/${router.id}`, token })
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe('the router was deleted')
  })

  it('if the router must enroll again', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    await reEnroll(router)
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe('the router has not enrolled')
  })

  it('if the body of a message is garbage, and no other router notices', async () => {
    const router = await newRouter()
    const [bad, good] = [await connect(router), await connect(await newRouter())]
    bad.send(20001, Buffer.from([255, 255, 255]))
    await bad.closed
    expect(reasonOfDisconnection(log, router)).toBe('a message of type 20001 has a malformed body')
    await good.takeReply(good.send(1))
  })

  it('if a frame is malformed', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    simulated.write(Buffer.from('no frame, and longer than twenty bytes'))
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toMatch(/^malformed message: .*magic number/)
  })

  it('if the router does not respond to heartbeats for thirty seconds', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    await simulated.takeReply(simulated.send(1))
    // It has a minute before it is judged.
    for (let second = 1; second <= 60; second += 1) {
      world.clock.advance(1_000)
      vi.advanceTimersByTime(1_000)
    }
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toBe('no heartbeat response')
  })

  it('if the same router connects again after its earlier connection fell silent', async () => {
    const router = await newRouter()
    const earlier = await connect(router)
    world.clock.advance(13_000)
    const later = await connect(router)
    await earlier.closed
    expect(reasonOfDisconnection(log, router)).toBe('the router connected again')
    await later.takeReply(later.send(1))
    expect(await read(router)).toMatchObject({ isOnline: true })
  })

  it('of a second process with the certificate of a router, while the first one is in use', async () => {
    const router = await newRouter()
    const first = await connect(router)
    const second = await dial(router)
    second.introduce(router.id)
    await second.closed
    expect(await reasonOfRejection(world, log)).toBe('the router is connected already')
    await first.takeReply(first.send(1))
  })
})

describe('on the same port', () => {
  it('HTTP is served as before, with and without a protocol in the handshake', async () => {
    const http = await dial({ protocols: ['http/1.1'] })
    expect(http.protocol).toBe('http/1.1')
    const response = await callOverTls(address.url, address.rootPem, { method: 'GET', path: `${CLIENT}/version` })
    expect(response.status).toBe(200)
  })
})

async function change(router: EnrolledRouter, values: Record<string, unknown>): Promise<void> {
  const token = await world.admin()
  await world.send({ method: 'PATCH', path: `${MANAGEMENT}/edge-routers/${router.id}`, token, body: values })
}

async function reEnroll(router: EnrolledRouter): Promise<void> {
  const token = await world.admin()
  await world.send({ method: 'POST', path: `${MANAGEMENT}/edge-routers/${router.id}/re-enroll`, token })
}

async function enrollIdentity(): Promise<{ cert: string; key: string }> {
  const token = await world.admin()
  const body = { name: `device-${++names}`, type: 'Device', isAdmin: false, enrollment: { ott: true } }
  const created = await world.send({ method: 'POST', path: `${MANAGEMENT}/identities`, token, body })
  const path = `${MANAGEMENT}/identities/${created.body.data.id}`
  const identity = await world.send({ method: 'GET', path, token })
  const ott = identity.body.data.enrollment.ott.token
  const { csr, keyPem } = await clientKey('device')
  const enrolled = await world.send({
    method: 'POST',
    path: `${CLIENT}/enroll?method=ott&token=${ott}`,
    body: { clientCsr: csr },
  })
  return { cert: enrolled.body.data.cert, key: keyPem }
}

describe('a router that says more than routers do', () => {
  const bodies: [string, number, Uint8Array][] = [
    ['sessions', 20203, repeated(10_001)],
    ['service sessions', 20213, repeated(10_001)],
    ['connected identities', 20415, repeated(10_001)],
    ['interfaces', 1052, repeated(257)],
  ]

  it.each(bodies)('loses its connection for too many %s', async (_name, type, body) => {
    const router = await newRouter()
    const simulated = await connect(router)
    simulated.send(type, body)
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toMatch(/^a message has (?:10001|257) \w+; at most \d+ are accepted$/)
  })

  it('loses its connection for a body of more than two megabytes', async () => {
    const router = await newRouter()
    const simulated = await connect(router)
    simulated.send(1007, Buffer.alloc(2 * 1024 * 1024 + 1))
    await simulated.closed
    expect(reasonOfDisconnection(log, router)).toMatch(/the body has 2097153 bytes; at most 2097152 are accepted/)
  })

  it('is not believed that an identity is connected which has no session', async () => {
    const simulated = await connect(await newRouter())
    const events = create(ConnectEventsSchema, { events: [{ identityId: 'invented', isConnected: true }] })
    simulated.send(20415, toBinary(ConnectEventsSchema, events))
    await simulated.takeReply(simulated.send(1))
    expect(world.controller.routers.connected.getConnectionStatus('invented')).toBe('offline')
  })
})

/** A protobuf message with so many empty entries in its first list: each is field 1, of length 0. */
function repeated(count: number): Uint8Array {
  return Buffer.alloc(count * 2, Buffer.from([0x0a, 0x00]))
}
