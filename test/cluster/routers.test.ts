// Routers in a cluster: one controller has them, the others know of them, and another one takes them when it is gone.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, FABRIC, MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { findFreePort } from '../world/free-port.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { TestNetwork } from '../world/router/network.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 30_000, interval: 20 }
const TAKEOVER_MS = 20_000

let settings: Record<string, unknown>
/** The address at which each controller takes routers while it has them. */
let address: { url: string; rootPem: string }
let opened: ForwardingRouter[]
let closeLast: () => void

// After the cluster has closed.
afterEach(() => closeLast())
const world = useClusterPerTest(TestCluster)
beforeEach(async () => {
  const control = `127.0.0.1:${await findFreePort()}`
  const http = { address: '127.0.0.1:0', apis: ['client', 'management', 'fabric'], dialect: 'native' }
  settings = { listeners: [http, { address: control, apis: ['control'], shared: true }], 'control.shared': control }
  address = { url: `https://${control}`, rootPem: '' }
  opened = []
  closeLast = () => {}
})
afterEach(() => Promise.all(opened.map(({ wire }) => wire.close())))

async function open(name: string, others: Record<string, unknown> = {}): Promise<TestController> {
  const node = await world.cluster.open(name, { settings: { ...settings, ...others } })
  address = { ...address, rootPem: (await node.listen()).rootPem }
  await node.controller.membership.announce(node.system, {})
  return node
}

/** The first controller has the routers, the second one does not. */
async function openBoth(): Promise<[TestController, TestController]> {
  const first = await open('first')
  await expect.poll(() => first.controller.routers.presence?.isHere, SOON).toBe(true)
  return [first, await open('second')]
}

/** Connects a router as soon as a controller takes it. */
async function connect(enrolled: EnrolledRouter, earlier?: ForwardingRouter): Promise<ForwardingRouter> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const router = await ForwardingRouter.connect(address, enrolled, earlier)
      opened.push(router)
      return router
    } catch (error) {
      if (attempt === 500) throw error
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }
}

async function readRouter({ send, admin }: TestController, id: string) {
  const { body } = await send({ method: 'GET', path: `${MANAGEMENT}/edge-routers/${id}`, token: await admin() })
  return body.data
}

/** A service with a host at a router, and a circuit to it that a client dialed there. */
async function dial(node: TestController, router: ForwardingRouter) {
  const network = await TestNetwork.over(node, address)
  const serviceId = await network.service()
  await network.terminator(serviceId, router)
  const { circuitId } = await router.dial(await network.client(serviceId))
  expect(router.tables.has(circuitId)).toBe(true)
  return { network, serviceId, circuitId }
}

