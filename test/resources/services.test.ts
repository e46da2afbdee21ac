// Services: their own rules, how others see them, and lists of them by roles.
import { beforeAll, describe, expect, it } from 'vitest'
import { MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { serviceMakers } from '../world/services.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
const { makeType, makeConfig, makeService, grant } = serviceMakers(
  () => world,
  () => manage,
)

beforeAll(async () => {
  manage = await managementOf(world)
})

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
    expect(await manage.refusal('GET', '/services?asIdentity=unknown')).toMatchObject({ status: 404 })
  })

  it('are all of them for an administrator, who may dial none of them without a policy', async () => {
    const id = await makeService()

    const expected = { permissions: [], postureQueries: [], config: {} }
    expect(await manage.get(`/services/${id}`)).toMatchObject(expected)
    expect(await manage.get(`/services?filter=${encodeURIComponent(`id = "${id}"`)}`)).toMatchObject([expected])
  })

  it('are shown as the caller sees them in the sub-lists of others', async () => {
    const type = await makeType()
    const config = await makeConfig(type.id, {})
    const [granted, other] = [await makeService({ configs: [config] }), await makeService({ configs: [config] })]
    const { token } = await world.signIn({ name: 'dialing administrator', isAdmin: true, roleAttributes: ['dialer'] })
    await grant('dialer', granted)

    const { body } = await world.send({ method: 'GET', path: `${MANAGEMENT}/configs/${config}/services`, token })

    const readView = new Map(body.data.map((service: { id: string }) => [service.id, service]))
    expect(readView.get(granted)).toMatchObject({ permissions: ['Dial'], config: {} })
    expect(readView.get(other)).toMatchObject({ permissions: [], config: {}, postureQueries: [] })
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
