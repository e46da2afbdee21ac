// Services: their configuration and who gets which, how others see them, and what clients may do with them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { edgeRouters } from '../../src/resources/edge-routers.ts'
import { get, update } from '../../src/store/entities.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'

let world: TestController
let manage: Management

beforeAll(async () => {
  world = await testController()
  manage = await managementOf(world)
})
afterAll(() => world.close())

let made = 0
const newName = (what: string) => `${what} ${++made}`

async function makeType(name = newName('type')) {
  return { name, id: await manage.make('config-types', { name }) }
}
const makeConfig = (configTypeId: string, data: object) =>
  manage.make('configs', { name: newName('config'), configTypeId, data })
const makeService = (more: object = {}) =>
  manage.make('services', { name: newName('service'), encryptionRequired: true, ...more })

/** A policy that lets identities with the attribute dial, or bind, a service. */
const grant = (attribute: string, service: string, type = 'Dial') =>
  manage.make('service-policies', {
    name: newName('policy'),
    type,
    semantic: 'AnyOf',
    identityRoles: [`#${attribute}`],
    serviceRoles: [`@${service}`],
  })

const asClient = (token: string, path: string, method = 'GET', body?: unknown) =>
  world.send({ method, path: CLIENT + path, token, ...(body === undefined ? {} : { body }) })

describe('a service', () => {
  it('keeps whether it is encrypted for good', async () => {
    const id = await makeService()

    await manage.change('PATCH', `/services/${id}`, { encryptionRequired: false })
    await manage.change('PUT', `/services/${id}`, { name: newName('service') })

    expect((await manage.get(`/services/${id}`)).encryptionRequired).toBe(true)
  })

  it('falls back to its defaults on a replacement', async () => {
    const id = await makeService({ terminatorStrategy: 'sticky', maxIdleTimeMillis: 5, roleAttributes: ['a'] })
    const name = newName('service')

    await manage.change('PUT', `/services/${id}`, { name })

    expect(await manage.get(`/services/${id}`)).toMatchObject({
      name,
      terminatorStrategy: 'smartrouting',
      maxIdleTimeMillis: 0,
      roleAttributes: [],
    })
  })

  it('carries one config of each type at most', async () => {
    const type = await makeType()
    const [one, two] = [await makeConfig(type.id, { a: 1 }), await makeConfig(type.id, { a: 2 })]

    const refused = await manage.refusal('POST', '/services', {
      name: newName('service'),
      encryptionRequired: true,
      configs: [one, two],
    })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'configs' })
  })

  it.each([
    [{ configs: ['nope'] }, 404, 'configs'],
    [{ terminatorStrategy: 'nearest' }, 400, 'terminatorStrategy'],
    [{ maxIdleTimeMillis: 1e20 }, 400, 'maxIdleTimeMillis'],
    [{ roleAttributes: ['@x'] }, 400, 'roleAttributes'],
    [{ configs: Array.from({ length: 501 }, (_, at) => `id-${at}`) }, 400, 'configs'],
  ])('refuses %j', async (wrong, status, field) => {
    const body = { name: newName('service'), encryptionRequired: true, ...wrong }

    expect(await manage.refusal('POST', '/services', body)).toMatchObject({ status, field })
  })

  it('takes along what identities were told about hosting it, when it goes', async () => {
    const [going, staying] = [await makeService(), await makeService()]
    const identity = await manage.make('identities', {
      name: newName('host'),
      type: 'Device',
      isAdmin: false,
      serviceHostingCosts: { [going]: 7, [staying]: 8 },
      serviceHostingPrecedences: { [going]: 'failed' },
    })

    await manage.change('DELETE', `/services/${going}`)

    const host = await manage.get(`/identities/${identity}`)
    expect(host).toMatchObject({ serviceHostingCosts: { [staying]: 8 }, serviceHostingPrecedences: {} })
    await manage.change('PATCH', `/identities/${identity}`, { serviceHostingCosts: host.serviceHostingCosts })
  })
})

