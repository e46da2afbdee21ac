// Faults: links, routers and the controller are lost while circuits carry data. Circuits move where they can, and end cleanly elsewhere.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { FaultSubject } from '../../server/control-channel/messages/control_pb.ts'
import { type ForwardingRouter, type Links, trace } from '../world/router/forwarding-router.ts'
import { TestNetwork } from '../world/router/network.ts'

const REROUTE = 99_969_996

let network: TestNetwork

beforeAll(async () => {
  network = await TestNetwork.start()
})
afterAll(() => network.close())

/** A triangle: a and c are joined directly, and by way of b. */
async function openTriangle() {
  const [a, b, c] = [await network.router(), await network.router(), await network.router()]
  const [ac, ab, bc] = [network.link(a, c, 1), network.link(a, b, 5), network.link(b, c, 5)]
  const links: Links = new Map([
    [ac, [a, c]],
    [ab, [a, b]],
    [bc, [b, c]],
  ])
  const serviceId = await network.service()
  await network.terminator(serviceId, c)
  const client = await network.client(serviceId)
  const { circuitId, address } = await a.dial(client)
  const egress = c.routes.find((route) => route.circuitId === circuitId)!.egress!.address
  return { a, b, c, ac, ab, bc, links, serviceId, client, circuitId, address, egress }
}

const pathOf = (circuitId: string) => network.fabric.circuits.get(circuitId)?.path.routerIds

const isGone = (circuitId: string) => expect.poll(() => network.fabric.circuits.get(circuitId)).toBeUndefined()

const isOver = (circuitId: string, routers: readonly ForwardingRouter[]) =>
  expect.poll(() => pathOf(circuitId)).toEqual(routers.map(({ id }) => id))

describe('a link that fails', () => {
  it('moves its circuits to another path, and neither end notices', async () => {
    const { a, b, c, ac, ab, bc, links, circuitId, address, egress } = await openTriangle()
    expect(trace(a, circuitId, address, links)).toEqual([address, ac, egress])
    c.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    expect(trace(a, circuitId, address, links)).toEqual([address, ab, bc, egress])
    expect(trace(c, circuitId, egress, links)).toEqual([egress, bc, ab, address])
    const newRoutes = [a, b, c].map(({ routes }) => routes.at(-1)!)
    for (const route of newRoutes) {
      expect(route).toMatchObject({ circuitId, attempt: REROUTE, tags: {} })
      expect(route.egress).toBeUndefined()
    }
    expect([a, b, c].flatMap(({ unroutes }) => unroutes)).toEqual([])
    // The other end of the link is told.
    expect(a.faults).toMatchObject([{ subject: FaultSubject.LinkFault, id: ac }])
  })

  it('moves circuits back, and the routers that they leave drop them when no data comes any more', async () => {
    const { a, b, c, ac, ab, circuitId } = await openTriangle()
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    network.link(a, c)
    b.sendFault(FaultSubject.LinkFault, ab, 1)
    await isOver(circuitId, [a, c])
    await b.settle()
    expect(b.unroutes).toMatchObject([{ circuitId, now: false }])
    expect([a, c].flatMap(({ unroutes }) => unroutes)).toEqual([])
  })

  it('ends its circuits if there is no other path, at once', async () => {
    const { a, c, ac, ab, circuitId } = await openTriangle()
    a.sendFault(FaultSubject.LinkFault, ab, 1)
    await a.settle()
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isGone(circuitId)
    await Promise.all([a.settle(), c.settle()])
    for (const { unroutes } of [a, c]) expect(unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('does not end a circuit that is left to another controller while it moves', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    b.reply = () => 'silence'
    c.sendFault(FaultSubject.LinkFault, ac, 1)
    await expect.poll(() => b.withheld.length).toBe(1)
    network.fabric.leaveAll()
    b.sendResult(b.withheld[0]!)
    await Promise.all([a, b, c].map((router) => router.settle()))
    expect(pathOf(circuitId)).toBeUndefined()
    expect([a, b, c].flatMap(({ unroutes }) => unroutes)).toEqual([])
  })

  it('moves nothing if the router that reports it is not one of its ends', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    b.sendFault(FaultSubject.LinkFault, ac, 1)
    await b.settle()
    expect(pathOf(circuitId)).toEqual([a.id, c.id])
  })

  it('is left by its circuits, too, if an administrator sets it down', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    const { system, controller } = network.world
    const link = network.fabric.links.get(ac)!
    await controller.fabric.linkSettings.change(system, link, { isDown: true })
    await isOver(circuitId, [a, b, c])
  })
})

