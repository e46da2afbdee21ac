// Links on the fabric API: shown as routers report them, changed and removed by administrators.
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ContentType } from '../../server/control-channel/content-types.ts'
import { FaultSchema, RouterLinksSchema } from '../../server/control-channel/messages/control_pb.ts'
import { FABRIC, type TestResponse } from '../world/controller.ts'
import { type EnrolledRouter, enrolledRouter } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useController } from '../world/use-controller.ts'

const apis = ['client', 'management', 'fabric', 'control']
const world = useController({ settings: { listeners: [{ address: '127.0.0.1:0', apis, dialect: 'native' }] } })
let token: string
let routers: [EnrolledRouter, EnrolledRouter]
let connections: [SimulatedRouter, SimulatedRouter]

beforeAll(async () => {
  await world.controller.membership.announce(world.system, {})
  const address = await world.listen()
  token = await world.admin()
  routers = [await enrolledRouter(world, { name: 'north' }), await enrolledRouter(world, { name: 'south' })]
  const connect = async (router: EnrolledRouter) => {
    const simulated = await SimulatedRouter.open({ ...address, ...router })
    simulated.introduce(router.id)
    await simulated.takeType(ContentType.RESULT)
    return simulated
  }
  connections = [await connect(routers[0]), await connect(routers[1])]
})
afterAll(async () => {
  await Promise.all(connections.map((connection) => connection.close()))
})

function ask(method: string, path: string, body?: unknown): Promise<TestResponse> {
  const headers = { 'zt-session': token }
  return world.send({ method, path: `${FABRIC}${path}`, headers, ...(body === undefined ? {} : { body }) })
}

/** Has the first router report a link to the second one. */
async function reportLink(id: string, iteration = 1): Promise<void> {
  const link = {
    id,
    destRouterId: routers[1].id,
    linkProtocol: 'tls',
    dialAddress: 'tls:127.0.0.1:6004',
    iteration,
  }
  const body = toBinary(RouterLinksSchema, create(RouterLinksSchema, { links: [link] }))
  connections[0].send(ContentType.ROUTER_LINKS, body)
  await connections[0].takeReply(connections[0].send(ContentType.PING))
}

describe('a link', () => {
  it('is shown with both routers, its latency and its cost', async () => {
    await reportLink('link-1')
    world.clock.advance(2_000)
    const { body } = await ask('GET', '/links/link-1')

    const reference = ({ id, name }: EnrolledRouter) => ({
      _links: { self: { href: `./routers/${id}` }, terminators: { href: `./routers/${id}/terminators` } },
      entity: 'routers',
      id,
      name,
    })
    expect(body.data).toMatchObject({
      id: 'link-1',
      protocol: 'tls',
      sourceRouter: reference(routers[0]),
      destRouter: reference(routers[1]),
      state: 'Connected',
      down: false,
      staticCost: 1,
      sourceLatency: 65_000_000_000,
      destLatency: 65_000_000_000,
      cost: 130_001,
      iteration: 1,
    })
    for (const member of ['createdAt', 'updatedAt', 'tags']) expect(body.data).not.toHaveProperty(member)
  })

  it.each([
    ['', ['link-1']],
    ['limit none', ['link-1']],
    ['state = "Connected" and cost > 100000', ['link-1']],
    ['sourceRouter.name = "north" and destRouter.name = "south"', ['link-1']],
    ['sourceRouter.name = "south"', []],
    ['down = true', []],
    ['true sort by staticCost desc, id', ['link-1']],
    ['true skip 1', []],
  ])('is found by the filter %s', async (filter, ids) => {
    await reportLink('link-1')
    const { status, body } = await ask('GET', `/links?filter=${encodeURIComponent(filter)}`)

    expect(status).toBe(200)
    expect(body.data.map(({ id }: { id: string }) => id)).toEqual(ids)
  })

  it('is refused by an unknown field, or one of another type', async () => {
    for (const filter of ['name = "a"', 'cost = "a"']) {
      const { status, body } = await ask('GET', `/links?filter=${encodeURIComponent(filter)}`)
      expect([status, body.error.code]).toEqual([400, 'INVALID_FILTER'])
    }
  })

  it('is set down and made dearer', async () => {
    await reportLink('link-1')
    expect((await ask('PATCH', '/links/link-1', { down: true, staticCost: 7 })).status).toBe(200)
    expect((await ask('GET', '/links/link-1')).body.data).toMatchObject({ down: true, staticCost: 7 })
    expect((await ask('PATCH', '/links/link-1', { down: false })).status).toBe(200)
    expect((await ask('GET', '/links/link-1')).body.data).toMatchObject({ down: false, staticCost: 7 })
    expect((await ask('PATCH', '/links/link-1', { staticCost: -1 })).body.error.code).toBe('COULD_NOT_VALIDATE')
  })

  it('is removed at both of its routers', async () => {
    await reportLink('link-2')
    expect((await ask('DELETE', '/links/link-2', { immediate: false })).status).toBe(200)
    for (const connection of connections) {
      const fault = fromBinary(FaultSchema, (await connection.takeType(ContentType.FAULT)).body)
      expect(fault).toMatchObject({ id: 'link-2' })
    }
    expect((await ask('GET', '/links/link-2')).status).toBe(404)
  })

  it('that is unknown is 404, and fails at no router', async () => {
    for (const [method, body] of [
      ['GET', undefined],
      ['PATCH', { down: true }],
      ['DELETE', undefined],
    ] as const)
      expect((await ask(method, '/links/nothing', body)).body.error.code).toBe('NOT_FOUND')
    expect(connections[0].received.filter(({ type }) => type === ContentType.FAULT)).toEqual([])
  })
})
