// Routers of release 2: several connections are one channel, which ends with the last of them.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { ListenersSchema } from '../../server/control-channel/messages/control_pb.ts'
import { ApiSessionAddedSchema, ServerHelloSchema } from '../../server/control-channel/messages/edge_pb.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { recordingLog } from '../world/recording-log.ts'
import { reasonOfDisconnection } from '../world/router/end-reasons.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import {
  type GroupedHello,
  groupedHeaders,
  groupOf,
  ROUTER_VERSION,
  ROUTER_VERSION_2,
  SimulatedRouter,
} from '../world/router/simulated-router.ts'

let world: TestController
let address: { url: string; rootPem: string }
const log = recordingLog()
const open: SimulatedRouter[] = []

beforeAll(async () => {
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
  world = await testController({ log, settings: { listeners } })
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})
afterAll(() => world.close())

let names = 0
const newRouter = (kind: 'edge-routers' | 'routers' = 'edge-routers') =>
  enrolledRouter(world, { name: `router-${++names}`, kind })

async function dial(credentials: { cert?: string; key?: string }): Promise<SimulatedRouter> {
  const connection = await SimulatedRouter.open({ ...address, ...credentials, respondsToHeartbeats: false })
  open.push(connection)
  return connection
}

/** Connects; resolves with the connection and its group when the controller responded to the hello. */
async function connect(router: EnrolledRouter, hello: GroupedHello = {}) {
  const connection = await dial(router)
  connection.introduce(router.id, groupedHeaders(hello))
  const response = await connection.takeType(2)
  return { connection, response, group: groupOf(response) }
}

/** The connections of a router, as it opens them. */
async function connectBoth(router: EnrolledRouter) {
  const { connection: normal, group } = await connect(router)
  const { connection: high } = await connect(router, { type: 'ctrl.high', group })
  high.continueAt(1_000)
  return { normal, high, group }
}

const getConnected = ({ id }: EnrolledRouter) => world.controller.routers.connected.get(id)

async function read({ id }: EnrolledRouter) {
  const { body } = await world.send({
    method: 'GET',
    path: `${MANAGEMENT}/edge-routers/${id}`,
    token: await world.admin(),
  })
  return body.data
}

/** Introduces a connection that the controller does not respond to. */
async function expectRefused(router: EnrolledRouter, headers: Iterable<readonly [number, Buffer]>): Promise<void> {
  const connection = await dial(router)
  connection.introduce(router.id, headers)
  await connection.closed
  expect(connection.received).toEqual([])
}

