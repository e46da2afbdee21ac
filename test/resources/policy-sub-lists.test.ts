// The sub-lists of policies, from every side: identities, services and edge routers, and the policies between them.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { AnyResource } from '../../src/definitions/resources/define.ts'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { servicePolicies } from '../../src/definitions/resources/service-policies.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { type TestController, testController } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { kinds, makeRecord } from '../world/policies.ts'

let world: TestController
let manage: Management

beforeAll(async () => {
  world = await testController()
  manage = await managementOf(world)
})
afterAll(() => world.close())

describe('what policies join', () => {
  let identity: { id: string; name: string }
  let service: { id: string; name: string }
  let router: { id: string; name: string }
  const policies: Record<string, string> = {}

  beforeAll(async () => {
    identity = await makeRecord(manage, 'identities', ['joined'])
    service = await makeRecord(manage, 'services', ['joined'])
    router = await makeRecord(manage, 'edge-routers', ['joined'])
    await makeRecord(manage, 'identities')
    await makeRecord(manage, 'services')
    await makeRecord(manage, 'edge-routers')
    for (const { plural, more, sides } of kinds) {
      policies[plural] = newName('joining')
      const roles = Object.fromEntries(Object.keys(sides).map((field) => [field, ['#joined']]))
      await manage.make(plural, { name: policies[plural], semantic: 'AllOf', ...more, ...roles })
    }
  })

  const subLists = [
    ['identities', 'service-policies', () => policies['service-policies']],
    ['identities', 'edge-router-policies', () => policies['edge-router-policies']],
    ['identities', 'services', () => service.name],
    ['identities', 'services?policyType=dial', () => service.name],
    ['identities', 'edge-routers', () => router.name],
    ['services', 'service-policies', () => policies['service-policies']],
    ['services', 'service-edge-router-policies', () => policies['service-edge-router-policies']],
    ['services', 'identities', () => identity.name],
    ['services', 'identities?policyType=dial', () => identity.name],
    ['services', 'edge-routers', () => router.name],
    ['edge-routers', 'edge-router-policies', () => policies['edge-router-policies']],
    ['edge-routers', 'service-edge-router-policies', () => policies['service-edge-router-policies']],
    ['edge-routers', 'identities', () => identity.name],
    ['edge-routers', 'services', () => service.name],
  ] as const
  const recordOf = (kind: string) => ({ identities: identity, services: service, 'edge-routers': router })[kind]

  it.each(subLists)('is seen from %s as their %s', async (kind, subList, expected) => {
    expect(await manage.names(`/${kind}/${recordOf(kind)?.id}/${subList}`)).toEqual([expected()])
  })

  it.each(['identities', 'services'])('is not seen from %s by the other right', async (kind) => {
    const other = kind === 'identities' ? 'services' : 'identities'

    expect(await manage.names(`/${kind}/${recordOf(kind)?.id}/${other}?policyType=bind`)).toEqual([])
  })

  it('is still seen by a controller that starts anew', async () => {
    const { directory, clock } = world
    await world.stop()
    world = await testController({ directory, clock })
    manage = await managementOf(world)

    for (const [kind, subList, expected] of subLists) {
      expect(await manage.names(`/${kind}/${recordOf(kind)?.id}/${subList}`)).toEqual([expected()])
    }
  })

  it('is seen through more policies than a statement could ask for one by one', async () => {
    const policyOf = (at: number) =>
      newEntity(world.system, servicePolicies, {
        name: newName('policy'),
        type: 'Dial',
        semantic: 'AllOf',
        identityRoles: ['#joined', `#joined ${at}`],
        serviceRoles: [`@${service.id}`],
      })
    await world.system.write(async (tx) => {
      for (let at = 0; at < 1_500; at++) await world.controller.entities.insert(tx, servicePolicies, policyOf(at))
    })

    expect(await manage.names(`/services/${service.id}/identities`)).toEqual([identity.name])
  })

  it('is no longer seen once an attribute is gone', async () => {
    await manage.change('PATCH', `/edge-routers/${router.id}`, { roleAttributes: [] })

    expect(await manage.names(`/identities/${identity.id}/edge-routers`)).toEqual([])
    expect(await manage.names(`/services/${service.id}/edge-routers`)).toEqual([])
    expect(await manage.names(`/edge-routers/${router.id}/identities`)).toEqual([])
  })
})

describe('what an identity may reach, where it is much', () => {
  const MANY = 150

  /** So many records of a resource, every one with an attribute, every third with another. */
  async function makeMany(resource: AnyResource, attributes: readonly [string, string]) {
    const entities = Array.from({ length: MANY }, (_, at) =>
      newEntity(world.system, resource, {
        name: `${resource.name} ${String(at).padStart(3, '0')} ${attributes[0]}`,
        roleAttributes: at % 3 === 0 ? attributes : [attributes[0]],
        ...('isEdge' in resource.fields ? { isEdge: true } : {}),
      }),
    )
    await world.system.write(async (tx) => {
      for (const entity of entities) await world.controller.entities.insert(tx, resource, entity)
    })
    return entities.map(({ id, name }) => ({ id, name: String(name) }))
  }

  it.each([
    ['every one', 'AnyOf', ['#all'], () => true],
    ['all with an attribute', 'AnyOf', ['#much', '#nothing'], () => true],
    ['those with several', 'AllOf', ['#much', '#more'], (at: number) => at % 3 === 0],
  ] as const)('is listed as it is: %s', async (_what, semantic, roles, isGranted) => {
    const [much, more] = [newName('much'), newName('more')]
    const own = { '#much': `#${much}`, '#more': `#${more}` } as const
    const creation = await makeMany(services, [much, more])
    const left = creation[1]?.id
    const { id } = await makeRecord(manage, 'identities', [much])
    await manage.make('service-policies', {
      name: newName('policy'),
      type: 'Dial',
      semantic,
      identityRoles: [`#${much}`],
      serviceRoles: roles.length === 1 ? ['#all'] : [...roles.map((role) => own[role as '#much'] ?? role), `@${left}`],
    })
    const expected = creation.filter((service, at) => isGranted(at) || service.id === left).map(({ name }) => name)
    const filter = encodeURIComponent(`name contains "${much}" sort by name limit 500`)

    expect(await manage.names(`/identities/${id}/services?filter=${filter}`)).toEqual(expected)
    expect(await manage.names(`/identities/${id}/services?policyType=bind&filter=${filter}`)).toEqual([])
    expect(await manage.names(`/services?asIdentity=${id}&filter=${filter}`)).toEqual(expected)
  })

  it('is listed as it is: edge routers', async () => {
    const [much, more] = [newName('much'), newName('more')]
    const creation = await makeMany(edgeRouters, [much, more])
    const { id } = await makeRecord(manage, 'identities', [much])
    const service = await makeRecord(manage, 'services', [much])
    const policy = { name: newName('policy'), semantic: 'AnyOf', edgeRouterRoles: [`#${much}`] }
    await manage.make('edge-router-policies', { ...policy, identityRoles: [`@${id}`] })
    await manage.make('service-edge-router-policies', { ...policy, serviceRoles: [`@${service.id}`] })
    const list = `edge-routers?filter=${encodeURIComponent('true sort by name limit 500')}`

    expect(await manage.names(`/identities/${id}/${list}`)).toEqual(creation.map(({ name }) => name))
    expect(await manage.names(`/services/${service.id}/${list}`)).toEqual(creation.map(({ name }) => name))
  })
})