describe('the configuration of a service', () => {
  it('is that of the types asked for, by id or name, keyed by name', async () => {
    const [type, other] = [await makeType(), await makeType()]
    const configs = [await makeConfig(type.id, { port: 1 }), await makeConfig(other.id, { port: 2 })]
    const id = await makeService({ configs })
    const config = async (query: string) => (await manage.get(`/services/${id}${query}`)).config
    const both = { [type.name]: { port: 1 }, [other.name]: { port: 2 } }

    expect(await config('')).toBeNull()
    expect(await config(`?configTypes=${type.id}`)).toEqual({ [type.name]: { port: 1 } })
    expect(await config(`?configTypes=${encodeURIComponent(type.name)}`)).toEqual({ [type.name]: { port: 1 } })
    expect(await config(`?configTypes=${type.id}&configTypes=${other.id}`)).toEqual(both)
    expect(await config(`?configTypes=${type.id},${other.id}`)).toEqual(both)
    expect(await config('?configTypes=all')).toEqual(both)
    expect(await config('?configTypes=nope')).toBeNull()
    expect((await manage.get(`/services/${id}`)).configs.sort()).toEqual([...configs].sort())
  })

  it('is empty in lists where no type is asked for', async () => {
    const id = await makeService()
    const filter = encodeURIComponent(`id = "${id}"`)

    const [service] = await manage.get(`/services?filter=${filter}`)

    expect(service.config).toEqual({})
  })

  it('is what an identity has in place of it, and beside it', async () => {
    const [type, other] = [await makeType(), await makeType()]
    const own = await makeConfig(type.id, { port: 1 })
    const [instead, beside] = [await makeConfig(type.id, { port: 9 }), await makeConfig(other.id, { extra: true })]
    const service = await makeService({ configs: [own] })
    const client = await world.signIn({ roleAttributes: [service] })
    await grant(service, service)
    const seen = async () => (await asClient(client.token, `/services/${service}?configTypes=all`)).body.data.config
    const path = `/identities/${client.id}/service-configs`

    expect(await seen()).toEqual({ [type.name]: { port: 1 } })
    await manage.change('POST', path, [
      { serviceId: service, configId: instead },
      { serviceId: service, configId: beside },
    ])
    expect(await seen()).toEqual({ [type.name]: { port: 9 }, [other.name]: { extra: true } })
    expect((await manage.get(`/services/${service}?configTypes=all`)).config).toEqual({ [type.name]: { port: 1 } })
    await manage.change('DELETE', path, [{ serviceId: service, configId: instead }])
    expect(await seen()).toEqual({ [type.name]: { port: 1 }, [other.name]: { extra: true } })
  })
})

