// Routers of release 2 in a cluster: they are connected to every controller, and each of them routes.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'
import {
  PeerState,
  PeerStateChangesSchema,
  UpdateCtrlAddressesSchema,
} from '../../server/control-channel/messages/control_pb.ts'
import { ConnectEventsSchema } from '../../server/control-channel/messages/edge_pb.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { FollowingRouter } from '../world/router/following-router.ts'
import { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { TestNetwork } from '../world/router/network.ts'
import { letPass, RoutedCluster, waitUntilAt, waitUntilEqual } from '../world/router/routed-cluster.ts'
import { groupedHeaders, SimulatedRouter } from '../world/router/simulated-router.ts'
import type { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const SESSION_GRACE_MS = 10_000
const LEASE_MS = 3_000
const ROUTER_GRACE_MS = 60_000
const API_SESSIONS_ADDED = 20200
const API_SESSIONS_REMOVED = 20202

const world = useClusterPerTest(RoutedCluster)

async function takeList(router: ForwardingRouter) {
  const { addresses, index, isLeader, controllers } = fromBinary(
    UpdateCtrlAddressesSchema,
    (await router.wire.takeType(1037)).body,
  )
  const entries = controllers.map(({ id, endpoints }) => [id, ...endpoints.map(({ address }) => address)])
  return { addresses, index: Number(index), isLeader, entries }
}

const idOf = (router: ForwardingRouter) => router.hello.headers.get(8)?.toString()

/** Resolves with the version of another router when the router is told that this one has a state. */
async function takePeer(router: ForwardingRouter, peerId: string, state: PeerState) {
  for (;;) {
    const { changes } = fromBinary(PeerStateChangesSchema, (await router.wire.takeType(1050)).body)
    const change = changes.findLast((one) => one.id === peerId && one.state === state)
    if (change) return change.version
  }
}

async function isOnline({ send, admin }: TestController, id: string): Promise<boolean> {
  const { body } = await send({ method: 'GET', path: `${MANAGEMENT}/edge-routers/${id}`, token: await admin() })
  return body.data.isOnline
}

/** Connections begin anew, because their bytes of the time before are lost. */
function resume(proxy: TcpProxy): void {
  proxy.isHolding = false
  proxy.breakConnections()
}

/** The controllers that a router is connected to, as its record says. */
async function readControllers({ send, admin }: TestController, id: string): Promise<string[]> {
  const { body } = await send({ method: 'GET', path: `${MANAGEMENT}/routers/${id}`, token: await admin() })
  return body.data.controllers
}

describe('the list of controllers', () => {
  it('is the same from each of them, which has an id of its own', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const [one, other] = [router.at('first'), router.at('second')]
    const ids = [first, second].map(({ controller }) => controller.membership.ownId)
    expect([idOf(one), idOf(other)]).toEqual(ids)
    const list = await takeList(one)
    const urls = ['first', 'second'].map((name) => world.cluster.addresses.get(name)!.url.replace('https://', 'tls:'))
    expect(list).toMatchObject({ addresses: urls, isLeader: true })
    expect(list.entries).toEqual([
      [ids[0], urls[0]],
      [ids[1], urls[1]],
    ])
    expect(await takeList(other)).toEqual(list)
  })

  it('has a greater index once another controller begins, and keeps one that has stopped', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const before = await takeList(router.at('first'))
    await world.cluster.stop(second)
    const third = await world.cluster.open('third')
    let after = await takeList(router.at('first'))
    // The same list comes again if the other controller has seemed silent for a moment.
    while (after.index === before.index) after = await takeList(router.at('first'))
    expect(after.index).toBeGreaterThan(before.index)
    expect(after.entries.map(([id]) => id)).toEqual([
      ...before.entries.map(([id]) => id),
      third.controller.membership.ownId,
    ])
  })

  it('is sent again to a router that asks for it', async () => {
    const [first] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first')
    const list = await takeList(router.at('first'))
    router.at('first').wire.send(1055)
    expect(await takeList(router.at('first'))).toEqual(list)
  })

  it('does not change when a controller begins again', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first')
    const list = await takeList(router.at('first'))
    await second.controller.membership.announce(second.system, {})
    router.at('first').wire.send(1055)
    expect(await takeList(router.at('first'))).toEqual(list)
  })

  it('is all that a router learns at the address that leads to all, from a controller that is not in it', async () => {
    const [first] = await world.cluster.openBoth()
    const enrolled = await enrolledRouter(first)
    const { rootPem } = world.cluster.addresses.get('first')!
    const wire = await SimulatedRouter.open({ url: `https://127.0.0.1:${world.cluster.shared}`, rootPem, ...enrolled })
    wire.introduce(enrolled.id, groupedHeaders())
    const id = (await wire.takeType(2)).headers.get(8)?.toString()
    const { controllers } = fromBinary(UpdateCtrlAddressesSchema, (await wire.takeType(1037)).body)
    expect(controllers.map((one) => one.id)).not.toContain(id)
    expect(controllers).toHaveLength(2)
    expect(first.controller.routers.connected.size).toBe(0)
    await wire.close()
  })

  it('is not told to routers of release 1, which one controller takes, at either of its addresses', async () => {
    const [first, second] = await world.cluster.openBoth()
    const enrolled = await enrolledRouter(first)
    await waitUntilEqual(first, second)
    await expect(ForwardingRouter.connect(world.cluster.addresses.get('second')!, enrolled)).rejects.toThrow(
      'the connection ended',
    )
    const router = await ForwardingRouter.connect(world.cluster.addresses.get('first')!, enrolled)
    await router.settle()
    expect(router.wire.received.map(({ type }) => type)).not.toContain(1037)
    await router.wire.close()
    await expect.poll(() => first.controller.routers.connected.size, SOON).toBe(0)
    const url = `https://127.0.0.1:${world.cluster.shared}`
    const again = await ForwardingRouter.connect({ ...world.cluster.addresses.get('first')!, url }, enrolled)
    expect(first.controller.routers.connected.listIds()).toEqual([enrolled.id])
    await again.wire.close()
  })

  it('has each address once: a controller does not begin at the address of one that runs', async () => {
    const [first, second] = await world.cluster.openBoth()
    const { config } = first.controller
    const own = config['control.advertise']
    const third = await world.cluster.cluster.open('third', {
      settings: { 'control.advertise': own, listeners: config.listeners, 'control.shared': config['control.shared'] },
    })
    await expect(third.controller.membership.announce(third.system, {})).rejects.toThrow(
      /routers reach the controller first/,
    )
    await world.cluster.stop(first)
    await expect
      .poll(
        () =>
          third.controller.membership.announce(third.system, {}).then(
            () => true,
            () => false,
          ),
        SOON,
      )
      .toBe(true)
    await waitUntilEqual(third, second)
    expect(second.controller.routers.controllers.size).toBe(2)
  })
})