describe('a circuit that is being moved', () => {
  it('is moved by one route after the other, those between the ends first', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    const order: string[] = []
    for (const [name, router] of Object.entries({ a, b, c })) {
      router.reply = () => {
        order.push(name)
        return 'success'
      }
    }
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    expect(order).toEqual(['b', 'a', 'c'])
  })

  it('is not moved a second time meanwhile, but afterwards if something changed', async () => {
    const { a, b, c, ac, ab, circuitId } = await openTriangle()
    b.reply = () => 'silence'
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await expect.poll(() => b.withheld.length).toBe(1)
    network.link(a, c)
    a.sendFault(FaultSubject.ForwardFault, circuitId)
    a.sendFault(FaultSubject.LinkFault, ab, 1)
    await a.settle()
    expect(b.routes).toHaveLength(1)
    b.sendResult(b.withheld[0]!)
    await isOver(circuitId, [a, c])
  })

  it('ends if routers do not respond, twice', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    b.reply = () => 'silence'
    c.sendFault(FaultSubject.LinkFault, ac, 1)
    for (const attempt of [1, 2]) {
      await expect.poll(() => b.withheld.length).toBe(attempt)
      network.advance(10_000)
    }
    await isGone(circuitId)
    await Promise.all([a, c].map((router) => router.settle()))
    for (const { unroutes } of [a, c]) expect(unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('takes its new routers with it if it ends meanwhile', async () => {
    const { a, b, ac, circuitId } = await openTriangle()
    b.reply = () => 'silence'
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await expect.poll(() => b.withheld.length).toBe(1)
    a.sendFault(FaultSubject.IngressFault, circuitId)
    await isGone(circuitId)
    b.applyRoute(b.routes[0]!)
    b.sendResult(b.withheld[0]!)
    await b.settle()
    await b.settle()
    expect(b.tables.size).toBe(0)
  })
})

describe('data that a router cannot forward', () => {
  it('moves the circuits that it belongs to, and ends those that neither side knows', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    network.fabric.links.recordLatency(a.id, ac, 500_000_000)
    a.sendFault(FaultSubject.ForwardFault, `${circuitId} unknown-1 unknown-2`)
    await isOver(circuitId, [a, b, c])
    expect(a.unroutes).toMatchObject([
      { circuitId: 'unknown-1', now: true },
      { circuitId: 'unknown-2', now: true },
    ])
    a.sendFault(FaultSubject.UnknownOwnerForwardFault, 'unknown-3')
    await a.settle()
    expect(a.unroutes).toHaveLength(2)
  })
})

describe('a router that loses its connection to the controller', () => {
  it('keeps its circuits, because they carry data without the controller', async () => {
    const { a, b, c, circuitId } = await openTriangle()
    await c.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(c.id)).toBeUndefined()
    network.advance(30_000)
    const again = await network.reconnect(c.id, c)
    network.advance(40_000)
    await a.settle()
    expect(pathOf(circuitId)).toEqual([a.id, c.id])
    for (const { unroutes } of [a, b, again]) expect(unroutes).toEqual([])
  })

  it('loses those over links after a minute, and keeps those inside it', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    const inside = await network.service()
    await network.terminator(inside, c)
    const { circuitId: insideId } = await c.dial(await network.client(inside))
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    await c.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(c.id)).toBeUndefined()
    network.advance(59_999)
    await a.settle()
    expect(pathOf(circuitId)).toBeDefined()
    network.advance(1)
    await isGone(circuitId)
    await Promise.all([a.settle(), b.settle()])
    for (const { unroutes } of [a, b]) expect(unroutes).toMatchObject([{ circuitId, now: true }])
    expect(pathOf(insideId)).toEqual([c.id])
  })

  it('loses all that begin or end at it if it comes back as another process; others go around it', async () => {
    const { a, c, circuitId } = await openTriangle()
    await c.wire.close()
    await network.reconnect(c.id)
    await isGone(circuitId)
    await a.settle()
    expect(a.unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('is gone around at once if it was on the way, because it may be dead', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    network.link(a, c)
    await b.wire.close()
    await isOver(circuitId, [a, c])
  })

  it('keeps the circuits that it was on the way of if there is no other path, because it may work', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    await b.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(b.id)).toBeUndefined()
    await a.settle()
    expect(pathOf(circuitId)).toEqual([a.id, b.id, c.id])
    for (const { unroutes } of [a, c]) expect(unroutes).toEqual([])
  })

  it('is gone around if it was on the way, and is another process now', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    a.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    network.link(a, c)
    await b.wire.close()
    await network.reconnect(b.id)
    await isOver(circuitId, [a, c])
  })

  it('loses its circuits when it is deleted', async () => {
    const { a, c, circuitId } = await openTriangle()
    await network.manage.change('DELETE', `/edge-routers/${c.id}`)
    await isGone(circuitId)
    await a.settle()
    expect(a.unroutes).toMatchObject([{ circuitId, now: true }])
  })
})