describe('a router of release 2', () => {
  it('is told a release of that protocol, its group with a secret, and what the controller can do', async () => {
    const { response } = await connect(await newRouter())
    const { headers } = response
    expect(response.sequence).toBe(-1)
    expect(headers.get(1)!.readInt32LE()).toBe(-1)
    expect(headers.get(2)).toEqual(Buffer.from([1]))
    expect(headers.get(4)!.toString()).toMatch(/^v2\.0\.3\|[^|]+\|[^|]+\|[^|]+\|[^|]+$/)
    expect(headers.get(7)!.toString()).toBe('ctrl.default')
    expect(headers.get(8)!.toString()).toBe(world.controller.membership.ownId)
    expect(headers.get(9)).toEqual(Buffer.from([1]))
    expect(headers.get(0)!.length).toBeGreaterThan(0)
    expect(headers.get(10)).toHaveLength(16)
    for (const id of [12, 1002]) expect(headers.get(id)).toEqual(Buffer.from([0x7e]))
  })

  it('has another group and secret than any other process', async () => {
    const [one, another] = [await connect(await newRouter()), await connect(await newRouter())]
    expect(one.group.id).not.toBe(another.group.id)
    expect(one.group.secret).not.toEqual(another.group.secret)
  })

  it('is online, with its version, and greeted by the release that it was told', async () => {
    const router = await newRouter()
    const { connection } = await connect(router)
    const greeting = fromBinary(ServerHelloSchema, (await connection.takeType(20000)).body)
    expect(greeting).toMatchObject({ version: 'v2.0.3', data: { instant: 'true' } })
    expect(await read(router)).toMatchObject({ isOnline: true, versionInfo: { version: 'v2.0.3', os: 'linux' } })
  })

  it('may be a build without a release, and may need more than four kilobytes for its listeners', async () => {
    const router = await newRouter()
    const listeners = Array.from({ length: 100 }, (_, at) => ({
      address: `tls:router-${at}.example:6000`,
      protocol: 'tls',
      groups: ['default'],
    }))
    const connection = await dial(router)
    const encoded = Buffer.from(toBinary(ListenersSchema, create(ListenersSchema, { listeners })))
    expect(encoded.length).toBeGreaterThan(4_192)
    const version = 'v0.0.0|unknown|unknown|linux|amd64'
    connection.introduce(router.id, [...groupedHeaders({ version }), [1000, encoded]])
    await connection.takeType(2)
    expect(getConnected(router)!.hello.linkListeners).toMatchObject(listeners)
  })

  it('of the transit kind is online, and told no keys', async () => {
    const router = await newRouter('routers')
    const { connection } = await connect(router)
    await connection.takeReply(connection.send(1))
    expect(getConnected(router)).toBeDefined()
    expect(connection.received.map(({ type }) => type)).not.toContain(20501)
  })

  it('stands beside one of release 1, which is told what it always was', async () => {
    await connect(await newRouter())
    const router = await newRouter()
    const connection = await dial(router)
    connection.introduce(router.id)
    const { headers } = await connection.takeType(2)
    expect([...headers.keys()].sort((a, b) => a - b)).toEqual([0, 1, 2, 4, 8, 12])
    expect(headers.get(4)!.toString()).toMatch(/^v1\.6\.5\|/)
    expect(headers.get(12)).toEqual(Buffer.from([0x0e]))
    await connection.takeReply(connection.send(1))
    expect(connection.received.map(({ type }) => type)).not.toContain(20501)
  })

  it('counts as another process if its hello names no group, and as the same one otherwise', async () => {
    const restartedIds: string[] = []
    world.controller.routers.connected.addObserver({
      routerConnected() {},
      routerDisconnected() {},
      routerRestarted: ({ id }) => restartedIds.push(id),
    })
    const router = await newRouter()
    const { connection, group } = await connect(router)
    await connection.takeReply(connection.send(1))
    expect(restartedIds).toEqual([router.id])
    await connection.close()
    const again = await connect(router, { group: { ...group, id: `${group.id}-1` }, isFirst: true })
    await again.connection.takeReply(again.connection.send(1))
    expect(restartedIds).toEqual([router.id])
  })
})