it('a controller tells clients that it is one of several together with OpenID Connect alone', async () => {
  const node = await world.cluster.open('first', { 'oidc.announce': 'always' })
  const { body } = await node.send({ method: 'GET', path: '/version' })
  expect(body.data.capabilities).toEqual(['OIDC_AUTH', 'HA_CONTROLLER'])
  const other = await world.cluster.cluster.open('second', { settings: { 'oidc.announce': 'never' } })
  expect((await other.send({ method: 'GET', path: '/version' })).body.data.capabilities).toEqual([])
})

describe('a router of release 2', () => {
  it('is online as long as any controller has it', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    await waitUntilAt(router, first, second)
    expect(await readControllers(second, router.id)).toEqual(['first', 'second'])
    await router.disconnect('first')
    await expect.poll(() => first.controller.routers.connected.size, SOON).toBe(0)
    expect(await isOnline(first, router.id)).toBe(true)
    await router.disconnect('second')
    for (const node of [first, second]) await expect.poll(() => isOnline(node, router.id), SOON).toBe(false)
  })

  it('is shown with the addresses that it told another controller, until it tells them here', async () => {
    const [first, second] = await world.cluster.openBoth()
    const { id } = await world.cluster.router(first, 'first', 'second')
    const supportedProtocols = { tls: 'tls://router.example.com:3022' }
    second.controller.routers.connected.get(id)?.describeEdge({ hostname: 'router.example.com', supportedProtocols })
    const read = async () => {
      const path = `${MANAGEMENT}/edge-routers/${id}`
      return (await first.send({ method: 'GET', path, token: await first.admin() })).body.data
    }
    await expect.poll(read, SOON).toMatchObject({ isOnline: true, hostname: 'router.example.com', supportedProtocols })
  })

  it('learns of routers that other controllers have', async () => {
    const [first] = await world.cluster.openBoth()
    const [one, other] = [await world.cluster.router(first, 'first'), await world.cluster.router(first, 'second')]
    expect(await takePeer(one.at('first'), other.id, PeerState.Healthy)).toBe('v2.0.3')
    expect(await takePeer(other.at('second'), one.id, PeerState.Healthy)).toBe('v2.0.3')
    await one.disconnect('first')
    expect(await takePeer(other.at('second'), one.id, PeerState.Unhealthy)).toBe('')
  })

  it('gets circuits from each controller', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    await waitUntilEqual(first, second)
    for (const name of ['first', 'second']) {
      const { circuitId } = await router.at(name).dial(await network.client(serviceId))
      expect(router.tables.has(circuitId)).toBe(true)
    }
    for (const { controller } of [first, second]) expect(controller.fabric.circuits.size).toBe(1)
  })

  it('is told by each controller to log the connections of an identity, whichever of them was asked to trace it', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    const client = await network.client(serviceId)
    const trace = async ({ send, admin }: TestController, body: object) => {
      const path = `${MANAGEMENT}/identities/${client.identityId}/trace`
      expect((await send({ method: 'PUT', path, body, token: await admin() })).status).toBe(200)
      await waitUntilEqual(first, second)
    }
    /** The ids of the traces that the router is told by each controller. */
    const dialAtEach = async () => {
      const traceIds: unknown[] = []
      for (const channel of [router.at('first'), router.at('second')]) {
        const { circuitId } = await channel.dial(client)
        traceIds.push(channel.routes.find((route) => route.circuitId === circuitId)?.context?.fields.traceId)
      }
      return traceIds
    }
    await trace(first, { enabled: true, duration: '10m', traceId: 'why' })
    expect(await dialAtEach()).toEqual(['why', 'why'])
    await trace(second, { enabled: false })
    expect(await dialAtEach()).toEqual([undefined, undefined])
  })

  it('is not used for a dial by a controller that it is not connected to, which says who has it', async () => {
    const [first, second] = await world.cluster.openBoth()
    const [router, other] = [
      await world.cluster.router(first, 'first', 'second'),
      await world.cluster.router(first, 'first'),
    ]
    const { network, serviceId } = await world.cluster.host(first, other)
    await waitUntilEqual(first, second)
    await expect.poll(() => second.controller.routers.presence?.findRouter(other.id), SOON).toBeDefined()
    const refused = await router.at('second').dial(await network.client(serviceId))
    expect(refused.text).toContain('first')
    expect(refused.circuitId).toBe('')
  })

  it('is asked for its terminators, and told about API sessions, by the controller that leads', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    await router.at('first').wire.takeType(API_SESSIONS_ADDED)
    const { serviceId, network } = await world.cluster.host(first, router)
    await waitUntilEqual(first, second)
    for (const node of [first, second]) {
      await letPass(node, 40_000)
      node.controller.fabric.tick()
    }
    await router.at('first').wire.takeType(1041)
    await network.client(serviceId)
    await router.at('first').wire.takeType(API_SESSIONS_ADDED)
    await waitUntilEqual(first, second)
    await router.at('second').settle()
    const types = router.at('second').wire.received.map(({ type }) => type)
    expect(types).not.toContain(1041)
    expect(types).not.toContain(API_SESSIONS_ADDED)
    await world.cluster.stop(first)
    await router.at('second').wire.takeType(API_SESSIONS_ADDED)
  })

  it('closes the connections of API sessions for a controller that begins to lead, before it has said which it has', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { id: identityId, token } = await first.signIn({ name: 'connected' })
    const events = [{ identityId, isConnected: true }]
    const body = toBinary(ConnectEventsSchema, create(ConnectEventsSchema, { events, fullState: true }))
    router.at('first').wire.send(20415, body)
    const getStatus = () => second.controller.routers.presence?.getConnectionStatus(identityId)
    await expect.poll(getStatus, SOON).toBe('online')
    await world.cluster.stop(first)
    const { body: removed } = await router.at('second').wire.takeType(API_SESSIONS_REMOVED)
    expect(removed.toString('latin1')).toContain(token)
  })

  it('continues with its index of the data model at another controller', async () => {
    const [first, second] = await world.cluster.openBoth()
    const enrolled = await enrolledRouter(first)
    const before = await FollowingRouter.connect(world.cluster.addresses.get('first')!, enrolled)
    const network = await TestNetwork.over(first, world.cluster.addresses.get('first')!)
    before.subscribe()
    await before.reach(first.controller.routers.model.index)
    await network.service()
    await before.reach(first.controller.routers.model.index)
    await before.wire.close()
    await waitUntilEqual(first, second)
    const after = await FollowingRouter.connect(world.cluster.addresses.get('second')!, enrolled, before.replica)
    after.subscribe()
    await network.service()
    await after.reach(first.controller.routers.model.index)
    expect([after.states, after.sets]).toEqual([0, ['applied']])
    expect(after.replica.faults).toEqual([])
    await after.wire.close()
  })

  it('is sent nothing again by another controller while the model is as it was when the first router followed it', async () => {
    const [first, second] = await world.cluster.openBoth()
    const enrolled = await enrolledRouter(first)
    const before = await FollowingRouter.connect(world.cluster.addresses.get('first')!, enrolled)
    before.subscribe()
    await before.reach(1)
    await before.wire.close()
    await waitUntilEqual(first, second)
    const { index } = before.replica
    const after = await FollowingRouter.connect(world.cluster.addresses.get('second')!, enrolled, before.replica)
    after.subscribe()
    const network = await TestNetwork.over(first, world.cluster.addresses.get('first')!)
    await network.service()
    await after.reach(index + 1)
    await after.reach(first.controller.routers.model.index)
    expect(after.states).toBe(0)
    expect(new Set(after.sets)).toEqual(new Set(['applied']))
    await after.wire.close()
  })

  it('lacks nothing at a controller that is not the one whose data model it follows', async () => {
    const [first, second] = await world.cluster.openBoth()
    const enrolled = await enrolledRouter(first)
    await waitUntilEqual(first, second)
    const [here, elsewhere] = [
      await FollowingRouter.connect(world.cluster.addresses.get('first')!, enrolled),
      await FollowingRouter.connect(world.cluster.addresses.get('second')!, enrolled),
    ]
    const read = async () => {
      const path = `${MANAGEMENT}/routers/${enrolled.id}`
      const { body } = await second.send({ method: 'GET', path, token: await second.admin() })
      return body.data.dataModel.mode
    }
    expect(await read()).toBe('waiting')

    here.subscribe()

    await here.reach(first.controller.routers.model.index)
    await expect.poll(read, SOON).toBe('following')
    for (const { wire } of [here, elsewhere]) await wire.close()
  })

  it('loses its connection to a controller that has no contact with the others, and keeps the circuits', async () => {
    const first = await world.cluster.open('first')
    const { node: second, proxy } = await world.cluster.openBehindProxy('second')
    const [router, hosting] = [
      await world.cluster.router(first, 'first', 'second'),
      await world.cluster.router(first, 'first', 'second'),
    ]
    await waitUntilAt(router, first, second)
    await waitUntilEqual(first, second)
    const network = await TestNetwork.over(second, world.cluster.addresses.get('second')!)
    network.link(router.at('second'), hosting.at('second'))
    const serviceId = await network.service()
    await network.terminator(serviceId, hosting.at('second'))
    const { circuitId } = await router.at('second').dial(await network.client(serviceId))
    const { closed } = router.at('second').wire
    allowFaults(/log of the cluster|duty|contact|routers are connected/)
    proxy.isHolding = true
    second.clock.advance(LEASE_MS)
    await closed
    second.clock.advance(2 * ROUTER_GRACE_MS)
    second.controller.fabric.tick()
    resume(proxy)
    await router.connect('second', world.cluster.addresses.get('second')!)
    second.controller.fabric.tick()
    expect(second.controller.fabric.circuits.get(circuitId)).toBeDefined()
    expect(router.unroutedIds).toEqual([])
  })
})

