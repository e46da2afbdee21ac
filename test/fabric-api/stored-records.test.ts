// The fabric API, as tools of operators use it: routers, services and terminators, and changes of terminators.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { FABRIC, type TestResponse, testController, tlsTransport } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { enrolledRouter } from '../world/router/enrolled-router.ts'
import { SimulatedRouter } from '../world/router/simulated-router.ts'
import { useController } from '../world/use-controller.ts'

const apis = ['client', 'management', 'fabric', 'control']
const world = useController({ settings: { listeners: [{ address: '127.0.0.1:0', apis, dialect: 'native' }] } })
let token: string
let manage: Management
let address: { url: string; rootPem: string }
const open: SimulatedRouter[] = []

beforeAll(async () => {
  await world.controller.membership.announce(world.system, {})
  address = await world.listen()
  token = await world.admin()
  manage = await managementOf(world)
})
afterEach(async () => {
  await Promise.all(open.splice(0).map((router) => router.close()))
})

/** A request with the session header of the tools. */
function ask(method: string, path: string, body?: unknown): Promise<TestResponse> {
  return world.send({
    method,
    path: `${FABRIC}${path}`,
    headers: { 'zt-session': token },
    ...(body === undefined ? {} : { body }),
  })
}

const list = async (path: string, filter: string) =>
  (await ask('GET', `${path}?filter=${encodeURIComponent(filter)}`)).body.data

let names = 0
const newService = (values = {}) =>
  manage.make('services', { name: `service-${++names}`, encryptionRequired: true, ...values })
const newRouter = (kind: 'edge-routers' | 'routers' = 'edge-routers') =>
  enrolledRouter(world, { name: `fabric-router-${++names}`, kind })

async function connect(router: Awaited<ReturnType<typeof newRouter>>): Promise<void> {
  const simulated = await SimulatedRouter.open({ ...address, ...router })
  open.push(simulated)
  simulated.introduce(router.id)
  await simulated.takeType(2)
}

describe('a service', () => {
  it('is created, changed and deleted as the tools of operators do', async () => {
    const body = { name: 'fabric-web', terminatorStrategy: 'random', maxIdleTimeMillis: 0, tags: { a: 'b' } }
    const creation = await ask('POST', '/services', body)
    const { id } = creation.body.data
    const before = await ask('GET', `/services/${id}`)
    const change = await ask('PATCH', `/services/${id}`, { name: 'fabric-mail' })
    const after = await ask('GET', `/services/${id}`)
    const deletion = await ask('DELETE', `/services/${id}`, { immediate: false })

    expect([creation.status, creation.body.data._links.self.href]).toEqual([201, `./services/${id}`])
    expect(before.body.data).toMatchObject({ name: 'fabric-web', terminatorStrategy: 'random', tags: { a: 'b' } })
    expect([change.status, after.body.data.name, deletion.status]).toEqual([200, 'fabric-mail', 200])
    expect((await ask('GET', `/services/${id}`)).status).toBe(404)
  })

  it('that is replaced keeps what does not concern the fabric', async () => {
    const id = await newService({ roleAttributes: ['web'], terminatorStrategy: 'random', tags: { a: 'b' } })
    const { status } = await ask('PUT', `/services/${id}`, { name: `replaced-${names}` })
    const data = await manage.get(`/services/${id}`)

    expect(status).toBe(200)
    expect(data).toMatchObject({
      ...{ name: `replaced-${names}`, terminatorStrategy: 'smartrouting', tags: {} },
      ...{ roleAttributes: ['web'], encryptionRequired: true },
    })
  })
})

describe('a snapshot', () => {
  it('is made in the folder of backups, and its path is shown; a path that the caller chooses is refused', async () => {
    const refused = await ask('POST', '/database/snapshot', { path: '/tmp/elsewhere.db' })
    const { status, body } = await ask('POST', '/database/snapshot', {})

    expect([refused.status, refused.body.error.cause.field]).toEqual([400, 'path'])
    expect(status).toBe(200)
    expect(existsSync(body.data.path)).toBe(true)
    expect(body.data.path).toContain(join(world.directory, 'backups'))
  })
})

