// Services and the routers that lead to them, as clients see them, and which clients may change services.
import { beforeAll, describe, expect, it } from 'vitest'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { CLIENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
const { makeService, grant, asClient } = serviceMakers(
  () => world,
  () => manage,
)

beforeAll(async () => {
  manage = await managementOf(world)
})

describe('services on the client API', () => {
  it('are changed and deleted there by administrators, by the same rules', async () => {
    const id = await makeService()
    const { token } = await world.signIn({ isAdmin: true })
    const name = newName('service')

    const replaced = await asClient(token, `/services/${id}`, 'PUT', { name, unknown: 'skipped' })
    const patched = await asClient(token, `/services/${id}`, 'PATCH', { roleAttributes: ['a'] })
    const refused = await asClient(token, `/services/${id}`, 'PATCH', { name: '' })
    const view = await manage.get(`/services/${id}`)
    const deleted = await asClient(token, `/services/${id}`, 'DELETE')
    const again = await asClient(token, `/services/${id}`, 'DELETE')

    expect([replaced.status, patched.status, deleted.status, again.status]).toEqual([200, 200, 200, 404])
    expect(refused.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'name' } })
    expect(view).toMatchObject({ name, roleAttributes: ['a'] })
  })

  it('are others as soon as the role attributes of a signed-in identity change', async () => {
    const [before, after] = [await makeService(), await makeService()]
    const client = await world.signIn({ roleAttributes: [before] })
    await grant(before, before)
    await grant(after, after)
    const readNames = async () => {
      const { data } = (await asClient(client.token, '/services')).body
      return data.map(({ id }: { id: string }) => id)
    }
    const changeTime = async () =>
      (await asClient(client.token, '/current-api-session/service-updates')).body.data.lastChangeAt
    const [first, firstTime] = [await readNames(), await changeTime()]

    world.clock.advance(1_000)
    await manage.change('PATCH', `/identities/${client.id}`, { roleAttributes: [after] })

    expect(first).toEqual([before])
    expect(await readNames()).toEqual([after])
    expect((await asClient(client.token, `/services/${before}`)).status).toBe(404)
    expect((await changeTime()) > firstTime).toBe(true)
  })

  it('come in pages where there are more than the caller asks for', async () => {
    const services = [await makeService(), await makeService(), await makeService()].sort()
    const attribute = newName('attribute')
    const client = await world.signIn({ roleAttributes: [attribute] })
    for (const service of services) await grant(attribute, service)

    const whole = (await asClient(client.token, '/services?limit=3')).body
    const page = (await asClient(client.token, '/services?limit=2&offset=1')).body

    expect(whole.data.map(({ id }: { id: string }) => id)).toEqual(services)
    expect(page.data.map(({ id }: { id: string }) => id)).toEqual(services.slice(1))
    expect([whole.meta.pagination, page.meta.pagination]).toEqual([
      { limit: 3, offset: 0, totalCount: 3 },
      { limit: 2, offset: 1, totalCount: 3 },
    ])
  })

  it('are narrowed by roles, to those that policies grant', async () => {
    const [a, b, both, hidden] = [await makeService(), await makeService(), await makeService(), await makeService()]
    const [red, blue] = [newName('red'), newName('blue')]
    await manage.change('PATCH', `/services/${a}`, { roleAttributes: [red] })
    await manage.change('PATCH', `/services/${b}`, { roleAttributes: [blue] })
    await manage.change('PATCH', `/services/${both}`, { roleAttributes: [red, blue] })
    await manage.change('PATCH', `/services/${hidden}`, { roleAttributes: [red, blue] })
    const attribute = newName('attribute')
    const client = await world.signIn({ roleAttributes: [attribute] })
    for (const service of [a, b, both]) await grant(attribute, service)
    const ids = async (...query: string[]) => {
      const { body } = await asClient(
        client.token,
        `/services?${query.map((one) => one.replace('#', '%23')).join('&')}`,
      )
      return body.data.map(({ id }: { id: string }) => id)
    }
    const roles = [`roleFilter=#${red}`, `roleFilter=#${blue}`]

    expect(await ids(`roleFilter=#${red}`)).toEqual([a, both].sort())
    expect(await ids(...roles)).toEqual([both])
    expect(await ids(...roles, 'roleSemantic=AnyOf')).toEqual([a, b, both].sort())
    expect(await ids(`roleFilter=@${hidden}`)).toEqual([])
    expect((await asClient(client.token, '/services?roleFilter=bare')).body.error.cause.field).toBe('roleFilter')
    expect((await asClient(client.token, '/services?roleSemantic=Some')).body.error.cause.field).toBe('semantic')
  })

  it.each(['PUT', 'PATCH', 'DELETE'])('cannot be changed by others: %s', async (method) => {
    const id = await makeService()
    const client = await world.signIn({ roleAttributes: [id] })
    await grant(id, id)

    const response = await asClient(client.token, `/services/${id}`, method, method === 'DELETE' ? undefined : {})

    expect(response.status).toBe(401)
    expect(response.body.error.cause.code).toBe('PERMISSION_DENIED')
  })
})

