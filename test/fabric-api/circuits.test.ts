// Circuits, as the fabric API and this controller's own operations list, show and end them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiSessionTokens } from '../../src/authentication/api-sessions/api-session-tokens.ts'
import { CircuitIds } from '../../src/network/circuits/circuit-ids.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { FABRIC, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import type { ForwardingRouter } from '../world/router/forwarding-router.ts'
import { type TestClient, TestNetwork } from '../world/router/network.ts'

const OWN = `${MANAGEMENT}/controller/circuits`

let network: TestNetwork
let token: string
let routers: [ForwardingRouter, ForwardingRouter]
let serviceId: string
let terminatorId: string
let client: TestClient
let linkId: string

beforeAll(async () => {
  const listeners = [{ address: '127.0.0.1:0', apis: ['client', 'management', 'fabric', 'control'], dialect: 'native' }]
  network = await TestNetwork.start({ settings: { listeners } })
  token = await network.world.admin()
  routers = [await network.router(), await network.router()]
  linkId = network.link(routers[0], routers[1])
  serviceId = await network.service({ name: 'circuits-web' })
  terminatorId = await network.terminator(serviceId, routers[1])
  client = await network.client(serviceId)
})
afterAll(() => network.close())

function ask(method: string, path: string, body?: unknown): Promise<TestResponse> {
  const headers = { 'zt-session': token }
  return network.world.send({ method, path, headers, ...(body === undefined ? {} : { body }) })
}

/** The ids that a list holds. */
async function list(path: string, query: Record<string, string> = {}): Promise<string[]> {
  const { status, body } = await ask('GET', `${path}?${new URLSearchParams(query)}`)
  expect(status).toBe(200)
  return body.data.map(({ id }: { id: string }) => id)
}

async function dial(from: ForwardingRouter = routers[0]): Promise<string> {
  return (await from.dial(client)).circuitId
}

const unroutes = (router: ForwardingRouter) => router.unroutes.map(({ circuitId, now }) => [circuitId, now])

describe('a circuit on the fabric API', () => {
  it('is shown with its session, service, terminator and path', async () => {
    const id = await dial()
    const { body } = await ask('GET', `${FABRIC}/circuits/${id}`)

    expect(body.data).toMatchObject({
      _links: { self: { href: `./circuits/${id}` } },
      id,
      createdAt: expect.any(String),
      tags: {},
      clientId: client.sessionId,
      service: { entity: 'services', id: serviceId, name: 'circuits-web' },
      terminator: { entity: 'terminators', id: terminatorId, name: terminatorId },
      path: {
        nodes: routers.map((router) => ({
          entity: 'routers',
          id: router.id,
          _links: { self: { href: `./routers/${router.id}` } },
        })),
        links: [{ entity: 'links', id: linkId, name: linkId, _links: { self: { href: `./links/${linkId}` } } }],
      },
    })
  })

  it('over one router has no links', async () => {
    const id = await dial(routers[1])
    const { path } = (await ask('GET', `${FABRIC}/circuits/${id}`)).body.data

    expect([path.nodes.length, path.links]).toEqual([1, null])
  })

  it('still names a terminator that was deleted', async () => {
    const terminator = await network.terminator(serviceId, routers[0])
    const id = await dial()
    expect(network.fabric.circuits.get(id)?.terminatorId).toBe(terminator)
    expect((await ask('DELETE', `${FABRIC}/terminators/${terminator}`)).status).toBe(200)

    expect((await ask('GET', `${FABRIC}/circuits/${id}`)).body.data.terminator).toMatchObject({ id: terminator })
  })

  it('is found by filters', async () => {
    const id = await dial()
    const filters = [
      `id = "${id}"`,
      `id = "${id}" and service.name = "circuits-web"`,
      `service = "${serviceId}" and clientId = "${client.sessionId}" and id = "${id}" sort by createdAt desc limit none`,
    ]
    for (const filter of filters) expect(await list(`${FABRIC}/circuits`, { filter })).toEqual([id])
    expect(await list(`${FABRIC}/circuits`, { filter: 'service.name = "another"' })).toEqual([])
    expect((await list(`${FABRIC}/circuits`, { filter: 'limit none' })).length).toBe(network.fabric.circuits.size)
  })

  it('ends at its routers when it is deleted', async () => {
    const [id, other] = [await dial(), await dial()]
    expect((await ask('DELETE', `${FABRIC}/circuits/${id}`, { immediate: true })).status).toBe(200)
    expect((await ask('DELETE', `${FABRIC}/circuits/${other}`)).status).toBe(200)
    for (const router of routers) {
      await router.settle()
      expect(unroutes(router)).toEqual(
        expect.arrayContaining([
          [id, true],
          [other, false],
        ]),
      )
    }
    expect((await ask('GET', `${FABRIC}/circuits/${id}`)).status).toBe(404)
    expect((await ask('DELETE', `${FABRIC}/circuits/${id}`)).body.error.code).toBe('NOT_FOUND')
  })
})