describe('the data', () => {
  it('is saved, checked and repaired as by the management API', async () => {
    const { integrity, backups } = world.controller
    world.clock.advance(60_000)
    const earlier = backups.list().length
    const snapshot = await ask('POST', '/database')
    world.clock.advance(60_000)
    const started: number[] = []
    for (const path of ['check-data-integrity', 'fix-data-integrity']) {
      started.push((await ask('POST', `/database/${path}`)).status)
      await integrity.waitUntilIdle()
    }
    const { body } = await ask('GET', '/database/data-integrity-results')

    expect([snapshot.status, snapshot.body.data]).toEqual([200, {}])
    expect(backups.list().length).toBeGreaterThan(earlier)
    expect(started).toEqual([202, 202])
    expect(body.data).toMatchObject({ inProgress: false, fixingErrors: true, error: null, tooManyErrors: false })
  })
})

describe('a cluster of OpenZiti', () => {
  it.each([
    ['GET', 'list-members', undefined],
    ['POST', 'add-member', { address: 'tls:127.0.0.1:6262', isVoter: true }],
    ['POST', 'remove-member', { id: 'other' }],
    ['POST', 'transfer-leadership', {}],
  ])('has no members here: %s %s is refused with the code that tools know', async (method, path, body) => {
    const response = await ask(method, `/cluster/${path}`, body)
    const unknown = await world.send({ method, path: `${FABRIC}/cluster/${path}`, ...(body ? { body } : {}) })

    expect([response.status, response.body.error.code]).toEqual([400, 'SERVER_NOT_RUNNING_IN_HA_MODE'])
    expect(unknown.status).toBe(401)
  })
})

describe('a router', () => {
  it('is shown with its fingerprint and without a version while it is offline', async () => {
    const { id } = await newRouter()
    const { body } = await ask('GET', `/routers/${id}`)

    expect(body.data).toEqual({
      _links: { self: { href: `./routers/${id}` }, terminators: { href: `./routers/${id}/terminators` } },
      id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      tags: {},
      name: `fabric-router-${names}`,
      fingerprint: expect.stringMatching(/^[0-9a-f]{40}$/),
      cost: 0,
      noTraversal: false,
      disabled: false,
      interfaces: null,
      connected: false,
      listenerAddresses: null,
    })
  })

  it('is shown with its version while it is connected, and found by that', async () => {
    const [connected, other] = [await newRouter('routers'), await newRouter()]
    await connect(connected)
    const { body } = await ask('GET', `/routers/${connected.id}`)

    expect(body.data).toMatchObject({ connected: true, versionInfo: { version: 'v1.6.5', os: 'linux', arch: 'amd64' } })
    const ids = (records: { id: string }[]) => records.map(({ id }) => id)
    expect(ids(await list('/routers', 'connected = true'))).toEqual([connected.id])
    expect(ids(await list('/routers', 'connected = false limit none'))).toContain(other.id)
    expect(ids(await list('/routers', `connected and id = "${other.id}"`))).toEqual([])
    const sorted = ids(await list('/routers', 'true sort by connected desc limit none'))
    expect(sorted[0]).toBe(connected.id)
  })

  it('has the interfaces that it reported', async () => {
    const { id } = await newRouter()
    const flags = { isUp: true, isBroadcast: true, isLoopback: false, isMulticast: true, isRunning: true }
    const reported = { name: 'eth0', hardwareAddress: '', mtu: 1500, index: 2, ...flags, addresses: ['192.0.2.7/24'] }
    await world.controller.routers.provisioner.storeInterfaces(world.system, id, [reported])
    const { body } = await ask('GET', `/routers/${id}`)

    expect(body.data.interfaces).toEqual([reported])
  })

  const fingerprint = 'ab'.repeat(20)
  const certified = (values = {}) => {
    const id = `router-${++names}.example`
    return { id, name: id, fingerprint, tags: {}, cost: 0, noTraversal: false, disabled: false, ...values }
  }

  it('is created with its certificate, as the tools of operators do, and needs no enrollment', async () => {
    const body = certified({ name: 'north-1', cost: 7, tags: { site: 'north' } })
    const creation = await ask('POST', '/routers', body)
    const { data } = (await ask('GET', `/routers/${body.id}`)).body
    const record = await manage.get(`/routers/${body.id}`)

    expect([creation.status, creation.body.data.id]).toEqual([201, body.id])
    expect(data).toMatchObject({ name: 'north-1', fingerprint, cost: 7, tags: { site: 'north' }, connected: false })
    expect(record).toMatchObject({ isVerified: true })
    expect(record.enrollmentToken ?? null).toBe(null)
  })

  it('is created without a certificate, and then enrolls', async () => {
    const body = certified({ fingerprint: null })
    await ask('POST', '/routers', body)

    expect(await manage.get(`/routers/${body.id}`)).toMatchObject({
      isVerified: false,
      enrollmentToken: expect.any(String),
    })
  })

  it('is changed, replaced and deleted', async () => {
    const body = certified({ cost: 7 })
    await ask('POST', '/routers', body)
    const patch = await ask('PATCH', `/routers/${body.id}`, { noTraversal: true })
    const patched = (await ask('GET', `/routers/${body.id}`)).body.data
    const put = await ask('PUT', `/routers/${body.id}`, { name: 'renamed', fingerprint, cost: 0, noTraversal: false })
    const replaced = (await ask('GET', `/routers/${body.id}`)).body.data
    const deletion = await ask('DELETE', `/routers/${body.id}`, { immediate: false })

    expect([patch.status, put.status, deletion.status]).toEqual([200, 200, 200])
    expect(patched).toMatchObject({ cost: 7, noTraversal: true })
    expect(replaced).toMatchObject({ name: 'renamed', fingerprint, cost: 0, noTraversal: false })
    expect((await ask('GET', `/routers/${body.id}`)).status).toBe(404)
  })

  it.each([
    ['an id that means something in a path', 'id', { id: 'a/b' }],
    ['a fingerprint that no certificate has', 'fingerprint', { fingerprint: 'abcd' }],
    ['a fingerprint that is not hexadecimal', 'fingerprint', { fingerprint: 'x'.repeat(40) }],
    ['a cost out of range', 'cost', { cost: 70_000 }],
  ])('with %s is refused', async (_what, field, values) => {
    const { status, body } = await ask('POST', '/routers', certified(values))

    expect([status, body.error.cause.field]).toEqual([400, field])
  })

  it('with the id of another one is refused', async () => {
    const body = certified()
    await ask('POST', '/routers', body)
    const again = await ask('POST', '/routers', { ...body, name: 'another name' })

    expect([again.status, again.body.error.cause.field]).toEqual([400, 'id'])
  })

  it('does not take another fingerprint in a change', async () => {
    const { id } = await newRouter()
    const change = await ask('PATCH', `/routers/${id}`, { fingerprint })

    expect([change.status, change.body.error.cause.field]).toEqual([400, 'fingerprint'])
  })

  it('that is unknown is 404', async () => {
    expect((await ask('GET', '/routers/nothing')).body.error.code).toBe('NOT_FOUND')
    expect((await ask('GET', '/routers/nothing/terminators')).body.error.code).toBe('NOT_FOUND')
  })
})

