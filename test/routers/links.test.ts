// Links over real connections: what routers are told about each other, what they report, and what administrators see and change.
import { createHash, X509Certificate } from 'node:crypto'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import {
  FaultSchema,
  FaultSubject,
  ListenersSchema,
  PeerState,
  PeerStateChangesSchema,
  RouterLinksSchema,
  VerifyRouterSchema,
} from '../../server/control-channel/messages/control_pb.ts'
import { MetricsMessageSchema } from '../../server/control-channel/messages/metrics_pb.ts'
import { cleanEnvironment } from '../world/binary.ts'
import { commandLine } from '../world/command-line.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { writeProfiles } from '../world/profiles.ts'
import { recordingLog } from '../world/recording-log.ts'
import { reasonOfDisconnection } from '../world/router/end-reasons.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { ROUTER_VERSION, SimulatedRouter } from '../world/router/simulated-router.ts'
import { useController } from '../world/use-controller.ts'

const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'control'], dialect: 'native' }]
const log = recordingLog()
const world = useController({ settings: { listeners }, log })
let address: { url: string; rootPem: string }
let token: string
const open: SimulatedRouter[] = []

beforeAll(async () => {
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  token = await world.admin()
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
  await expect.poll(() => world.controller.routers.connected.list()).toEqual([])
})

let names = 0
const newRouter = (kind: 'edge-routers' | 'routers' = 'edge-routers') =>
  enrolledRouter(world, { name: `router-${++names}`, kind })

interface Connected {
  readonly id: string
  readonly name: string
  readonly simulated: SimulatedRouter
}

/** Connects as a router, which accepts links at this address if there is one. */
async function connect(router: EnrolledRouter, listener?: string): Promise<Connected> {
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  const listeners = listener
    ? [{ address: listener, protocol: 'tls', groups: ['default'], localBinding: 'lo' }]
    : undefined
  simulated.introduce(router.id, [
    [4, Buffer.from(ROUTER_VERSION)],
    [11, Buffer.from('0a0101', 'hex')],
    ...(listeners
      ? [[10, Buffer.from(toBinary(ListenersSchema, create(ListenersSchema, { listeners })))] as const]
      : []),
  ])
  await simulated.takeType(2)
  return { id: router.id, name: router.name, simulated }
}

/** The next message in which the controller tells a router of others. */
async function takePeers({ simulated }: Connected) {
  const { body } = await simulated.takeType(1050)
  return fromBinary(PeerStateChangesSchema, body).changes.map(({ id, version, state, listeners }) => ({
    id,
    version,
    state,
    addresses: listeners.map((one) => one.address),
  }))
}

async function takeFault({ simulated }: Connected) {
  const { subject, id, iteration } = fromBinary(FaultSchema, (await simulated.takeType(1004)).body)
  return { subject, id, iteration }
}

/** Resolves when the controller has handled everything that the router sent before. */
async function settleMessages({ simulated }: Connected): Promise<void> {
  await simulated.takeReply(simulated.send(1))
}

let linkIds = 0

/** Reports a link to another router; returns its id. */
async function reportLink(from: Connected, to: { id: string }, values: { id?: string; iteration?: number } = {}) {
  const { id = `link-${++linkIds}`, iteration = 1 } = values
  const one = { id, destRouterId: to.id, linkProtocol: 'tls', dialAddress: `tls:${to.id}:6000`, iteration }
  from.simulated.send(1035, toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: [one] })))
  await settleMessages(from)
  return id
}

async function sendFault(router: Connected, values: { subject: FaultSubject; id: string; iteration: number }) {
  router.simulated.send(1004, toBinary(FaultSchema, create(FaultSchema, values)))
  await settleMessages(router)
}

async function sendLatency(router: Connected, linkId: string, latencyMs: number, queueMs = 0) {
  const histogram = (milliseconds: number) => ({ count: 5n, mean: milliseconds * 1_000_000 })
  const histograms = {
    [`link.${linkId}.latency`]: histogram(latencyMs),
    [`link.${linkId}.queue_time`]: histogram(queueMs),
    'link.other.latency': { count: 0n, mean: 0 },
  }
  router.simulated.send(1007, toBinary(MetricsMessageSchema, create(MetricsMessageSchema, { histograms })))
  await settleMessages(router)
}

