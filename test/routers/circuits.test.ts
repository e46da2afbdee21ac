// Circuits: who may dial, which router does what, what happens if routers fail, are late or silent, and how circuits end.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { DestType, FaultSubject } from '../../server/control-channel/messages/control_pb.ts'
import { areTokensSigned } from '../world/controller.ts'
import { type ForwardingRouter, type Links, trace } from '../world/router/forwarding-router.ts'
import { TestNetwork } from '../world/router/network.ts'

let network: TestNetwork

beforeAll(async () => {
  network = await TestNetwork.start()
})
afterAll(() => network.close())

/** Gives the tests of a group networks of their own, because they change policies. */
function useOwnNetworks(): void {
  let shared: TestNetwork
  beforeEach(async () => {
    shared = network
    network = await TestNetwork.start()
  })
  afterEach(async () => {
    await network.close()
    network = shared
  })
}

const GENERIC = { code: 0, text: 'the host is not there' }
const CLIENT_KEY = Buffer.alloc(32, 7)
const HOST_KEY = Buffer.alloc(32, 9)

/** A service with one terminator at the router, and a client of it. */
async function hosted(router: ForwardingRouter, service: object = {}, terminator: Record<string, unknown> = {}) {
  const serviceId = await network.service({ ...service })
  const terminatorId = await network.terminator(serviceId, router, terminator)
  return { serviceId, terminatorId, client: await network.client(serviceId) }
}

const record = async (path: string) => network.manage.get(path)

const countCircuits = (serviceId: string) => network.fabric.circuits.count('serviceId', serviceId)

describe('a dial over one router', () => {
  it('opens a circuit that carries data both ways', async () => {
    const router = await network.router()
    const { serviceId, terminatorId, client } = await hosted(router)
    const response = await router.dial(client)
    expect(response.type).toBe(20219)
    const [route] = router.routes
    expect(router.routes).toHaveLength(1)
    expect(route).toMatchObject({ circuitId: response.circuitId, attempt: 0, egress: { binding: 'edge' } })
    const egress = route!.egress!.address
    expect(trace(router, response.circuitId, response.address)).toEqual([response.address, egress])
    expect(trace(router, response.circuitId, egress)).toEqual([egress, response.address])
    expect(route!.forwards.map(({ dstType }) => dstType)).toEqual([DestType.End, DestType.Start])
    const circuit = network.fabric.circuits.get(response.circuitId)!
    expect(circuit).toMatchObject({ serviceId, terminatorId, clientId: client.identityId, sessionId: client.sessionId })
    expect(response.tags).toEqual({ serviceId, clientId: client.identityId, hostId: circuit.hostId })
    expect(route!.tags).toEqual(response.tags)
    expect(Number(route!.timeout)).toBe(10_000_000_000)
  })

  it('opens a hundred circuits at once, though the router that dials is the one that has to respond to their routes', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = () => 'silence'
    const dials = Array.from({ length: 100 }, () => router.dial(client))
    await expect.poll(() => router.routes.length).toBe(100)
    await router.settle()
    for (const message of router.withheld) router.sendResult(message)
    expect((await Promise.all(dials)).map(({ type }) => type)).toEqual(dials.map(() => 20219))
  })

  it('addresses the ends of each circuit by names of their own', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    const [one, two] = [await router.dial(client), await router.dial(client)]
    const addresses = [one, two].flatMap(({ circuitId, address }) => [
      circuitId,
      address,
      router.routes.find((route) => route.circuitId === circuitId)!.egress!.address,
    ])
    expect(new Set(addresses).size).toBe(6)
    for (const address of addresses) expect(address.length).toBeGreaterThanOrEqual(16)
  })

  it('tells the host what the client says, and the client what the host said when it bound and for this circuit', async () => {
    const router = await network.router()
    router.hostData = new Map([
      [1003, HOST_KEY],
      [1110, Buffer.from('10.0.0.1:1')],
      [1111, Buffer.from('10.0.0.1:2')],
    ])
    const peerData = { 1003: Buffer.alloc(32, 1).toString('base64'), 1011: Buffer.from('app').toString('base64') }
    const { client } = await hosted(router, {}, { peerData })
    const toBeSent = new Map([
      [1003, CLIENT_KEY],
      [1008, Buffer.from('laptop')],
    ])
    const response = await router.dial(client, { peerData: toBeSent })
    const toText = (entries: Iterable<readonly [number | string, Uint8Array]>) =>
      Object.fromEntries(Array.from(entries, ([id, value]) => [id, Buffer.from(value).toString()]))
    const toHost = router.routes[0]!.egress!.peerData
    expect(toText(Object.entries(toHost))).toEqual({ 1003: CLIENT_KEY.toString(), 1008: 'laptop' })
    expect(toText(response.peerData)).toEqual({ 1003: HOST_KEY.toString(), 1011: 'app' })
  })

  it('shows the path of the session, and what its circuits add to the cost of the terminator', async () => {
    const router = await network.router()
    const { terminatorId, client } = await hosted(router)
    const { circuitId } = await router.dial(client)
    expect(await record(`/sessions/${client.sessionId}/route-path`)).toEqual({ routePath: [router.id] })
    expect((await record(`/terminators/${terminatorId}`)).dynamicCost).toBe(2)
    router.sendFault(FaultSubject.IngressFault, circuitId)
    await router.settle()
    expect(await record(`/sessions/${client.sessionId}/route-path`)).toEqual({ routePath: [] })
    expect((await record(`/terminators/${terminatorId}`)).dynamicCost).toBe(0)
  })

  it('reaches the terminators of an instance only by its id, and others only without one', async () => {
    const router = await network.router()
    const { serviceId, terminatorId, client } = await hosted(router)
    const named = await network.terminator(serviceId, router, { identity: 'printer-1' })
    const { circuitId, tags } = await router.dial(client, { instanceId: 'printer-1' })
    expect(network.fabric.circuits.get(circuitId)?.terminatorId).toBe(named)
    expect(tags.serviceId).toBe(`printer-1@${serviceId}`)
    const plain = await router.dial(client)
    expect(network.fabric.circuits.get(plain.circuitId)?.terminatorId).toBe(terminatorId)
    expect(await router.dial(client, { instanceId: 'printer-2' })).toMatchObject({ type: 20002, code: 1 })
  })
})