describe('routers that the controller loses all at once', () => {
  /** Two paths from a to c: by way of b, which a circuit takes, and by way of d. */
  async function openDiamond() {
    const [a, b] = [await network.router(), await network.router()]
    const [c, d] = [await network.router(), await network.router()]
    for (const [from, to, latencyMs] of [
      [a, b, 1],
      [b, c, 1],
      [a, d, 50],
      [d, c, 50],
    ] as const)
      network.link(from, to, latencyMs)
    const serviceId = await network.service()
    await network.terminator(serviceId, c)
    const { circuitId } = await a.dial(await network.client(serviceId))
    expect(pathOf(circuitId)).toEqual([a.id, b.id, c.id])
    return { circuitId, routers: { a, b, c, d } }
  }

  it.each(['bacd', 'abcd', 'dcba', 'cbda'])(
    'keep a circuit over several of them, lost in the order %s',
    async (order) => {
      const { circuitId, routers } = await openDiamond()
      const { connected } = network.world.controller.routers
      const all = [...order].map((name) => routers[name as 'a'])
      for (const { id } of all) connected.get(id)!.connection.close('no contact')
      await Promise.all(all.map(({ wire }) => wire.closed))
      expect(connected.list().filter(({ id }) => all.some((one) => one.id === id))).toEqual([])
      for (const router of all) {
        const returned = await network.reconnect(router.id, router)
        await returned.settle()
        for (const { routes, unroutes } of [router, returned]) {
          expect(routes.filter(({ attempt }) => attempt === REROUTE)).toEqual([])
          expect(unroutes).toEqual([])
        }
      }
      expect(pathOf(circuitId)).toEqual([routers.a.id, routers.b.id, routers.c.id])
    },
  )
})

describe('a path that became cheaper', () => {
  it('is taken within a minute if it saves enough, and not if it saves little', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    // By way of b costs 2 links of 11, and one more router.
    network.fabric.links.recordLatency(a.id, ac, 34_000_000)
    network.advance(60_000)
    await a.settle()
    expect(pathOf(circuitId)).toEqual([a.id, c.id])
    network.fabric.links.recordLatency(a.id, ac, 60_000_000)
    network.advance(59_999)
    await a.settle()
    expect(pathOf(circuitId)).toEqual([a.id, c.id])
    network.advance(1)
    await isOver(circuitId, [a, b, c])
  })

  it('is not taken if one of its routers refuses, and the circuit stays', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    b.reply = () => ({ code: 1, text: 'refused' })
    network.fabric.links.recordLatency(a.id, ac, 900_000_000)
    network.advance(60_000)
    await expect.poll(() => b.routes.length).toBe(1)
    await Promise.all([a, b, c].map((router) => router.settle()))
    expect(pathOf(circuitId)).toEqual([a.id, c.id])
    expect([a, c].flatMap(({ unroutes }) => unroutes)).toEqual([])
  })

  it('is taken by few circuits at a time', async () => {
    const { a, b, c, ac, client } = await openTriangle()
    for (let n = 0; n < 9; n += 1) await a.dial(client)
    network.fabric.links.recordLatency(a.id, ac, 900_000_000)
    const countMoved = () => network.fabric.circuits.list({ sessionId: client.sessionId, routerId: b.id }).length
    network.advance(60_000)
    await expect.poll(countMoved).toBe(1)
    await Promise.all([a, b, c].map((router) => router.settle()))
    expect(countMoved()).toBe(1)
  })
})

