// Routers of release 2 say some things of links, terminators and circuits in other forms than those of release 1, or in addition.
import { create, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RouterLinksSchema } from '../../server/control-channel/messages/control_pb.ts'
import { newName } from '../world/names.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { bind, newAddress, respondToQuestions, takeQuestions } from '../world/router/hosting.ts'
import { TestNetwork } from '../world/router/network.ts'

let network: TestNetwork

beforeAll(async () => {
  network = await TestNetwork.start()
  const all = { semantic: 'AnyOf', identityRoles: ['#all'], serviceRoles: ['#all'] }
  await network.manage.make('service-policies', { ...all, name: newName('bind'), type: 'Bind' })
})
afterAll(() => network.close())

const decode = (entries: Readonly<Record<string, Uint8Array>>) =>
  Object.fromEntries(Object.entries(entries).map(([id, value]) => [id, Buffer.from(value).toString()]))

describe('a router that reports all of its links', () => {
  function report(
    from: ForwardingRouter,
    links: readonly { id: string; to: ForwardingRouter }[],
    fullRefresh: boolean,
  ) {
    const reported = links.map(({ id, to }) => ({
      id,
      destRouterId: to.id,
      linkProtocol: 'tls',
      dialAddress: `tls:${to.id}:6000`,
      iteration: 1,
    }))
    from.wire.send(1035, toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: reported, fullRefresh })))
    return from.settle()
  }

  const listLinks = (router: ForwardingRouter) =>
    network.fabric.links
      .listOfRouter(router.id)
      .map(({ id }) => id)
      .sort()

  it('has no others any more; the circuits of those that are gone move, or end', async () => {
    const [a, b, c] = [await network.router(2), await network.router(2), await network.router(2)]
    const [ab, ac, cb] = [newName('link'), newName('link'), newName('link')]
    await report(
      a,
      [
        { id: ab, to: b },
        { id: ac, to: c },
      ],
      true,
    )
    await report(c, [{ id: cb, to: b }], true)
    network.advance(1_000)
    for (const [id, ms, ends] of [
      [ab, 1, [a, b]],
      [ac, 5, [a, c]],
      [cb, 5, [c, b]],
    ] as const)
      for (const router of ends) network.fabric.links.recordLatency(router.id, id, ms * 1_000_000)
    const serviceId = await network.service()
    await network.terminator(serviceId, b)
    const { circuitId } = await a.dial(await network.client(serviceId))
    expect(network.fabric.circuits.get(circuitId)?.path.routerIds).toEqual([a.id, b.id])

    await report(a, [{ id: ac, to: c }], true)
    expect(listLinks(a)).toEqual([ac])
    await expect.poll(() => network.fabric.circuits.get(circuitId)?.path.routerIds).toEqual([a.id, c.id, b.id])
    expect(listLinks(b)).toEqual([cb])

    await report(a, [], true)
    await expect.poll(() => network.fabric.circuits.get(circuitId)).toBeUndefined()
  })

  it('keeps those that it does not repeat in a report of some', async () => {
    const [a, b, c] = [await network.router(2), await network.router(2), await network.router(2)]
    const [ab, ac] = [newName('link'), newName('link')]
    await report(a, [{ id: ab, to: b }], false)
    await report(a, [{ id: ac, to: c }], false)
    expect(listLinks(a)).toEqual([ab, ac].sort())
  })
})

describe('a router of release 2', () => {
  it('may report connections of links and alerts: nothing is replied', async () => {
    const router = await network.router(2)
    for (const type of [1053, 1054]) router.wire.send(type, Buffer.from([0x0a, 0x01, 0x78]))
    await router.settle()
    expect(router.wire.received.filter(({ headers }) => headers.has(1))).toEqual([])
  })

  it('is asked about a terminator that it has just made in another way than about an older one', async () => {
    const router = await network.router(2)
    const host = await network.client(await network.service(), 'Bind')
    const address = newAddress()
    network.world.clock.advance(1)
    await bind(router.wire, { address, client: { sessionToken: host.token, apiToken: host.apiSessionToken } })
    router.wire.received.splice(0)
    network.advance(30_000)
    const questions = await takeQuestions(router.wire)
    expect(questions).toMatchObject({ terminators: [{ id: address }], postCreate: true, fixInvalid: true })
    respondToQuestions(router.wire, questions, [address])
    await router.wire.close()
    await expect.poll(() => network.world.controller.routers.connected.get(router.id)).toBeUndefined()
    const again = await network.reconnect(router.id, undefined, 2)
    expect(await takeQuestions(again.wire)).toMatchObject({ terminators: [{ id: address }], postCreate: false })
  })

  it('of release 1 is asked in one way', async () => {
    const router = await network.router()
    const host = await network.client(await network.service(), 'Bind')
    network.world.clock.advance(1)
    const client = { sessionToken: host.token, apiToken: host.apiSessionToken }
    await bind(router.wire, { address: newAddress(), client })
    network.advance(30_000)
    expect((await takeQuestions(router.wire)).postCreate).toBe(false)
  })

  it.each([
    [5, 'ROUTER_ERR_REJECTED_BY_APPLICATION'],
    [6, 'ROUTER_ERR_DNS_RESOLUTION_FAILED'],
    [7, 'ROUTER_ERR_PORT_NOT_ALLOWED'],
    [8, 'ROUTER_ERR_INVALID_LINK_DESTINATION'],
    [9, 'ROUTER_ERR_RESOURCES_NOT_AVAILABLE'],
    [10, 'ROUTER_ERR_GENERIC'],
  ] as const)('says by the code %i that a route failed: %s', async (code, cause) => {
    const router = await network.router(2)
    const serviceId = await network.service()
    await network.terminator(serviceId, router)
    router.reply = () => ({ code, text: 'as the router says it' })
    const before = network.fabric.circuits.failures.counts.get(cause) ?? 0
    const response = await router.dial(await network.client(serviceId))
    expect(response).toMatchObject({ type: 20002, text: expect.stringContaining('as the router says it') })
    expect(network.fabric.circuits.failures.counts.get(cause)).toBe(before + 1)
  })
})

describe('a host behind a router of release 2', () => {
  it.each([1, 2] as const)(
    'is told who dials, whatever the client or its router of release %i say',
    async (release) => {
      const [ofClient, ofHost] = [await network.router(release), await network.router(2)]
      network.link(ofClient, ofHost)
      const serviceId = await network.service()
      await network.terminator(serviceId, ofHost)
      const client = await network.client(serviceId)
      const { name } = await network.manage.get(`/identities/${client.identityId}`)
      const forged = new Map([
        [1115, Buffer.from('another')],
        [1116, Buffer.from('administrator')],
        [1008, Buffer.from('laptop')],
      ])
      await ofClient.dial(client, { peerData: forged })
      const toHost = decode(ofHost.routes.at(-1)!.egress!.peerData)
      expect(toHost).toEqual({ 1008: 'laptop', 1115: client.identityId, 1116: name })
    },
  )

  it('of release 1 is not, because such a router would not pass it on', async () => {
    const [ofClient, ofHost] = [await network.router(2), await network.router()]
    network.link(ofClient, ofHost)
    const serviceId = await network.service()
    await network.terminator(serviceId, ofHost)
    const forged = new Map([[1115, Buffer.from('another')]])
    await ofClient.dial(await network.client(serviceId), { peerData: forged })
    expect(ofHost.routes.at(-1)!.egress!.peerData).toEqual({})
  })
})
