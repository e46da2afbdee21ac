// Terminators: what makes one, what may change, and who sees what of it.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { terminators } from '../../src/definitions/resources/terminators.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { CLIENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let service: string
let router: string

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
beforeEach(async () => {
  sequence += 1
  service = await manage.make('services', { name: `service ${sequence}`, encryptionRequired: true })
  router = await manage.make('edge-routers', { name: `router ${sequence}` })
})

const body = (more: object = {}) => ({
  service,
  router,
  binding: 'transport',
  address: 'tcp:localhost:80',
  ...more,
})

describe('a terminator', () => {
  it('shows its service and router, and what it costs', async () => {
    const id = await manage.make('terminators', body({ cost: 3, precedence: 'required', identity: 'host-1' }))

    const view = await manage.get(`/terminators/${id}`)

    expect(view).toMatchObject({
      serviceId: service,
      service: { entity: 'services', id: service, name: `service ${sequence}` },
      routerId: router,
      router: { entity: 'transit-routers', id: router, name: `router ${sequence}` },
      binding: 'transport',
      address: 'tcp:localhost:80',
      cost: 3,
      dynamicCost: 0,
      precedence: 'required',
      identity: 'host-1',
    })
  })

  it('costs nothing, and has the usual precedence, unless said otherwise', async () => {
    const id = await manage.make('terminators', body())

    expect(await manage.get(`/terminators/${id}`)).toMatchObject({ cost: 0, precedence: 'default', identity: '' })
  })

  it('never shows its secret', async () => {
    const id = await manage.make('terminators', body({ identity: 'host', identitySecret: 'c2VjcmV0' }))

    const response = await manage.call('GET', `/terminators/${id}`)

    expect(response.text).not.toContain('c2VjcmV0')
    expect(response.body.data).not.toHaveProperty('identitySecret')
  })

  it.each([
    ['udp:localhost:53', 'udp'],
    ['tcp:localhost:80', 'transport'],
  ])('to %s is bound as %s where its binding is empty', async (address, binding) => {
    const id = await manage.make('terminators', body({ binding: '', address }))

    expect((await manage.get(`/terminators/${id}`)).binding).toBe(binding)
  })

  it('may move to another router, but not to another service', async () => {
    const id = await manage.make('terminators', body())
    const otherRouter = await manage.make('routers', { name: `other router ${sequence}` })
    const otherService = await manage.make('services', { name: `other service ${sequence}`, encryptionRequired: true })

    await manage.change('PUT', `/terminators/${id}`, body({ router: otherRouter }))
    const refused = await manage.refusal('PUT', `/terminators/${id}`, body({ service: otherService }))

    expect((await manage.get(`/terminators/${id}`)).routerId).toBe(otherRouter)
    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'service' })
  })

  it('keeps its instance identity on a replacement', async () => {
    const id = await manage.make('terminators', body({ identity: 'host-1' }))

    await manage.change('PUT', `/terminators/${id}`, body({ cost: 1 }))

    expect(await manage.get(`/terminators/${id}`)).toMatchObject({ identity: 'host-1', cost: 1 })
  })

  it.each([
    ['an unknown service', { service: 'nope' }, 404, 'NOT_FOUND', 'service'],
    ['an unknown router', { router: 'nope' }, 400, 'COULD_NOT_VALIDATE', 'router'],
    ['no address', { address: undefined }, 400, 'COULD_NOT_VALIDATE', 'address'],
    ['an empty address', { address: '' }, 400, 'COULD_NOT_VALIDATE', 'address'],
    ['no binding', { binding: undefined }, 400, 'COULD_NOT_VALIDATE', 'binding'],
    ['a precedence there is not', { precedence: 'first' }, 400, 'COULD_NOT_VALIDATE', 'precedence'],
    ['too great a cost', { cost: 70000 }, 400, 'COULD_NOT_VALIDATE', 'cost'],
    ['a secret that is not base64', { identitySecret: 'no!' }, 400, 'COULD_NOT_VALIDATE', 'identitySecret'],
  ])('refuses %s', async (_what, wrong, status, code, field) => {
    const refused = await manage.refusal('POST', '/terminators', body(wrong))

    expect(refused).toMatchObject({ status, code, field })
  })

  it.each(['services', 'edge-routers'])('goes with what it names among %s', async (plural) => {
    const id = await manage.make('terminators', body())

    await manage.change('DELETE', `/${plural}/${plural === 'services' ? service : router}`)

    expect(await manage.refusal('GET', `/terminators/${id}`)).toMatchObject({ status: 404 })
  })

  it('that a router made for its host can be ended, but not changed', async () => {
    const values = { serviceId: service, routerId: router, binding: 'edge', address: 'x', isSystem: true }
    const { id } = await world.system.write((tx) =>
      world.controller.entities.insert(tx, terminators, newEntity(tx, terminators, values)),
    )

    const patched = await manage.refusal('PATCH', `/terminators/${id}`, { cost: 1 })
    await manage.change('DELETE', `/terminators/${id}`)

    expect(patched).toMatchObject({ status: 400, code: 'ENTITY_CAN_NOT_BE_UPDATED' })
    expect(await manage.refusal('GET', `/terminators/${id}`)).toMatchObject({ status: 404 })
  })
})