const send = (method: string, path: string, body?: unknown) =>
  world.send({ method, path: `${MANAGEMENT}/controller/links${path}`, token, ...(body ? { body: body as never } : {}) })
const readLink = async (id: string) => (await send('GET', `/${id}`)).body.data
const findPath = (from: Connected, to: Connected) => world.controller.fabric.paths.findPath(from.id, to.id)
/** New links are used after a second. */
const settleLinks = () => world.clock.advance(1_000)

describe('routers are told about each other', () => {
  it('when one connects: it learns of all others, and they learn of it', async () => {
    const first = await connect(await newRouter())
    const second = await connect(await newRouter('routers'), 'tls:127.0.0.1:21312')
    const online = { version: 'v1.6.5', state: PeerState.Healthy }
    expect(await takePeers(first)).toEqual([{ id: second.id, ...online, addresses: ['tls:127.0.0.1:21312'] }])
    expect(await takePeers(second)).toEqual([{ id: first.id, ...online, addresses: [] }])
    const third = await connect(await newRouter())
    expect((await takePeers(third)).map(({ id }) => id).sort()).toEqual([first.id, second.id].sort())
    expect((await takePeers(first)).map(({ id }) => id)).toEqual([third.id])
    expect((await takePeers(second)).map(({ id }) => id)).toEqual([third.id])
  })

  it('of all that connect at once', async () => {
    const first = await connect(await newRouter())
    const others = await Promise.all([newRouter(), newRouter(), newRouter()])
    const newcomers = await Promise.all(others.map((router) => connect(router)))
    const peerIds = new Set<string>()
    while (peerIds.size < 3) for (const { id } of await takePeers(first)) peerIds.add(id)
    for (const newcomer of newcomers) {
      const peers = new Set<string>()
      while (peers.size < 3) for (const { id } of await takePeers(newcomer)) peers.add(id)
      expect(peers).toEqual(new Set([first.id, ...others.map(({ id }) => id)].filter((id) => id !== newcomer.id)))
    }
  })

  it('when one goes offline, and when one is deleted', async () => {
    const first = await connect(await newRouter())
    const second = await connect(await newRouter())
    await takePeers(first)
    await second.simulated.close()
    expect(await takePeers(first)).toEqual([{ id: second.id, version: '', state: PeerState.Unhealthy, addresses: [] }])
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/edge-routers/${second.id}`, token })
    expect(await takePeers(first)).toEqual([{ id: second.id, version: '', state: PeerState.Removed, addresses: [] }])
  })
})

describe('a link', () => {
  it('is listed with its routers, and its latencies once they are measured', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    const id = await reportLink(a, b)
    expect(await readLink(id)).toMatchObject({
      id,
      sourceRouter: { id: a.id, name: a.name },
      destinationRouter: { id: b.id, name: b.name },
      protocol: 'tls',
      state: 'pending',
      cost: 130_001,
      sourceLatency: null,
      destinationLatency: null,
      iteration: 1,
      isDown: false,
      staticCost: 1,
    })
    settleLinks()
    await sendLatency(a, id, 2.5, 0.6)
    await sendLatency(b, id, 1.9)
    expect(await readLink(id)).toMatchObject({
      state: 'connected',
      cost: 1 + 3 + 1,
      sourceLatency: 3_100_000,
      destinationLatency: 1_900_000,
    })
    expect(findPath(b, a)).toMatchObject({ routerIds: [b.id, a.id], cost: 5 + 10 })
  })

  it('can be found by its routers and its state', async () => {
    const [a, b, c] = [
      await connect(await newRouter()),
      await connect(await newRouter()),
      await connect(await newRouter()),
    ]
    const [ab, bc] = [await reportLink(a, b), await reportLink(b, c)]
    const list = async (filter: string) =>
      (await send('GET', `?filter=${encodeURIComponent(filter)}`)).body.data.map(({ id }: { id: string }) => id)
    expect(await list(`sourceId = "${a.id}"`)).toEqual([ab])
    expect(await list(`destinationId = "${c.id}" and protocol = "tls"`)).toEqual([bc])
    expect(await list('state = "pending" sort by id desc limit 1')).toEqual([bc])
    await c.simulated.close()
    settleLinks()
    await expect.poll(() => list('state = "unreachable"')).toEqual([bc])
    expect(await list('state = "connected"')).toEqual([ab])
  })

  it('is counted at both its routers', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter('routers'))]
    await reportLink(a, b)
    for (const { id } of [a, b]) {
      const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/routers/${id}`, token })
      expect(body.data).toMatchObject({ isOnline: true, version: 'v1.6.5', linkCount: 1, circuitCount: 0 })
    }
  })

  it('is shown to administrators only', async () => {
    const { token: other } = await world.signIn()
    const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/controller/links`, token: other })
    expect(response.status).toBe(401)
  })

  it('that does not exist is not found', async () => {
    for (const [method, body] of [['GET'], ['PATCH', { isDown: true }], ['DELETE']] as const)
      expect((await send(method, '/unknown', body)).status).toBe(404)
  })

  it('leads over a transit router, which no policy names', async () => {
    const [a, transit, c] = [
      await connect(await newRouter()),
      await connect(await newRouter('routers')),
      await connect(await newRouter()),
    ]
    await reportLink(a, transit)
    await reportLink(c, transit)
    settleLinks()
    expect(findPath(a, c)?.routerIds).toEqual([a.id, transit.id, c.id])
  })

  it('does not make a path through a router without traversal', async () => {
    const [a, b, c] = [
      await connect(await newRouter()),
      await connect(await newRouter()),
      await connect(await newRouter()),
    ]
    await reportLink(a, b)
    await reportLink(b, c)
    settleLinks()
    expect(findPath(a, c)?.routerIds).toEqual([a.id, b.id, c.id])
    const change = (body: Record<string, unknown>) =>
      world.send({ method: 'PATCH', path: `${MANAGEMENT}/edge-routers/${b.id}`, token, body })
    await change({ noTraversal: true })
    expect(findPath(a, c)).toBeUndefined()
    expect(findPath(a, b)).toBeDefined()
    await change({ noTraversal: false, cost: 5_000 })
    expect(findPath(a, c)?.cost).toBe(130_001 + 5_000 + 130_001 + 10)
  })
})

describe('a router that accepts a link', () => {
  const fingerprint = ({ cert }: EnrolledRouter) =>
    createHash('sha1').update(new X509Certificate(cert).raw).digest('hex')

  /** Asks whether the dialing router, as which a link introduces itself, has presented these certificates. */
  async function isVerified({ simulated }: Connected, dialing: EnrolledRouter, fingerprints: string[]) {
    const body = toBinary(VerifyRouterSchema, create(VerifyRouterSchema, { routerId: dialing.id, fingerprints }))
    const { headers } = await simulated.takeReply(simulated.send(1036, body))
    return headers.get(2)?.equals(Buffer.from([1]))
  }

  it('learns that another is the one that it says, by its certificate and whatever follows that', async () => {
    const accepting = await connect(await newRouter())
    const dialing = await newRouter()
    const intermediate = 'aa'.repeat(20)
    expect(await isVerified(accepting, dialing, [fingerprint(dialing)])).toBe(true)
    expect(await isVerified(accepting, dialing, [fingerprint(dialing), intermediate])).toBe(true)
  })

  it('is not deceived by one that presents the certificate of another behind its own', async () => {
    const accepting = await connect(await newRouter())
    const [dialing, impostor] = [await newRouter(), await newRouter()]
    expect(await isVerified(accepting, dialing, [fingerprint(impostor), fingerprint(dialing)])).toBe(false)
    expect(await isVerified(accepting, dialing, [])).toBe(false)
  })
})

describe('an administrator', () => {
  it('sets a link down, and what it costs; both hold for the link that replaces it, and after a restart', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    const id = await reportLink(a, b)
    settleLinks()
    const { createdAt, updatedAt } = await readLink(id)
    expect(updatedAt).toBe(createdAt)
    world.clock.advance(5_000)
    expect((await send('PATCH', `/${id}`, { isDown: true })).status).toBe(200)
    expect(await readLink(id)).toMatchObject({ state: 'down', isDown: true, staticCost: 1, createdAt })
    expect((await readLink(id)).updatedAt).toBe(new Date(world.clock.now()).toISOString())
    expect(findPath(a, b)).toBeUndefined()
    expect((await send('PATCH', `/${id}`, { staticCost: 40 })).status).toBe(200)
    expect(await readLink(id)).toMatchObject({ isDown: true, staticCost: 40, cost: 130_040 })
    await sendFault(a, { subject: FaultSubject.LinkFault, id, iteration: 1 })
    const next = await reportLink(a, b)
    expect(await readLink(next)).toMatchObject({ isDown: true, staticCost: 40 })
    // As at a start.
    await world.controller.fabric.linkSettings.rebuild(world.controller.store.db)
    await sendFault(a, { subject: FaultSubject.LinkFault, id: next, iteration: 1 })
    const last = await reportLink(a, b)
    expect(await readLink(last)).toMatchObject({ isDown: true, staticCost: 40 })
    await send('PATCH', `/${last}`, { isDown: false })
    settleLinks()
    expect(findPath(a, b)?.cost).toBe(130_040 + 10)
  })

  it('is shown the link after a change of it on the command line', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    const id = await reportLink(a, b)
    const env = cleanEnvironment()
    writeProfiles(env, { test: { ...address, token } })

    const { stdout, stderr } = await commandLine(['link', 'update', id, '--is-down'], env)

    expect(stderr).toBe(`Updated link ${id}.\n`)
    expect(stdout).toMatch(new RegExp(`^SOURCE-ROUTER .* ID\n${a.name} +${b.name} +tls +down .* ${id}\n$`))
  })

  it.each([{ staticCost: -1 }, { staticCost: 1_000_001 }, { isDown: 'yes' }, { cost: 1 }])(
    'cannot set %o',
    async (body) => {
      const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
      expect((await send('PATCH', `/${await reportLink(a, b)}`, body)).status).toBe(400)
    },
  )

  it('finds the change of a link in the audit', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    await send('PATCH', `/${await reportLink(a, b)}`, { isDown: true })
    const path = `${MANAGEMENT}/controller/audit?filter=${encodeURIComponent('resource = "link-settings" sort by at desc limit 1')}`
    const { body } = await world.send({ method: 'GET', path, token })
    expect(body.data[0]).toMatchObject({ operation: 'create', after: { isDown: true, sourceId: a.id } })
  })

  it('deletes a link: both routers drop it, and it is back when it is dialed again', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    const id = await reportLink(a, b)
    expect((await send('DELETE', `/${id}`)).status).toBe(200)
    const fault = { subject: FaultSubject.LinkFault, id, iteration: 1 }
    expect(await takeFault(a)).toEqual(fault)
    expect(await takeFault(b)).toEqual(fault)
    expect((await send('GET', `/${id}`)).status).toBe(404)
    await reportLink(a, b, { id, iteration: 2 })
    expect(await readLink(id)).toMatchObject({ iteration: 2 })
  })

  it('deletes a router, and with it its links and what was set for them', async () => {
    const [a, b] = [await connect(await newRouter()), await connect(await newRouter())]
    const id = await reportLink(a, b)
    await send('PATCH', `/${id}`, { isDown: true })
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/edge-routers/${b.id}`, token })
    expect((await send('GET', `/${id}`)).status).toBe(404)
    const rows = await world.controller.store.db
      .selectFrom('link_settings')
      .select('id')
      .where('destinationId', '=', b.id)
      .execute()
    expect(rows).toEqual([])
  })
})