describe('the configs of an identity', () => {
  async function somebody() {
    const type = await makeType()
    const [one, two] = [await makeConfig(type.id, {}), await makeConfig(type.id, {})]
    const service = await makeService()
    const identity = await manage.make('identities', { name: newName('identity'), type: 'User', isAdmin: false })
    return { one, two, service, identity, path: `/identities/${identity}/service-configs` }
  }

  it('are listed whole, with what they refer to', async () => {
    const { one, service, path } = await somebody()

    await manage.change('POST', path, [{ serviceId: service, configId: one }])

    const { body } = await manage.call('GET', path)
    expect(body.data).toEqual([
      {
        serviceId: service,
        service: expect.objectContaining({ entity: 'services', id: service }),
        configId: one,
        config: expect.objectContaining({ entity: 'configs', id: one }),
      },
    ])
    expect(body.meta.pagination).toEqual({ limit: 1, offset: 0, totalCount: 1 })
  })

  it('are one of each type for a service: a second one takes the place of the first', async () => {
    const { one, two, service, path } = await somebody()
    await manage.change('POST', path, [{ serviceId: service, configId: one }])

    await manage.change('POST', path, [{ serviceId: service, configId: two }])

    expect((await manage.get(path)).map(({ configId }: { configId: string }) => configId)).toEqual([two])
  })

  it('are taken away by the type of the config that is named', async () => {
    const { one, two, service, path } = await somebody()
    await manage.change('POST', path, [{ serviceId: service, configId: two }])

    await manage.change('DELETE', path, [{ serviceId: service, configId: one }])
    await manage.change('DELETE', path, [{ serviceId: service, configId: one }])
    await manage.change('DELETE', path)

    expect(await manage.get(path)).toEqual([])
  })

  it('are all there, or none of them, where one of what is named does not exist', async () => {
    const { one, service, path } = await somebody()
    const good = { serviceId: service, configId: one }

    expect(await manage.refusal('POST', path, [good, { ...good, configId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('POST', path, [good, { ...good, serviceId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('POST', '/identities/nope/service-configs', [good])).toMatchObject({ status: 404 })
    expect(await manage.refusal('DELETE', path, [{ ...good, configId: 'nope' }])).toMatchObject({ status: 404 })
    expect(await manage.refusal('GET', '/identities/nope/service-configs')).toMatchObject({ status: 404 })
    expect(await manage.get(path)).toEqual([])
  })

  it.each([
    ['no list', { serviceId: 'a', configId: 'b' }, 'COULD_NOT_PARSE_BODY', undefined],
    ['half a pair', [{ serviceId: 'a' }], 'COULD_NOT_VALIDATE', '0.configId'],
    ['a pair of something else', [{ serviceId: 'a', configId: 7 }], 'COULD_NOT_PARSE_BODY', '0.configId'],
    ['an unknown member', [{ serviceId: 'a', configId: 'b', x: 1 }], 'COULD_NOT_VALIDATE', '0.x'],
    ['no objects', ['a'], 'COULD_NOT_PARSE_BODY', undefined],
    ['too many', Array.from({ length: 1001 }, () => ({})), 'COULD_NOT_VALIDATE', 'body'],
  ])('refuse %s', async (_what, body, code, field) => {
    const { path } = await somebody()

    const refused = await manage.refusal('POST', path, body)

    expect(refused).toMatchObject({ status: 400, code, ...(field ? { field } : {}) })
  })

  it('keep their config from being deleted, and go with their service or identity', async () => {
    const { one, two, service, identity, path } = await somebody()
    const other = await makeService()
    await manage.change('POST', path, [
      { serviceId: service, configId: one },
      { serviceId: other, configId: two },
    ])

    const refused = await manage.refusal('DELETE', `/configs/${one}`)
    await manage.change('DELETE', `/services/${service}`)
    await manage.change('DELETE', `/configs/${one}`)
    await manage.change('DELETE', `/identities/${identity}`)
    await manage.change('DELETE', `/configs/${two}`)

    expect(refused).toMatchObject({ status: 409, code: 'CAN_NOT_DELETE_REFERENCED_ENTITY' })
  })

  it('tell the identity that its services changed', async () => {
    const { one, service } = await somebody()
    const client = await world.signIn()
    const lastChange = async () =>
      (await asClient(client.token, '/current-api-session/service-updates')).body.data.lastChangeAt
    const before = await lastChange()
    world.clock.advance(1000)

    await manage.change('POST', `/identities/${client.id}/service-configs`, [{ serviceId: service, configId: one }])
    const afterGiving = await lastChange()
    world.clock.advance(1000)
    await manage.change('PATCH', `/configs/${one}`, { data: { changed: true } })

    expect(Date.parse(afterGiving) - Date.parse(before)).toBe(1000)
    expect(Date.parse(await lastChange()) - Date.parse(before)).toBe(2000)
  })
})

describe('services as an identity sees them', () => {
  it('are those that policies grant it, with its permissions', async () => {
    const [dialed, bound] = [await makeService({ name: 'seen dialed' }), await makeService({ name: 'seen bound' })]
    const client = await world.signIn({ name: 'the viewer', roleAttributes: ['viewer'] })
    await grant('viewer', dialed)
    await grant('viewer', bound, 'Bind')
    await grant('viewer', bound)
    const permissions = async (asIdentity: string) =>
      Object.fromEntries(
        (await manage.get(`/services?asIdentity=${encodeURIComponent(asIdentity)}`)).map(
          (service: { name: string; permissions: string[] }) => [service.name, service.permissions],
        ),
      )
    const expected = { 'seen dialed': ['Dial'], 'seen bound': ['Bind', 'Dial'] }

    expect(await permissions(client.id)).toEqual(expected)
    expect(await permissions('the viewer')).toEqual(expected)
    expect(await manage.refusal('GET', '/services?asIdentity=nobody')).toMatchObject({ status: 404 })
  })

  it('are all of them for an administrator, who may dial none of them without a policy', async () => {
    const id = await makeService()

    expect((await manage.get(`/services/${id}`)).permissions).toEqual(['Invalid'])
  })

  it('show nothing of permissions in the sub-lists of others', async () => {
    const type = await makeType()
    const config = await makeConfig(type.id, {})
    await makeService({ configs: [config] })

    const [service] = await manage.get(`/configs/${config}/services`)

    expect(service).toMatchObject({ permissions: null, config: null })
  })
})

describe('a list of services by roles', () => {
  it('takes a semantic in any case, and refuses one that is none', async () => {
    await makeService({ name: 'by roles', roleAttributes: ['r1', 'r2'] })
    const query = (semantic: string) =>
      `/services?roleFilter=${encodeURIComponent('#r1')}&roleFilter=${encodeURIComponent('#r9')}&roleSemantic=${semantic}`

    expect(await manage.names(query('anyof'))).toEqual(['by roles'])
    expect(await manage.names(query('AllOf'))).toEqual([])
    expect(await manage.refusal('GET', query('SomeOf'))).toEqual({
      status: 400,
      code: 'COULD_NOT_VALIDATE',
      field: 'semantic',
      value: 'SomeOf',
    })
  })

  it('adds what is named by id, and knows no #all', async () => {
    const id = await makeService({ name: 'by id' })
    const query = (roles: string[]) =>
      `/services?${roles.map((role) => `roleFilter=${encodeURIComponent(role)}`).join('&')}`

    expect(await manage.names(query([`@${id}`, '@nope', '#nothing']))).toEqual(['by id'])
    expect(await manage.names(query(['#all']))).toEqual([])
    expect(await manage.refusal('GET', query(['web']))).toMatchObject({ status: 400, field: 'roleFilter' })
  })
})

describe('services on the client API', () => {
  it('are changed and deleted there by administrators, by the same rules', async () => {
    const id = await makeService()
    const { token } = await world.signIn({ isAdmin: true })
    const name = newName('service')

    const replaced = await asClient(token, `/services/${id}`, 'PUT', { name, unknown: 'passed over' })
    const patched = await asClient(token, `/services/${id}`, 'PATCH', { roleAttributes: ['a'] })
    const refused = await asClient(token, `/services/${id}`, 'PATCH', { name: '' })
    const shown = await manage.get(`/services/${id}`)
    const deleted = await asClient(token, `/services/${id}`, 'DELETE')
    const again = await asClient(token, `/services/${id}`, 'DELETE')

    expect([replaced.status, patched.status, deleted.status, again.status]).toEqual([200, 200, 200, 404])
    expect(refused.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'name' } })
    expect(shown).toMatchObject({ name, roleAttributes: ['a'] })
  })

  it.each(['PUT', 'PATCH', 'DELETE'])('cannot be changed by others: %s', async (method) => {
    const id = await makeService()
    const client = await world.signIn({ roleAttributes: [id] })
    await grant(id, id)

    const answer = await asClient(client.token, `/services/${id}`, method, method === 'DELETE' ? undefined : {})

    expect(answer.status).toBe(401)
    expect(answer.body.error.cause.code).toBe('PERMISSION_DENIED')
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
      update(tx, edgeRouters, await get(tx, edgeRouters, router), { isVerified: true }),
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

  it('of a service are those that both it and the service may use', async () => {
    const { client, service, router, joinService } = await network()
    const path = `/services/${service}/edge-routers`
    const before = await asClient(client.token, path)
    await joinService()

    const { body } = await asClient(client.token, path)

    expect(before.body.data).toEqual({ edgeRouters: [] })
    expect(body.data.edgeRouters.map(({ id }: { id: string }) => id)).toEqual([router])
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