describe('a dial whose right another controller has revoked', () => {
  it('is refused once the lease has ended by a controller without contact with the others, and from then on', async () => {
    const first = await world.cluster.open('first')
    const { node: second, proxy } = await world.cluster.openBehindProxy('second')
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    const client = await network.client(serviceId)
    await waitUntilAt(router, first, second)
    await waitUntilEqual(first, second)
    expect((await router.at('second').dial(client)).circuitId).not.toBe('')
    allowFaults(/log of the cluster|duty|contact|routers are connected/)
    proxy.isHolding = true
    for (const { id } of await network.manage.get('/service-policies'))
      await network.manage.change('DELETE', `/service-policies/${id}`)
    // At the same moment as the lease ends, before the connection of the router does.
    second.clock.advance(LEASE_MS)
    const outcome = await router
      .at('second')
      .dial(client)
      .then(
        ({ circuitId }) => circuitId,
        () => '',
      )
    expect(outcome).toBe('')
    await router.at('second').wire.closed
    resume(proxy)
    await router.connect('second', world.cluster.addresses.get('second')!)
    expect(await router.at('second').dial(client)).toMatchObject({ type: 20002, circuitId: '' })
    expect((await router.at('first').dial(client)).circuitId).toBe('')
  })
})

describe('a circuit', () => {
  it('belongs to the controller that created it: others leave it alone while that one runs, and let it go on after', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    const { circuitId } = await router.at('first').dial(await network.client(serviceId))
    router.at('second').reportIdle({ [circuitId]: 1_000 })
    await router.at('second').settle()
    expect(second.controller.fabric.reports.inherited.list()).toEqual([])
    await world.cluster.stop(first)
    await expect.poll(() => second.controller.cluster?.listLiveNames(), SOON).toEqual(['second'])
    router.at('second').reportIdle({ [circuitId]: 1_000 })
    await router.at('second').settle()
    expect(second.controller.fabric.reports.inherited.list().map(({ id }) => id)).toEqual([circuitId])
    expect(router.unroutedIds).toEqual([])
    expect(router.tables.has(circuitId)).toBe(true)
  })

  it('goes on when its controller gives up its routers to be stopped', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    await waitUntilEqual(first, second)
    const { circuitId } = await router.at('first').dial(await network.client(serviceId))
    await first.controller.cluster!.nodes.drain('first', true)
    await router.at('first').wire.closed
    await expect.poll(() => second.controller.routers.presence?.isHere, SOON).toBe(true)
    first.clock.advance(10 * ROUTER_GRACE_MS)
    first.controller.fabric.tick()
    await first.controller.cluster!.nodes.drain('first', false)
    const again = await router.connect('first', world.cluster.addresses.get('first')!)
    again.reportIdle({ [circuitId]: 1_000 })
    await again.settle()
    expect(router.unroutedIds).toEqual([])
    expect(router.tables.has(circuitId)).toBe(true)
  })

  it('ends when a change at another controller takes away its right', async () => {
    const [first, second] = await world.cluster.openBoth()
    const router = await world.cluster.router(first, 'first', 'second')
    const { network, serviceId } = await world.cluster.host(first, router)
    await waitUntilEqual(first, second)
    const created = [
      await router.at('first').dial(await network.client(serviceId)),
      await router.at('second').dial(await network.client(serviceId)),
    ]
    const { body } = await second.send({
      method: 'GET',
      path: `${MANAGEMENT}/service-policies?filter=${encodeURIComponent('type = "Dial"')}`,
      token: await second.admin(),
    })
    for (const { id } of body.data)
      await second.send({ method: 'DELETE', path: `${MANAGEMENT}/service-policies/${id}`, token: await second.admin() })
    await waitUntilEqual(first, second)
    for (const node of [first, second]) {
      await letPass(node, SESSION_GRACE_MS)
      node.controller.fabric.tick()
    }
    await expect
      .poll(() => router.unroutedIds.toSorted(), SOON)
      .toEqual(created.map(({ circuitId }) => circuitId).toSorted())
  })
})