// The order of messages in the recording of release 1.6.5: routers R1, R2 and R4, of which two dial each other at once.
describe('as recorded', () => {
  it('a peer that is killed: the other end reports the loss, and the link is back by a later attempt', async () => {
    const [r1, second] = [await connect(await newRouter()), await newRouter()]
    const r2 = await connect(second, 'tls:127.0.0.1:21312')
    const id = await reportLink(r1, r2)
    settleLinks()
    await sendLatency(r1, id, 2.6)
    await r2.simulated.close()
    await expect.poll(async () => (await readLink(id)).state).toBe('unreachable')
    await sendFault(r1, { subject: FaultSubject.LinkFault, id, iteration: 1 })
    expect((await send('GET', `/${id}`)).status).toBe(404)
    const restarted = await connect(second, 'tls:127.0.0.1:21312')
    await reportLink(r1, restarted, { id, iteration: 3 })
    expect(await readLink(id)).toMatchObject({ iteration: 3, cost: 130_001, sourceLatency: null })
    await sendLatency(restarted, id, 1.4)
    expect(await readLink(id)).toMatchObject({ cost: 65_002 })
    // A report of the loss that is late.
    await sendFault(r1, { subject: FaultSubject.LinkFault, id, iteration: 1 })
    expect(await readLink(id)).toMatchObject({ iteration: 3 })
  })

  it('two routers that dial each other: the duplicate ends, and reports of it that follow change nothing', async () => {
    const [r2, r4] = [
      await connect(await newRouter(), 'tls:127.0.0.1:1'),
      await connect(await newRouter(), 'tls:127.0.0.1:2'),
    ]
    const duplicate = await reportLink(r2, r4, { iteration: 4 })
    const survivor = await reportLink(r4, r2)
    await sendFault(r2, { subject: FaultSubject.LinkDuplicate, id: duplicate, iteration: 4 })
    expect(await takeFault(r4)).toEqual({ subject: FaultSubject.LinkFault, id: duplicate, iteration: 4 })
    await sendFault(r4, { subject: FaultSubject.LinkDuplicate, id: duplicate, iteration: 4 })
    for (const router of [r2, r4]) {
      await sendFault(router, { subject: FaultSubject.LinkFault, id: duplicate, iteration: 4 })
      await sendFault(router, { subject: FaultSubject.LinkFault, id: 'never-reported', iteration: 1 })
    }
    settleLinks()
    expect(findPath(r2, r4)?.links.map(({ id }) => id)).toEqual([survivor])
    expect(r2.simulated.received.map(({ type }) => type)).not.toContain(1004)
  })

  it('a router that is disabled and enabled again reports its links by later attempts', async () => {
    const first = await newRouter()
    const [r1, r2] = [await connect(first), await connect(await newRouter(), 'tls:127.0.0.1:21312')]
    const id = await reportLink(r1, r2, { iteration: 5 })
    settleLinks()
    const change = (disabled: boolean) =>
      world.send({ method: 'PATCH', path: `${MANAGEMENT}/edge-routers/${r1.id}`, token, body: { disabled } })
    await change(true)
    await r1.simulated.closed
    expect(findPath(r1, r2)).toBeUndefined()
    await change(false)
    const again = await connect(first)
    expect(findPath(again, r2)).toBeUndefined()
    await reportLink(again, r2, { id, iteration: 7 })
    settleLinks()
    expect(findPath(again, r2)?.links.map((link) => link.id)).toEqual([id])
  })
})

describe('a router loses its connection', () => {
  it.each([
    ['too many links', { length: 10_001 }, { id: 'a' }],
    ['a link with an id that is too long', { length: 1 }, { id: 'a'.repeat(501) }],
    ['a link with an address that is too long', { length: 1 }, { id: 'a', dialAddress: 'a'.repeat(501) }],
  ])('for a report of %s', async (_name, length, values) => {
    const router = await connect(await newRouter())
    const links = Array.from(length, () => values)
    router.simulated.send(1035, toBinary(RouterLinksSchema, create(RouterLinksSchema, { links })))
    await router.simulated.closed
    expect(reasonOfDisconnection(log, router)).toMatch(/10001 links; at most \d+ are accepted|a text that is too long/)
  })
})