describe('a service', () => {
  it('is shown with its strategy, and when its idle circuits end', async () => {
    const values = { terminatorStrategy: 'weighted', maxIdleTimeMillis: 90_000, tags: { team: 'a' } }
    const id = await newService(values)
    const { body } = await ask('GET', `/services/${id}`)

    expect(body.data).toEqual({
      _links: { self: { href: `./services/${id}` }, terminators: { href: `./services/${id}/terminators` } },
      id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      tags: { team: 'a' },
      name: `service-${names}`,
      terminatorStrategy: 'weighted',
      maxIdleTimeMillis: 90_000,
    })
  })

  it('is found by id or name, as tools look it up', async () => {
    const id = await newService()
    const name = `service-${names}`

    expect((await list('/services', `id = "${name}" or name="${name}"`)).map((one: { id: string }) => one.id)).toEqual([
      id,
    ])
  })
})

describe('a terminator', () => {
  it('is created, shown with its service and router, changed and deleted', async () => {
    const [service, { id: router }] = [await newService(), await newRouter()]
    const serviceName = `service-${names - 1}`
    const values = {
      service,
      router,
      address: 'tcp:localhost:8080',
      binding: 'transport',
      instanceId: 'a',
      hostId: 'h',
    }
    const created = await ask('POST', '/terminators', { ...values, cost: 5, unknownMember: 1 })
    expect(created.status).toBe(201)
    const { id } = created.body.data
    expect(created.body.data).toEqual({ _links: { self: { href: `./terminators/${id}` } }, id })

    const { body } = await ask('GET', `/terminators/${id}`)
    expect(body.data).toEqual({
      _links: { self: { href: `./terminators/${id}` } },
      id,
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
      tags: {},
      serviceId: service,
      service: {
        _links: { self: { href: `./services/${service}` }, terminators: { href: `./services/${service}/terminators` } },
        entity: 'services',
        id: service,
        name: serviceName,
      },
      routerId: router,
      router: {
        _links: { self: { href: `./routers/${router}` }, terminators: { href: `./routers/${router}/terminators` } },
        entity: 'routers',
        id: router,
        name: `fabric-router-${names}`,
      },
      binding: 'transport',
      address: 'tcp:localhost:8080',
      instanceId: 'a',
      cost: 5,
      precedence: 'default',
      dynamicCost: 0,
      hostId: 'h',
    })

    expect((await ask('PATCH', `/terminators/${id}`, { cost: 7 })).status).toBe(200)
    expect((await ask('GET', `/terminators/${id}`)).body.data).toMatchObject({ cost: 7, address: 'tcp:localhost:8080' })
    expect((await ask('PUT', `/terminators/${id}`, { ...values, precedence: 'required' })).status).toBe(200)
    expect((await ask('GET', `/terminators/${id}`)).body.data).toMatchObject({ cost: 0, precedence: 'required' })
    expect((await ask('DELETE', `/terminators/${id}`, { immediate: false })).status).toBe(200)
    expect((await ask('GET', `/terminators/${id}`)).status).toBe(404)
  })

  it('without a host or an instance shows empty text, which tools require', async () => {
    const [service, { id: router }] = [await newService(), await newRouter()]
    const values = { service, router, address: 'udp:localhost:53', binding: '', instanceId: '' }
    const { id } = (await ask('POST', '/terminators', values)).body.data

    expect((await ask('GET', `/terminators/${id}`)).body.data).toMatchObject({
      hostId: '',
      instanceId: '',
      binding: 'udp',
    })
  })

  it('is found by the names and ids of its service and router', async () => {
    const [service, { id: router }] = [await newService(), await newRouter()]
    const [serviceName, routerName] = [`service-${names - 1}`, `fabric-router-${names}`]
    const values = { service, router, address: 'tcp:a:1', binding: 'transport' }
    const { id } = (await ask('POST', '/terminators', values)).body.data
    const filters = [
      `service = "${service}"`,
      `router = "${router}"`,
      `service.name = "${serviceName}"`,
      `router.name = "${routerName}"`,
      `id = "${id}" sort by createdAt limit none`,
    ]

    for (const filter of filters)
      expect((await list('/terminators', filter)).map((one: { id: string }) => one.id)).toEqual([id])
    for (const path of [`/services/${service}/terminators`, `/routers/${router}/terminators`])
      expect((await list(path, 'limit none')).map((one: { id: string }) => one.id)).toEqual([id])
  })

  it.each([
    ['service', { service: 'nothing' }, 404],
    ['router', { router: 'nothing' }, 404],
    ['address', { address: '' }, 400],
    ['cost', { cost: 70_000 }, 400],
  ])('with a wrong %s is refused', async (_member, wrong, status) => {
    const [service, { id: router }] = [await newService(), await newRouter()]
    const values = { service, router, address: 'tcp:a:1', binding: 'transport', ...wrong }

    expect((await ask('POST', '/terminators', values)).status).toBe(status)
  })
})