describe('a dial over several routers', () => {
  it('opens a circuit whose routers hand data on over links, both ways', async () => {
    const [a, b, c] = [await network.router(), await network.router(), await network.router()]
    const [ab, bc] = [network.link(a, b), network.link(c, b)]
    const links: Links = new Map([
      [ab, [a, b]],
      [bc, [b, c]],
    ])
    const { client } = await hosted(c)
    const { circuitId, address } = await a.dial(client)
    expect(network.fabric.circuits.get(circuitId)?.path.routerIds).toEqual([a.id, b.id, c.id])
    const egress = c.routes[0]!.egress!.address
    expect(trace(a, circuitId, address, links)).toEqual([address, ab, bc, egress])
    expect(trace(c, circuitId, egress, links)).toEqual([egress, bc, ab, address])
    expect([a, b].map(({ routes }) => routes[0]!.egress)).toEqual([undefined, undefined])
  })

  it('waits for all results, in whatever order they come', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client } = await hosted(b)
    for (const router of [a, b]) router.reply = () => 'silence'
    const sequence = a.sendDial(client)
    await expect.poll(() => a.withheld.length + b.withheld.length).toBe(2)
    b.sendResult(b.withheld[0]!)
    await b.settle()
    await a.settle()
    expect(a.wire.received.filter(({ type }) => type === 20219 || type === 20002)).toEqual([])
    a.sendResult(a.withheld[0]!)
    expect((await a.takeDialResponse(sequence)).type).toBe(20219)
  })
})