describe('lists of terminators', () => {
  it.each([
    ['service', () => `service = "${service}"`],
    ['router', () => `router = "${router}"`],
    ['service.name', () => `service.name = "service ${sequence}"`],
    ['router.name', () => `router.name contains "router ${sequence}"`],
    ['instanceId', () => `instanceId = "host-${sequence}"`],
    ['address', () => `address = "tcp:host-${sequence}:1"`],
  ])('can be asked for by %s', async (_symbol, filter) => {
    const id = await manage.make(
      'terminators',
      body({ identity: `host-${sequence}`, address: `tcp:host-${sequence}:1` }),
    )

    const matches = await manage.get(`/terminators?filter=${encodeURIComponent(filter())}`)

    expect(matches.map((terminator: { id: string }) => terminator.id)).toEqual([id])
  })

  it('cannot be sorted by the name of what they refer to', async () => {
    const refused = await manage.refusal('GET', `/terminators?filter=${encodeURIComponent('sort by service.name')}`)

    expect(refused).toMatchObject({ status: 400, code: 'INVALID_FILTER' })
  })

  it('are sub-lists of their services', async () => {
    const id = await manage.make('terminators', body())

    const matches = await manage.get(`/services/${service}/terminators`)

    expect(matches.map((terminator: { id: string }) => terminator.id)).toEqual([id])
    expect(matches[0].address).toBe('tcp:localhost:80')
  })
})

describe('the terminators of a service, for a client', () => {
  it('are shown with what a client needs to address one, to identities that may reach the service', async () => {
    const id = await manage.make('terminators', body({ identity: 'host-1' }))
    const client = await world.signIn({ roleAttributes: [`for ${sequence}`] })
    const path = `${CLIENT}/services/${service}/terminators`
    const before = await world.send({ method: 'GET', path, token: client.token })
    await manage.make('service-policies', {
      name: `policy ${sequence}`,
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`#for ${sequence}`],
      serviceRoles: [`@${service}`],
    })

    const { body: after } = await world.send({ method: 'GET', path, token: client.token })

    expect(before.status).toBe(404)
    expect(after.data.map((shown: { id: string }) => shown.id)).toEqual([id])
    expect(Object.keys(after.data[0]).sort()).toEqual(
      ['_links', 'createdAt', 'id', 'identity', 'routerId', 'service', 'serviceId', 'tags', 'updatedAt'].sort(),
    )
    expect(after.meta.pagination).toEqual({ limit: 10, offset: 0, totalCount: 1 })
  })
})