describe('a list', () => {
  it('has the envelope that tools read, and pages', async () => {
    await newService()
    await newService()
    const { status, body } = await ask('GET', '/services?limit=1')

    expect(status).toBe(200)
    expect(body.data).toHaveLength(1)
    expect(body.meta).toMatchObject({
      filterableFields: expect.arrayContaining(['id', 'name', 'terminatorStrategy']),
      pagination: { limit: 1, offset: 0, totalCount: expect.any(Number) },
    })
  })

  it('refuses a filter by an unknown field', async () => {
    const { status, body } = await ask('GET', '/routers?filter=nonsense=1')

    expect([status, body.error.code]).toEqual([400, 'INVALID_FILTER'])
  })
})

describe('what the fabric API leaves out', () => {
  it.each([['GET', '']])('is 404: %s %s', async (method, path) => {
    expect((await ask(method, path)).body.error.code).toBe('NOT_FOUND')
  })
})

describe('a listener without the fabric API', () => {
  it('responds with 404', async () => {
    const settings = { listeners: [{ address: '127.0.0.1:0', apis: ['client', 'management'], dialect: 'native' }] }
    const other = await testController({ settings })
    const { url, rootPem } = await other.listen()
    const transport = tlsTransport(url, rootPem)

    expect((await transport.send({ method: 'GET', path: `${FABRIC}/routers` })).status).toBe(404)
    await transport.close()
    await other.close()
  })
})