describe('a dial is refused', () => {
  useOwnNetworks()

  it('with code 3 for a session that does not exist, or has ended', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    expect(await router.dial({ ...client, token: 'nonsense' })).toMatchObject({ type: 20002, code: 3 })
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
    expect(router.routes).toEqual([])
  })

  it('with code 2 if the client is connected by another API session', async () => {
    const router = await network.router()
    const { serviceId, client } = await hosted(router)
    const other = await network.client(serviceId)
    for (const apiSessionToken of [other.apiSessionToken, '', 'nonsense'])
      expect(await router.dial({ ...client, apiSessionToken })).toMatchObject({ type: 20002, code: 2 })
  })

  it('with code 2 if the API session owes a second factor since', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    const [policy] = await network.manage.get('/auth-policies?filter=name="Default"')
    const { primary } = policy
    const secondary = { requireTotp: true, requireExtJwtSigner: null }
    await network.manage.change('PATCH', `/auth-policies/${policy.id}`, { primary, secondary })
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 2 })
  })

  it('with code 4 for a session to host the service', async () => {
    const router = await network.router()
    const { serviceId } = await hosted(router)
    const roles = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
    await network.manage.make('service-policies', { name: 'hosts', type: 'Bind', ...roles })
    expect(await router.dial(await network.client(serviceId, 'Bind'))).toMatchObject({ type: 20002, code: 4 })
  })

  it('with code 5 over a router that the policies do not open for the service', async () => {
    const [router, closed] = [await network.router(), await network.router()]
    const { client } = await hosted(router)
    const [policy] = await network.manage.get('/service-edge-router-policies')
    const edgeRouterRoles = [`@${router.id}`]
    await network.manage.change('PATCH', `/service-edge-router-policies/${policy.id}`, { edgeRouterRoles })
    expect(await closed.dial(client)).toMatchObject({ type: 20002, code: 5 })
    expect((await router.dial(client)).type).toBe(20219)
  })

  it('with code 11 if the service requires encryption and the client, or the host, sends no key', async () => {
    const router = await network.router()
    const { client } = await hosted(router, { encryptionRequired: true })
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 11 })
    expect(router.routes).toEqual([])
    const peerData = new Map([[1003, CLIENT_KEY]])
    const response = await router.dial(client, { peerData })
    expect(response).toMatchObject({ type: 20002, code: 11 })
    await router.settle()
    expect(router.tables.size).toBe(0)
    expect(network.fabric.circuits.size).toBe(0)
    router.hostData = new Map([[1003, HOST_KEY]])
    expect((await router.dial(client, { peerData })).type).toBe(20219)
  })

  it('with code 1 for peer data that no header can carry; other dials of the router go on', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = () => 'silence'
    const pending = router.sendDial(client)
    await expect.poll(() => router.withheld.length).toBe(1)
    const tooLong = new Map([[1011, Buffer.alloc(9_000)]])
    expect(await router.dial(client, { peerData: tooLong })).toMatchObject({
      type: 20002,
      code: 1,
      text: expect.stringContaining('peer data'),
    })
    const notMap = router.wire.send(20218, Buffer.alloc(0), [[10, Buffer.from([255, 255, 255, 255, 1])]])
    expect(await router.takeDialResponse(notMap)).toMatchObject({ type: 20002, code: 1 })
    router.sendResult(router.withheld[0]!)
    expect((await router.takeDialResponse(pending)).type).toBe(20219)
  })

  it('with code 1 for more than 16 KiB of peer data, or an instance id without end', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    const entries = (bytes: number) => new Map([1003, 1011].map((id) => [id, Buffer.alloc(bytes)]))
    const refused = { type: 20002, code: 1, text: expect.stringContaining('too long') }
    expect((await router.dial(client, { peerData: entries(8_192) })).type).toBe(20219)
    const tooMuch = new Map([...entries(8_192), [1008, Buffer.alloc(1)]])
    expect(await router.dial(client, { peerData: tooMuch })).toMatchObject(refused)
    expect(await router.dial(client, { instanceId: 'x'.repeat(5_000) })).toMatchObject(refused)
  })

  it('with code 1 if it is longer than any may be, before anything of it is read', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    const dial = { ...client, apiSessionToken: 'x'.repeat(70_000) }
    expect(await router.dial(dial)).toMatchObject({ type: 20002, code: 1, text: expect.stringContaining('longer') })
    expect((await router.dial(client)).type).toBe(20219)
  })

  it('with code 1 if it is longer than any message may be, also several times and in pieces, and the router stays connected', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    for (const length of [1_000_000, 300_000, 3_000_000]) {
      const dial = { ...client, apiSessionToken: 'x'.repeat(length) }
      expect(await router.dial(dial)).toMatchObject({ type: 20002, code: 1, text: expect.stringContaining('longer') })
    }
    const tooLongBind = router.wire.send(20216, Buffer.alloc(3_000_000))
    expect(await router.takeDialResponse(tooLongBind)).toMatchObject({ type: 20002, code: 1 })
    expect((await router.dial(client)).type).toBe(20219)
  })

  it('with code 1 if the host responds with more than 16 KiB of peer data, and its router drops the circuit', async () => {
    const router = await network.router()
    const { serviceId, client } = await hosted(router)
    router.hostData = new Map([1003, 1011, 1008].map((id) => [id, Buffer.alloc(8_000)]))
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 1, text: expect.stringContaining('too long') })
    expect(countCircuits(serviceId)).toBe(0)
    expect(router.tables.size).toBe(0)
  })

  it('with code 1 if the host sends peer data that no header can carry, and the circuit ends', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.hostData = new Map([[1011, Buffer.alloc(9_000)]])
    expect(await router.dial(client)).toMatchObject({
      type: 20002,
      code: 1,
      text: expect.stringContaining('peer data'),
    })
    await router.settle()
    expect(router.tables.size).toBe(0)
    expect(network.fabric.circuits.size).toBe(0)
  })

  it('with code 1 for a body, of which it has no need', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    expect(await router.dial(client, { body: Buffer.alloc(4_097) })).toMatchObject({ type: 20002, code: 1 })
    expect(router.routes).toEqual([])
    expect((await router.dial(client, { body: Buffer.alloc(4_096) })).type).toBe(20219)
  })

  it('with code 1 if the service has no terminators, or none that is online', async () => {
    const [router, other] = [await network.router(), await network.router()]
    const serviceId = await network.service()
    const client = await network.client(serviceId)
    expect(await router.dial(client)).toMatchObject({ code: 1, text: expect.stringContaining('no terminators') })
    await network.terminator(serviceId, other)
    expect(await router.dial(client)).toMatchObject({ code: 1, text: expect.stringContaining('no path') })
    await other.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(other.id)).toBeUndefined()
    expect(await router.dial(client)).toMatchObject({ code: 1, text: expect.stringContaining('no online') })
    const { counts } = network.fabric.circuits.failures
    expect(Object.fromEntries(counts)).toEqual({ NO_TERMINATORS: 1, NO_PATH: 1, NO_ONLINE_TERMINATORS: 1 })
  })
})