describe('routers that are connected to one controller of a cluster at a time', () => {
  it('reach the one controller that has them, at an address that only this one listens at', async () => {
    const [first, second] = await openBoth()
    const router = await connect(await enrolledRouter(first))
    expect(first.controller.routers.connected.listIds()).toEqual([router.id])
    expect(second.controller.routers.presence?.isHere).toBe(false)
  })

  it('are online at the controllers that do not have them, also at one that begins later', async () => {
    const [first, second] = await openBoth()
    const router = await connect(await enrolledRouter(first))
    await expect.poll(async () => (await readRouter(second, router.id)).isOnline, SOON).toBe(true)
    const third = await open('third')
    await expect.poll(async () => (await readRouter(third, router.id)).isOnline, SOON).toBe(true)
    expect((await readRouter(third, router.id)).versionInfo).toEqual((await readRouter(first, router.id)).versionInfo)
    await router.wire.close()
    await expect.poll(async () => (await readRouter(second, router.id)).isOnline, SOON).toBe(false)
    await expect.poll(async () => (await readRouter(third, router.id)).isOnline, SOON).toBe(false)
  })

  it('are in the sessions that clients open at the other controllers', async () => {
    const [first, second] = await openBoth()
    const router = await connect(await enrolledRouter(first))
    const network = await TestNetwork.over(second, address)
    const serviceId = await network.service()
    await expect.poll(async () => (await readRouter(second, router.id)).isOnline, SOON).toBe(true)
    const { token } = await second.signIn()
    const request = { method: 'POST', path: `${CLIENT}/sessions`, token, body: { serviceId, type: 'Dial' } }
    const { body } = await second.send(request)
    expect(body.data.edgeRouters).toMatchObject([{ id: router.id, isOnline: true }])
  })

  it('learn of sessions that begin at the other controllers', async () => {
    const [first, second] = await openBoth()
    const router = await connect(await enrolledRouter(first))
    const { network, serviceId } = await dial(second, router)
    expect((await router.dial(await network.client(serviceId))).circuitId).not.toBe('')
  })

  it('are asked about circuits at the controller that has them, which the others name', async () => {
    const [first, second] = await openBoth()
    const read = async ({ send, admin }: TestController) => {
      const { status, body } = await send({ method: 'GET', path: `${FABRIC}/circuits`, token: await admin() })
      return [status, body.error?.cause.message]
    }
    expect(await read(first)).toEqual([200, undefined])
    await expect.poll(() => second.controller.cluster?.nodeOfRouters, SOON).toBe('first')
    allowFaults(/ROUTERS_ELSEWHERE/)
    expect(await read(second)).toEqual([503, 'the controller first has the routers'])
  })

  it('keep their circuits when another controller takes them, which leaves those alone', async () => {
    const [first, second] = await openBoth()
    const enrolled = await enrolledRouter(first)
    const router = await connect(enrolled)
    const { network, serviceId, circuitId } = await dial(second, router)
    await world.cluster.stop(first)
    const again = await connect(enrolled, router)
    expect(second.controller.routers.connected.listIds()).toEqual([router.id])
    again.reportIdle({ [circuitId]: 1_000 })
    await expect.poll(() => second.controller.fabric.reports.inherited.list().map(({ id }) => id)).toEqual([circuitId])
    expect((await again.dial(await network.client(serviceId))).circuitId).not.toBe('')
    expect(again.unroutes).toEqual([])
  })

  it('keep their circuits when a controller loses them, and has them again', async () => {
    const { proxy, url } = await TcpProxy.before(world.cluster.url)
    closeLast = () => proxy.close()
    const first = await open('first', { 'cluster.database': url })
    await expect.poll(() => first.controller.routers.presence?.isHere, SOON).toBe(true)
    const second = await open('second')
    const enrolled = await enrolledRouter(first)
    const router = await connect(enrolled)
    const { circuitId } = await dial(first, router)
    allowFaults(/log of the cluster|duty|contact/)
    proxy.isHolding = true
    const moved = await connect(enrolled, router)
    expect([first.controller.fabric.circuits.size, second.controller.routers.connected.size]).toEqual([0, 1])
    proxy.isHolding = false
    // Connections begin anew, because their bytes of the time before are lost.
    proxy.breakConnections()
    for (const { controller, clock } of [first, second]) {
      clock.advance(120_000)
      controller.fabric.tick()
    }
    await world.cluster.stop(second)
    const again = await connect(enrolled, moved)
    expect(first.controller.routers.connected.size).toBe(1)
    again.reportIdle({ [circuitId]: 1_000 })
    await expect.poll(() => first.controller.fabric.reports.inherited.list().map(({ id }) => id)).toEqual([circuitId])
    expect([...moved.unroutes, ...again.unroutes]).toEqual([])
  })

  it('count as connected while they have time to reach the controller that takes them, and no longer', async () => {
    const [first, second] = await openBoth()
    const enrolled = await enrolledRouter(first)
    const router = await connect(enrolled)
    await expect.poll(async () => (await readRouter(second, router.id)).isOnline, SOON).toBe(true)
    await world.cluster.stop(first)
    await expect.poll(() => second.controller.routers.presence?.isHere, SOON).toBe(true)
    expect((await readRouter(second, router.id)).isOnline).toBe(true)
    second.clock.advance(TAKEOVER_MS)
    expect((await readRouter(second, router.id)).isOnline).toBe(false)
    const third = await open('third')
    await expect.poll(() => third.controller.routers.network.getPresence(router.id), SOON).toBe('offline')
  })
})