describe('after a restart of the controller', () => {
  let shared: TestNetwork
  beforeEach(async () => {
    shared = network
    network = await TestNetwork.start()
  })
  afterEach(async () => {
    await network.close()
    network = shared
  })

  async function restart(values: Record<string, unknown> = {}) {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const serviceId = await network.service(values)
    await network.terminator(serviceId, b)
    const client = await network.client(serviceId)
    const { circuitId } = await a.dial(client)
    const other = await network.router()
    await network.restart()
    const routers = [await network.reconnect(a.id, a), await network.reconnect(b.id, b)] as const
    return { routers, client, circuitId, reconnectOther: () => network.reconnect(other.id, other) }
  }

  it('circuits over several routers are on their paths, though there was another one', async () => {
    const { a, b, c, ac, circuitId } = await openTriangle()
    c.sendFault(FaultSubject.LinkFault, ac, 1)
    await isOver(circuitId, [a, b, c])
    network.link(a, c)
    const counts = () => [a, b, c].map(({ routes, unroutes }) => [routes.length, unroutes.length])
    const before = counts()
    await network.restart()
    expect(counts()).toEqual(before)
    for (const router of [a, b, c]) {
      const returned = await network.reconnect(router.id, router)
      await returned.settle()
      expect([returned.routes, returned.unroutes]).toEqual([[], []])
    }
  })

  const listInherited = () => network.fabric.reports.inherited.list().map(({ id }) => id)

  it('circuits of the earlier process go on, and are listed once a router reports them', async () => {
    const { routers, client, circuitId } = await restart()
    const [a, b] = routers
    for (const router of routers) {
      router.reportIdle({ [circuitId]: 3_600_000 })
      await router.settle()
      expect(router.unroutes).toEqual([])
    }
    expect(network.fabric.reports.inherited.list()).toMatchObject([{ id: circuitId, routerIds: [a.id, b.id] }])
    network.link(a, b)
    expect((await a.dial(client)).type).toBe(20219)
  })

  it('such a circuit ends when one of its ends does, also at routers that report it only later', async () => {
    const { routers, circuitId } = await restart()
    const [a, b] = routers
    a.reportIdle({ [circuitId]: 61_000 })
    a.sendFault(FaultSubject.IngressFault, circuitId)
    await a.settle()
    expect(a.unroutes).toMatchObject([{ circuitId, now: false }])
    expect(listInherited()).toEqual([])
    b.reportIdle({ [circuitId]: 61_000 })
    await b.settle()
    expect(b.unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it.each([
    ['one of its ends closed the connection', FaultSubject.IngressFault],
    ['its terminator closed the connection', FaultSubject.EgressFault],
    ['it cannot forward the data', FaultSubject.ForwardFault],
  ])('such a circuit goes on if a router that it does not pass says that %s', async (_what, subject) => {
    const { routers, circuitId, reconnectOther } = await restart()
    const stranger = await reconnectOther()
    stranger.reportIdle({ [circuitId]: 61_000 })
    stranger.sendFault(subject, circuitId)
    await stranger.settle()
    expect(stranger.unroutes).toMatchObject([{ circuitId }])
    for (const router of routers) {
      router.reportIdle({ [circuitId]: 61_000 })
      await router.settle()
      expect(router.unroutes).toEqual([])
    }
    const routerIds = routers.map(({ id }) => id)
    expect(network.fabric.reports.inherited.list()).toMatchObject([{ id: circuitId, routerIds }])
  })

  it('such a circuit ends when a router cannot forward its data', async () => {
    const { routers, circuitId } = await restart()
    const [a, b] = routers
    b.reportIdle({ [circuitId]: 61_000 })
    await b.settle()
    a.sendFault(FaultSubject.ForwardFault, circuitId)
    await Promise.all(routers.map((router) => router.settle()))
    for (const { unroutes } of routers) expect(unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('such a circuit ends when it has been idle for longer than its service permits', async () => {
    const { routers, circuitId } = await restart({ maxIdleTimeMillis: 120_000 })
    const [a] = routers
    a.reportIdle({ [circuitId]: 120_000 })
    await a.settle()
    expect(a.unroutes).toEqual([])
    a.reportIdle({ [circuitId]: 121_000 })
    await a.settle()
    expect(a.unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('such a circuit ends after a day without data in any case', async () => {
    const { routers, circuitId } = await restart()
    const [a] = routers
    a.reportIdle({ [circuitId]: 24 * 3_600_000 + 1 })
    await a.settle()
    expect(a.unroutes).toMatchObject([{ circuitId, now: true }])
  })
})