describe('if a router fails', () => {
  it('the controller tries once more, as another circuit', async () => {
    const router = await network.router()
    const { terminatorId, client } = await hosted(router)
    router.reply = ({ attempt }) => (attempt === 0 ? GENERIC : 'success')
    const response = await router.dial(client)
    expect(response.type).toBe(20219)
    const [first, second] = router.routes
    expect(router.routes).toHaveLength(2)
    expect(second).toMatchObject({ attempt: 1, circuitId: response.circuitId })
    expect(first!.circuitId).not.toBe(second!.circuitId)
    expect(first!.egress!.address).not.toBe(second!.egress!.address)
    // 20 for the failure, 2 for the circuit, and 2 less for its success.
    expect((await record(`/terminators/${terminatorId}`)).dynamicCost).toBe(20)
  })

  it('twice, the dial fails, and routers that succeeded drop their part', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client, serviceId } = await hosted(b)
    b.reply = () => 'silence'
    const sequence = a.sendDial(client)
    for (const attempt of [0, 1]) {
      await expect.poll(() => b.withheld.length).toBe(attempt + 1)
      await a.settle()
      b.sendResult(b.withheld[attempt]!, GENERIC)
    }
    expect(await a.takeDialResponse(sequence)).toMatchObject({
      type: 20002,
      code: 1,
      text: expect.stringContaining(GENERIC.text),
      circuitId: b.routes[1]!.circuitId,
    })
    await a.settle()
    expect(a.tables.size).toBe(0)
    expect(a.unroutes.map(({ now }) => now)).toEqual([true, true])
    expect(countCircuits(serviceId)).toBe(0)
    expect(network.fabric.circuits.failures.counts.get('ROUTER_ERR_GENERIC')).toBe(1)
  })

  it('and no terminator is left for the second attempt, routers drop their part all the same', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client, terminatorId } = await hosted(b)
    b.reply = () => 'silence'
    const sequence = a.sendDial(client)
    await expect.poll(() => b.withheld.length).toBe(1)
    await a.settle()
    await network.manage.change('DELETE', `/terminators/${terminatorId}`)
    b.sendResult(b.withheld[0]!, GENERIC)
    expect(await a.takeDialResponse(sequence)).toMatchObject({ type: 20002, code: 1 })
    await a.settle()
    expect(a.tables.size).toBe(0)
  })

  it('and says nothing for ten seconds, the next attempt begins, and a late success is undone', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = ({ attempt }) => (attempt === 0 ? 'silence' : 'success')
    const sequence = router.sendDial(client)
    await expect.poll(() => router.routes.length).toBe(1)
    network.advance(9_999)
    await router.settle()
    expect(router.routes).toHaveLength(1)
    network.advance(1)
    const response = await router.takeDialResponse(sequence)
    expect(response).toMatchObject({ type: 20219, circuitId: router.routes[1]!.circuitId })
    const [late] = router.withheld
    router.applyRoute(router.routes[0]!)
    router.sendResult(late!)
    await router.settle()
    expect([...router.tables.keys()]).toEqual([response.circuitId])
    expect(router.unroutes).toMatchObject([{ circuitId: router.routes[0]!.circuitId, now: true }])
  })

  it('and loses its connection, the attempt fails at once', async () => {
    const [a, b, c] = [await network.router(), await network.router(), await network.router()]
    network.link(a, b)
    network.link(a, c, 50)
    const { client, serviceId } = await hosted(b)
    const other = await network.terminator(serviceId, c)
    b.reply = () => 'silence'
    const sequence = a.sendDial(client)
    await expect.poll(() => b.withheld.length).toBe(1)
    await b.wire.close()
    const response = await a.takeDialResponse(sequence)
    expect(network.fabric.circuits.get(response.circuitId)?.terminatorId).toBe(other)
  })

  it('and loses its connection before its success arrives, it drops its part when it returns, so that no host waits for a client', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client } = await hosted(b)
    b.reply = () => 'silence'
    const sequence = a.sendDial(client)
    await expect.poll(() => b.withheld.length).toBe(1)
    const { circuitId } = b.routes[0]!
    await b.wire.close()
    expect(await a.takeDialResponse(sequence)).toMatchObject({ type: 20002 })
    const returned = await network.reconnect(b.id, b)
    await expect.poll(() => returned.unroutes).toMatchObject([{ circuitId, now: true }])
  })

  it('before the success of another one arrives, that one drops its part when it returns, if its connection was lost with it', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client } = await hosted(b)
    a.reply = () => GENERIC
    b.reply = () => 'silence'
    const sequence = a.sendDial(client)
    expect(await a.takeDialResponse(sequence)).toMatchObject({ type: 20002, code: 1 })
    await expect.poll(() => b.withheld.length).toBe(2)
    const [reported, lost] = b.withheld
    b.sendResult(reported!)
    await b.settle()
    expect(b.unroutes).toMatchObject([{ circuitId: b.routes[0]!.circuitId, now: true }])
    expect(lost).toBeDefined()
    await b.wire.close()

    const returned = await network.reconnect(b.id, b)
    await expect.poll(() => returned.unroutes).toMatchObject([{ circuitId: b.routes[1]!.circuitId, now: true }])
  })

  it('because the terminator closed the connection before the others succeeded, the controller tries once more', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client } = await hosted(b)
    a.reply = ({ attempt }) => (attempt === 0 ? 'silence' : 'success')
    const sequence = a.sendDial(client)
    await expect.poll(() => a.withheld.length).toBe(1)
    await b.settle()
    b.sendFault(FaultSubject.EgressFault, b.routes[0]!.circuitId)
    expect(await a.takeDialResponse(sequence)).toMatchObject({ type: 20219, circuitId: b.routes[1]!.circuitId })
  })

  it('because it does not know the terminator, a terminator of a host is removed, and any other one is the last choice', async () => {
    const router = await network.router()
    const { client, terminatorId, serviceId } = await hosted(router)
    router.reply = () => ({ code: 1, text: 'unknown address' })
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 1 })
    await expect.poll(() => network.manage.get(`/services/${serviceId}/terminators`)).toEqual([])
    expect(network.fabric.terminators.get(terminatorId)).toBeUndefined()
    const body = { service: serviceId, router: router.id, binding: 'transport', address: 'tcp:127.0.0.1:1' }
    const transport = await network.manage.make('terminators', body)
    await router.dial(client)
    await expect.poll(async () => (await record(`/terminators/${transport}`)).precedence).toBe('failed')
  })

  it('to say which attempt a result concerns, that attempt has failed, and the router drops its part', async () => {
    const router = await network.router()
    const { client, serviceId } = await hosted(router)
    // By this header the host writes over that of its router.
    router.hostData = new Map([[1101, Buffer.from([1])]])
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 1 })
    await router.settle()
    expect(router.routes).toHaveLength(2)
    expect(router.tables.size).toBe(0)
    expect(countCircuits(serviceId)).toBe(0)
  })

  it('and says that it does not know the terminator of another router, that terminator stays as it is', async () => {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const { client, terminatorId, serviceId } = await hosted(b)
    const body = { service: serviceId, router: b.id, binding: 'transport', address: 'tcp:127.0.0.1:1' }
    const transport = await network.manage.make('terminators', body)
    a.reply = () => ({ code: 1, text: 'unknown address' })
    for (let dial = 0; dial < 4; dial += 1) expect(await a.dial(client)).toMatchObject({ type: 20002, code: 1 })
    // A removal would be in the store before this transaction.
    await network.world.system.write(async () => {})
    expect(await record(`/terminators/${terminatorId}`)).toMatchObject({ precedence: 'default' })
    expect(await record(`/terminators/${transport}`)).toMatchObject({ precedence: 'default' })
  })

  it('after it reported the end of what it could not reach, that report concerns no later attempt', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = (route) => {
      if (route.attempt > 0) return 'success'
      router.sendFault(FaultSubject.EgressFault, route.circuitId)
      return GENERIC
    }
    const { type, circuitId } = await router.dial(client)
    expect(type).toBe(20219)
    await router.settle()
    expect(network.fabric.circuits.get(circuitId)).toBeDefined()
  })
})