describe('a second connection of a router', () => {
  it('is told the same group, and that its type is understood', async () => {
    const router = await newRouter()
    const { group } = await connect(router)
    const { response } = await connect(router, { type: 'ctrl.high', group })
    expect(groupOf(response)).toEqual(group)
    expect(response.headers.get(7)!.toString()).toBe('ctrl.high')
    expect(log.lines.map(({ message }) => message)).toContain('a router added a connection')
  })

  it('takes routes and their ends; everything else goes over the first one, numbered together', async () => {
    const router = await newRouter()
    const { normal, high } = await connectBoth(router)
    await normal.takeReply(normal.send(1))
    const { connection } = getConnected(router)!
    connection.sendRoute({ circuitId: 'one', attempt: 0, forwards: [], timeoutMs: 1_000, tags: {} })
    connection.sendFault({ linkId: 'link', iteration: 1 })
    connection.sendUnroute('one', true)
    const [route, unroute] = [await high.takeType(1005), await high.takeType(1006)]
    const fault = await normal.takeType(1004)
    expect([fault.sequence - route.sequence, unroute.sequence - fault.sequence]).toEqual([1, 1])
  })

  it('may carry requests, which are replied to over the first one', async () => {
    const { normal, high } = await connectBoth(await newRouter())
    await normal.takeReply(high.send(1))
    const heartbeat = Buffer.from('0102030405060708', 'hex')
    high.send(5, Buffer.alloc(0), [[5, heartbeat]])
    const response = await normal.take(({ headers }) => headers.has(6))
    expect(response.headers.get(6)).toEqual(heartbeat)
  })

  it.each(['high', 'normal'] as const)(
    'and the first one may be lost: the router stays online without the %s one',
    async (lost) => {
      const router = await newRouter()
      const connections = await connectBoth(router)
      const left = lost === 'high' ? connections.normal : connections.high
      await connections.normal.takeType(20501)
      await connections[lost].close()
      // The last messages may be lost, so they come again.
      await left.takeType(20501)
      const sessions = fromBinary(ApiSessionAddedSchema, (await left.takeType(20200)).body)
      expect(sessions.isFullState).toBe(true)
      expect(await read(router)).toMatchObject({ isOnline: true })
      getConnected(router)!.connection.sendUnroute('one', true)
      await left.takeType(1006)
      await left.takeReply(left.send(1))
      const type = lost === 'high' ? 'ctrl.high' : 'ctrl.default'
      const { connection } = await connect(router, { type, group: connections.group })
      await (lost === 'high' ? left : connection).takeReply(connection.send(1))
    },
  )

  it('and the first one are lost: the router is offline, and comes back by either with its old secret', async () => {
    const router = await newRouter()
    const { normal, high, group } = await connectBoth(router)
    await high.close()
    await normal.close()
    await expect.poll(() => getConnected(router)).toBeUndefined()
    const later = { id: `${group.id}-4`, secret: group.secret }
    const first = await connect(router, { type: 'ctrl.high', group: later, isFirst: true })
    expect(first.group).toEqual(later)
    // The router waits for the greeting on the connection that it has.
    await first.connection.takeType(20000)
    const second = await connect(router, { group: later })
    expect(second.group).toEqual(later)
    await second.connection.takeReply(first.connection.send(1))
  })

  it('replaces one of its type that fell silent, because the router lost it', async () => {
    const router = await newRouter()
    const { normal, high, group } = await connectBoth(router)
    world.clock.advance(13_000)
    await normal.takeReply(normal.send(1))
    const { connection } = await connect(router, { type: 'ctrl.high', group })
    await high.closed
    getConnected(router)!.connection.sendUnroute('one', true)
    await connection.takeType(1006)
  })

  it('ends with the first one if the router is disabled', async () => {
    const router = await newRouter()
    const { normal, high } = await connectBoth(router)
    const token = await world.admin()
    const path = `${MANAGEMENT}/edge-routers/${router.id}`
    await world.send({ method: 'PATCH', path, token, body: { disabled: true } })
    await Promise.all([normal.closed, high.closed])
    expect(reasonOfDisconnection(log, router)).toBe('the router is disabled')
  })

  it.each(['normal', 'high'] as const)(
    'and the first one end if a frame of the %s one is malformed',
    async (malformed) => {
      const router = await newRouter()
      const connections = await connectBoth(router)
      connections[malformed].write(Buffer.from('no frame, and longer than twenty bytes'))
      await Promise.all([connections.normal.closed, connections.high.closed])
      expect(reasonOfDisconnection(log, router)).toMatch(/^malformed message: .*magic number/)
    },
  )
})

describe('the version of a router', () => {
  const readStored = async ({ id }: EnrolledRouter) => {
    const { db } = world.controller.store
    const row = await db.selectFrom('routers').select('lastVersion').where('id', '=', id).executeTakeFirstOrThrow()
    return row.lastVersion === null ? null : JSON.parse(row.lastVersion)
  }
  const countAudited = async ({ id }: EnrolledRouter) => {
    const { db } = world.controller.store
    return (await db.selectFrom('audit_records').select('n').where('entityId', '=', id).execute()).length
  }

  it('is stored when it connects, without an audit record, and only if it is another one', async () => {
    const router = await newRouter()
    expect(await readStored(router)).toBeNull()
    const audited = await countAudited(router)
    const one = await dial(router)
    one.introduce(router.id, [[4, Buffer.from(ROUTER_VERSION)]])
    await expect.poll(() => readStored(router)).toMatchObject({ version: 'v1.6.5', arch: 'amd64' })
    await one.close()
    const { connection } = await connect(router)
    const [version, revision, buildDate, os, arch] = ROUTER_VERSION_2.split('|')
    await expect.poll(() => readStored(router)).toEqual({ version, revision, buildDate, os, arch })
    await connection.close()
    await expect.poll(() => getConnected(router)).toBeUndefined()
    const store = vi.spyOn(world.controller.routers.provisioner, 'storeVersion')
    await connect(router)
    expect(store).not.toHaveBeenCalled()
    store.mockRestore()
    expect(await countAudited(router)).toBe(audited)
  })

  it('is not shown while it is offline', async () => {
    const router = await newRouter()
    const { connection } = await connect(router)
    await connection.close()
    await expect.poll(() => read(router)).toMatchObject({ isOnline: false, versionInfo: { version: '' } })
    expect(await read(router)).not.toHaveProperty('lastVersion')
  })
})