describe('the edge routers of a client', () => {
  async function network() {
    const attribute = newName('attribute')
    const client = await world.signIn({ roleAttributes: [attribute] })
    const service = await makeService()
    const router = await manage.make('edge-routers', { name: newName('router'), cost: 4, roleAttributes: [attribute] })
    await grant(attribute, service)
    await manage.make('edge-router-policies', {
      name: newName('policy'),
      semantic: 'AnyOf',
      identityRoles: [`#${attribute}`],
      edgeRouterRoles: [`#${attribute}`],
    })
    const joinService = () =>
      manage.make('service-edge-router-policies', {
        name: newName('policy'),
        semantic: 'AnyOf',
        serviceRoles: [`@${service}`],
        edgeRouterRoles: ['#all'],
      })
    return { client, service, router, joinService }
  }

  it('are those that it may use and that have enrolled', async () => {
    const { client, router } = await network()
    const path = '/current-identity/edge-routers'
    const before = await asClient(client.token, path)
    await world.system.write(async (tx) =>
      world.controller.entities.update(tx, edgeRouters, await get(tx, edgeRouters, router), { isVerified: true }),
    )

    const { body } = await asClient(client.token, path)

    expect(before.body.data).toEqual([])
    expect(body.data).toEqual([
      expect.objectContaining({
        id: router,
        cost: 4,
        disabled: false,
        noTraversal: false,
        isOnline: false,
        hostname: '',
        supportedProtocols: {},
        syncStatus: 'SYNC_UNKNOWN',
      }),
    ])
    expect(body.data[0]).not.toHaveProperty('appData')
    expect(body.meta.pagination.totalCount).toBe(1)
  })

  it('are the same after a projection was rebuilt, and without a router that has to enroll again or was deleted', async () => {
    const { client, router } = await network()
    const { entities, store } = world.controller
    const enroll = (isVerified: boolean) =>
      world.system.write(async (tx) =>
        entities.update(tx, edgeRouters, await get(tx, edgeRouters, router), { isVerified }),
      )
    const list = async () => {
      const { body } = await asClient(client.token, '/current-identity/edge-routers')
      return body.data.map(({ id }: { id: string }) => id)
    }
    await enroll(true)
    await store.projections.rebuild('access')
    const rebuilt = await list()
    await enroll(false)
    const unenrolled = await list()
    await enroll(true)
    const again = await list()
    await entities.remove(world.system, edgeRouters, router)

    expect({ rebuilt, unenrolled, again, deleted: await list() }).toEqual({
      rebuilt: [router],
      unenrolled: [],
      again: [router],
      deleted: [],
    })
  })

  it('of a service are those that both it and the service may use', async () => {
    const { client, service, router, joinService } = await network()
    const path = `/services/${service}/edge-routers`
    const before = await asClient(client.token, path)
    await joinService()

    const { body } = await asClient(client.token, path)

    expect(before.body.data).toEqual({ edgeRouters: [] })
    expect(body.data.edgeRouters.map(({ id }: { id: string }) => id)).toEqual([router])
  })

  it('of a service come in pages, in the order and for the filter that the caller asks for', async () => {
    const { client, service, router, joinService } = await network()
    const { name, roleAttributes } = await manage.get(`/edge-routers/${router}`)
    const [north, south] = [newName('north'), newName('south')]
    const make = (values: object) => manage.make('edge-routers', { roleAttributes, ...values })
    const costly = await make({ name: north, cost: 9 })
    const others = [costly, await make({ name: south, cost: 1 })].sort()
    await joinService()
    const ask = async (query: string) => {
      const { body } = await asClient(client.token, `/services/${service}/edge-routers?${query}`)
      return [body.data.edgeRouters.map(({ id }: { id: string }) => id), body.meta.pagination]
    }
    const [first, second, third] = [router, ...others].sort()
    const filter = encodeURIComponent(`name != "${name}"`)

    expect(await ask('')).toEqual([[first, second, third], { limit: 25, offset: 0, totalCount: 3 }])
    expect(await ask('limit=2')).toEqual([[first, second], { limit: 2, offset: 0, totalCount: 3 }])
    expect(await ask('limit=2&offset=1')).toEqual([[second, third], { limit: 2, offset: 1, totalCount: 3 }])
    expect(await ask('limit=-1')).toEqual([[first, second, third], { limit: -1, offset: 0, totalCount: 3 }])
    expect(await ask(`filter=${filter}`)).toEqual([others, { limit: 25, offset: 0, totalCount: 2 }])
    expect(await ask(`filter=${filter}&limit=1&offset=1`)).toEqual([
      others.slice(1),
      { limit: 1, offset: 1, totalCount: 2 },
    ])
    expect(await ask('sort=cost%20desc&limit=2')).toEqual([[costly, router], { limit: 2, offset: 0, totalCount: 3 }])
    const bySecret = encodeURIComponent('fingerprint = "a"')
    const refused = await asClient(client.token, `/services/${service}/edge-routers?filter=${bySecret}`)
    expect([refused.status, refused.body.error.code]).toEqual([400, 'INVALID_FILTER'])
  })

  it('of a service are not shown for a token that is not of the session, nor to who may not reach it', async () => {
    const { client, service } = await network()
    const stranger = await world.signIn()
    const path = `${CLIENT}/services/${service}/edge-routers`
    const headers = { 'session-token': 'made up' }

    const withToken = await world.send({ method: 'GET', path, token: client.token, headers })
    const asStranger = await world.send({ method: 'GET', path, token: stranger.token })

    expect(withToken.status).toBe(401)
    expect(asStranger.status).toBe(404)
  })
})