describe('a circuit ends', () => {
  async function open() {
    const [a, b] = [await network.router(), await network.router()]
    network.link(a, b)
    const values = await hosted(b)
    const { circuitId } = await a.dial(values.client)
    return { a, b, circuitId, ...values }
  }

  it.each([
    ['the client', FaultSubject.IngressFault],
    ['the host', FaultSubject.EgressFault],
  ])('when %s closes the connection; what is on its way is still delivered', async (_name, subject) => {
    const { a, b, circuitId } = await open()
    const reporter = subject === FaultSubject.IngressFault ? a : b
    reporter.sendFault(subject, circuitId)
    await expect.poll(() => [a, b].flatMap(({ unroutes }) => unroutes)).toHaveLength(2)
    for (const { unroutes } of [a, b]) expect(unroutes).toMatchObject([{ circuitId, now: false }])
    expect(network.fabric.circuits.get(circuitId)).toBeUndefined()
    // The other end reports it, too, and routers may say that they cannot forward any more.
    b.sendFault(FaultSubject.EgressFault, circuitId)
    a.sendFault(FaultSubject.ForwardFault, circuitId)
    await a.settle()
    expect(a.unroutes).toMatchObject([{ now: false }, { circuitId, now: true }])
  })

  it('even if the host closes it in the same breath in which it accepts it', async () => {
    const router = await network.router()
    const { client, serviceId } = await hosted(router)
    let isFirst = true
    router.reply = (route) => {
      if (isFirst) setImmediate(() => router.sendFault(FaultSubject.EgressFault, route.circuitId))
      isFirst = false
      return 'success'
    }
    const { type } = await router.dial(client)
    expect(type).toBe(20219)
    await expect.poll(() => router.tables.size).toBe(0)
    expect(countCircuits(serviceId)).toBe(0)
  })

  it('when the service is deleted', async () => {
    const { a, b, circuitId, serviceId } = await open()
    await network.manage.change('DELETE', `/services/${serviceId}`)
    await expect.poll(() => a.tables.size + b.tables.size).toBe(0)
    expect(network.fabric.circuits.get(circuitId)).toBeUndefined()
  })

  it('not when its terminator is deleted', async () => {
    const { a, circuitId, terminatorId } = await open()
    await network.manage.change('DELETE', `/terminators/${terminatorId}`)
    await a.settle()
    expect(network.fabric.circuits.get(circuitId)).toBeDefined()
  })

  it('when it has carried no data for longer than its service permits, as one of its ends reports', async () => {
    const { a, b, circuitId, serviceId } = await open()
    a.reportIdle({ [circuitId]: 90_000 })
    await a.settle()
    expect(network.fabric.circuits.get(circuitId)!.idleSince).toBe(network.world.clock.now() - 90_000)
    await network.manage.change('PATCH', `/services/${serviceId}`, { maxIdleTimeMillis: 100_000 })
    a.reportIdle({ [circuitId]: 90_000 })
    await a.settle()
    expect(network.fabric.circuits.get(circuitId)).toBeDefined()
    b.reportIdle({ [circuitId]: 100_001 })
    await expect.poll(() => a.tables.size + b.tables.size).toBe(0)
  })

  it('at a router that reports one that is not its own', async () => {
    const { a, circuitId } = await open()
    const third = await network.router()
    third.reportIdle({ [circuitId]: 70_000, 'never-heard-of': 70_000 })
    await expect.poll(() => third.unroutes.length).toBe(2)
    expect(third.unroutes.every(({ now }) => now)).toBe(true)
    third.sendFault(FaultSubject.IngressFault, circuitId)
    third.sendFault(FaultSubject.ForwardFault, circuitId)
    await third.settle()
    await a.settle()
    expect(a.unroutes).toEqual([])
    expect(network.fabric.circuits.get(circuitId)).toBeDefined()
  })
})