describe('the controller does not respond to', () => {
  const secret = Buffer.alloc(16, 7)

  it.each<[string, [number, Buffer][]]>([
    ['a grouped hello without a type', groupedHeaders().filter(([id]) => id !== 7)],
    ['a type that is not known', groupedHeaders({ type: 'ctrl.low' as 'ctrl.high' })],
    ['a grouped hello of release 1', groupedHeaders({ version: ROUTER_VERSION })],
    ['a grouped hello of a release that is not a number', groupedHeaders({ version: 'next|a|b|c|d' })],
    ['a further connection that names no group', groupedHeaders({ isFirst: false })],
    ['a group without a secret', [...groupedHeaders(), [0, Buffer.from('one')]]],
    ['a secret without a group', [...groupedHeaders(), [10, secret]]],
    ['an empty secret', groupedHeaders({ group: { id: 'one', secret: Buffer.alloc(0) }, isFirst: true })],
    ['an empty group', groupedHeaders({ group: { id: '', secret }, isFirst: true })],
    ['a secret that is too long', groupedHeaders({ group: { id: 'one', secret: Buffer.alloc(65) }, isFirst: true })],
    ['listeners that are garbage', [...groupedHeaders(), [1000, Buffer.from([255, 255])]]],
    ['headers of more than 16 KB', [...groupedHeaders(), [200, Buffer.alloc(16_384)]]],
    ['a group that never was', groupedHeaders({ group: { id: 'one', secret } })],
  ])('%s', async (_what, headers) => {
    await expectRefused(await newRouter(), headers)
  })

  it('a further connection with another secret, however long, or of another group; and the first one goes on', async () => {
    const router = await newRouter()
    const { connection, group } = await connect(router)
    const nearly = Buffer.from(group.secret)
    nearly[15]! ^= 1
    for (const wrong of [nearly, group.secret.subarray(0, 8), Buffer.concat([group.secret, secret])])
      await expectRefused(router, groupedHeaders({ type: 'ctrl.high', group: { id: group.id, secret: wrong } }))
    await expectRefused(router, groupedHeaders({ type: 'ctrl.high', group: { ...group, id: `${group.id}-1` } }))
    await connection.takeReply(connection.send(1))
  })

  it('a router that joins the group of another one, connected or not', async () => {
    const [own, other] = [await newRouter(), await newRouter()]
    const { connection, group } = await connect(other)
    await expectRefused(own, groupedHeaders({ type: 'ctrl.high', group }))
    await connect(own)
    await expectRefused(own, groupedHeaders({ type: 'ctrl.high', group }))
    // Under the other's name with its own certificate, neither.
    const forged = await dial(own)
    forged.introduce(other.id, groupedHeaders({ type: 'ctrl.high', group }))
    await forged.closed
    await connection.takeReply(connection.send(1))
  })

  it('a further connection of a router whose first one was refused', async () => {
    const router = await newRouter()
    const path = `${MANAGEMENT}/edge-routers/${router.id}`
    const change = async (disabled: boolean) =>
      world.send({ method: 'PATCH', path, token: await world.admin(), body: { disabled } })
    await change(true)
    const group = { id: 'one', secret }
    await expectRefused(router, groupedHeaders({ group, isFirst: true }))
    await change(false)
    await expectRefused(router, groupedHeaders({ type: 'ctrl.high', group }))
    await connect(router)
  })

  it('a further connection of a router of release 1', async () => {
    const router = await newRouter()
    const connection = await dial(router)
    connection.introduce(router.id)
    const { headers } = await connection.takeType(2)
    const group = { id: headers.get(0)!.toString(), secret }
    await expectRefused(router, groupedHeaders({ type: 'ctrl.high', group }))
    await connection.takeReply(connection.send(1))
  })

  it('a hundred connections of a router beyond its two, which it logs once', async () => {
    const router = await newRouter()
    const { normal, group } = await connectBoth(router)
    const countLines = () =>
      log.lines.filter(({ fields }) => fields.reason === 'the router has a connection of this type already').length
    const before = countLines()
    const types = ['ctrl.default', 'ctrl.high'] as const
    await Promise.all(
      Array.from({ length: 100 }, (_, at) => expectRefused(router, groupedHeaders({ type: types[at % 2]!, group }))),
    )
    expect(countLines() - before).toBe(1)
    await normal.takeReply(normal.send(1))
  })

  it('a second process with the certificate of a router, while the first one is in use', async () => {
    const router = await newRouter()
    const { normal } = await connectBoth(router)
    await expectRefused(router, groupedHeaders())
    await normal.takeReply(normal.send(1))
  })
})