describe('a circuit of the own operations', () => {
  it('is shown with who dialed, who hosts, its routers, and its age', async () => {
    const id = await dial()
    network.world.clock.advance(5_000)
    const { body } = await ask('GET', `${OWN}/${id}`)

    expect(body.data).toMatchObject({
      id,
      service: { id: serviceId, name: 'circuits-web' },
      identity: { id: client.identityId },
      host: { id: network.fabric.circuits.get(id)?.hostId },
      sessionId: client.sessionId,
      terminatorId,
      isInherited: false,
      idleSince: null,
      routers: routers.map((router) => ({ id: router.id })),
      links: [linkId],
      ageSeconds: 5,
      idleSeconds: null,
    })
  })

  it('is selected by service, identity and router, and by filters', async () => {
    const id = await dial()
    const queries: Record<string, string>[] = [
      { service: serviceId, limit: '500' },
      { identity: client.identityId, limit: '500' },
      { router: routers[0].id, limit: '500' },
      { service: serviceId, router: routers[1].id, filter: `id = "${id}" and identity.name != "x" sort by createdAt` },
    ]
    for (const query of queries) expect(await list(OWN, query)).toContain(id)
    for (const query of [{ service: 'other' }, { identity: 'other' }, { router: 'other' }] as Record<string, string>[])
      expect(await list(OWN, query)).toEqual([])
  })

  it('shows that its client was deleted', async () => {
    const { circuitId } = await routers[0].dial(await network.client(serviceId))
    await network.manage.change('DELETE', `/identities/${network.fabric.circuits.get(circuitId)?.clientId}`)

    expect((await ask('GET', `${OWN}/${circuitId}`)).body.data.identity).toMatchObject({ name: '<deleted>' })
  })

  it('says since when it is idle, as its routers report', async () => {
    const id = await dial()
    network.fabric.circuits.setIdleSince(id, network.world.clock.now() - 70_000)

    expect((await ask('GET', `${OWN}/${id}`)).body.data).toMatchObject({ idleSeconds: 70 })
  })

  it('ends at its routers when it is deleted', async () => {
    const id = await dial()
    expect((await ask('DELETE', `${OWN}/${id}`)).status).toBe(200)
    expect((await ask('DELETE', `${OWN}/${id}`)).status).toBe(404)
    await routers[0].settle()
    expect(unroutes(routers[0])).toContainEqual([id, false])
  })

  it('ends within ten seconds even if data keeps arriving', async () => {
    const [id, other] = [await dial(), await dial()]
    expect((await ask('DELETE', `${OWN}/${id}`)).status).toBe(200)
    expect((await ask('DELETE', `${FABRIC}/circuits/${other}`, { immediate: false })).status).toBe(200)
    network.advance(9_000)
    for (const router of routers) {
      await router.settle()
      expect(unroutes(router)).not.toContainEqual([id, true])
    }
    network.advance(1_000)
    for (const router of routers) {
      await router.settle()
      expect(unroutes(router)).toEqual(
        expect.arrayContaining([
          [id, true],
          [other, true],
        ]),
      )
    }
  })

  it('of an earlier process is listed with the router that reported it, and ended', async () => {
    const { tokenKey } = getDataPaths(network.world.directory)
    const key = ApiSessionTokens.open(tokenKey).deriveKey('circuit ids')
    const inherited = new CircuitIds(key, 1e12).create([routers[0].id], 0)
    const router = network.world.controller.routers.connected.get(routers[0].id)!
    await network.fabric.reports.takeIdleReports(router, [{ circuitId: inherited, idleMs: 61_000 }])
    const { body } = await ask('GET', `${OWN}/${inherited}`)

    expect(body.data).toMatchObject({
      isInherited: true,
      service: null,
      identity: null,
      routers: [{ id: routers[0].id }],
      idleSeconds: 61,
    })
    expect(await list(OWN, { filter: 'isInherited = true' })).toEqual([inherited])
    expect(await list(OWN, { router: routers[1].id })).not.toContain(inherited)
    expect((await ask('DELETE', `${OWN}/${inherited}`)).status).toBe(200)
    await routers[0].settle()
    expect(unroutes(routers[0])).toContainEqual([inherited, false])
    expect((await ask('GET', `${OWN}/${inherited}`)).status).toBe(404)
    network.advance(10_000)
    await routers[0].settle()
    expect(unroutes(routers[0])).toContainEqual([inherited, true])
  })
})