describe('the right to dial', () => {
  useOwnNetworks()

  it.runIf(areTokensSigned)(
    'ends circuits when it is lost: the routers are told, and drop the circuit at once',
    async () => {
      const router = await network.router()
      const { client } = await hosted(router)
      const { circuitId } = await router.dial(client)
      const [policy] = await network.manage.get('/service-policies?filter=type=1')
      await network.manage.change('DELETE', `/service-policies/${policy.id}`)
      await router.wire.takeType(20102)
      expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
      expect(network.fabric.circuits.get(circuitId)).toBeUndefined()
      expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
    },
  )

  const withOpaqueTokens = it.skipIf(areTokensSigned)
  withOpaqueTokens(
    'ends circuits when it is lost: the routers are told, and drop the circuit if it is still open ten seconds later',
    async () => {
      const router = await network.router()
      const { client } = await hosted(router)
      const { circuitId } = await router.dial(client)
      const [policy] = await network.manage.get('/service-policies?filter=type=1')
      await network.manage.change('DELETE', `/service-policies/${policy.id}`)
      await router.wire.takeType(20102)
      expect(network.fabric.circuits.get(circuitId)).toBeDefined()
      network.advance(9_999)
      await router.settle()
      expect(router.unroutes).toEqual([])
      network.advance(1)
      await router.settle()
      expect(router.unroutes).toMatchObject([{ circuitId, now: true }])
      expect(await router.dial(client)).toMatchObject({ type: 20002, code: 3 })
    },
  )

  it('when it is lost while a router is away, that router takes the circuit when it returns, once', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    const { circuitId } = await router.dial(client)
    router.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(router.id)).toBeUndefined()
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    network.advance(10_000)
    expect(network.fabric.circuits.get(circuitId)).toBeUndefined()
    const returned = await network.reconnect(router.id, router)
    await expect.poll(() => returned.unroutes).toMatchObject([{ circuitId, now: true }])
    returned.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(router.id)).toBeUndefined()
    const again = await network.reconnect(router.id, returned)
    await again.settle()
    expect(again.unroutes).toEqual([])
  })

  it('is checked again when the routers have done their part', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = () => 'silence'
    const sequence = router.sendDial(client)
    await expect.poll(() => router.withheld.length).toBe(1)
    await network.manage.change('DELETE', `/sessions/${client.sessionId}`)
    router.sendResult(router.withheld[0]!)
    expect(await router.takeDialResponse(sequence)).toMatchObject({ type: 20002, code: 3 })
    expect(network.fabric.circuits.size).toBe(0)
  })
})

describe('a router that floods', () => {
  it('is refused at once beyond the requests that it may have at a time', async () => {
    const router = await network.router()
    const { client } = await hosted(router)
    router.reply = () => 'silence'
    for (let n = 0; n < 2_000; n += 1) router.sendDial(client)
    await expect.poll(() => router.withheld.length, { timeout: 20_000 }).toBe(2_000)
    expect(await router.dial(client)).toMatchObject({ type: 20002, code: 1 })
    const other = await network.router()
    expect((await other.dial(client)).text).toContain('no path')
  }, 30_000)
})
