// Cached results of queries: a list is read again once what it was read from has changed, and not before.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { servicePolicies } from '../../src/definitions/resources/service-policies.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { list } from '../../src/storage/lists/lists.ts'
import { ResultCache } from '../../src/storage/result-cache.ts'
import { type TestController, testController } from '../world/controller.ts'
import { random } from '../world/random.ts'

describe('a cached result', () => {
  let cache: ResultCache
  let reads: number
  const read = (value: string, tables = ['identities']) =>
    cache.find('key', async () => {
      reads += 1
      return { value, tables, bytes: value.length }
    })

  beforeEach(() => {
    cache = new ResultCache()
    reads = 0
  })

  it('is read once, until a commit changes one of its tables', async () => {
    expect([await read('first', ['identities', 'services']), await read('second')]).toEqual(['first', 'first'])

    cache.apply({ position: 1, at: 1, changes: [], tables: ['services'] })

    expect([await read('third'), await read('fourth')]).toEqual(['third', 'third'])
    expect(reads).toBe(2)
  })

  it('stays if a commit changes other tables', async () => {
    await read('first')
    cache.apply({ position: 1, at: 1, changes: [], tables: ['services', 'identities_role_attributes'] })

    expect(await read('second')).toBe('first')
  })

  it('is outdated already if a commit changes its table while it is read', async () => {
    const slow = cache.find('key', () => Promise.resolve({ value: 'old', tables: ['identities'], bytes: 3 }))
    cache.apply({ position: 1, at: 1, changes: [], tables: ['identities'] })

    expect(await slow).toBe('old')
    expect(await read('new')).toBe('new')
  })

  it('is outdated already if all are discarded while it is read', async () => {
    const slow = cache.find('key', () => Promise.resolve({ value: 'old', tables: ['identities'], bytes: 3 }))
    cache.clear()

    expect(await slow).toBe('old')
    expect(await read('new')).toBe('new')
  })

  it('is not an error', async () => {
    const fail = () => Promise.reject(new Error('too costly'))

    await expect(cache.find('key', fail)).rejects.toThrow('too costly')
    expect(await read('first')).toBe('first')
  })
})

describe('a cached list', () => {
  let world: TestController
  const CHANGES = 60
  const NAMES = ['a', 'b', 'c', 'd', 'e', 'f']
  const ROLES = ['staff', 'abroad', 'guests']
  const lists = [
    ...[
      {},
      { limit: 2 },
      { limit: 2, offset: 1 },
      { sort: 'name desc', limit: 3 },
      { filter: 'sort by name desc', limit: 3 },
      { filter: 'name = "a"' },
      { filter: 'not (name in ["a", "b"]) sort by externalId, name limit 2' },
      { filter: 'anyOf(roleAttributes) = "staff" sort by name limit 2' },
      { filter: 'isEmpty(roleAttributes)' },
      { filter: 'authPolicy.name = "Default" limit 1' },
      { roleFilter: ['#staff'], limit: 1 },
      { roleFilter: ['#staff', '#abroad'], roleSemantic: 'AnyOf', limit: 1 },
      { roleFilter: ['#staff', '#abroad'] },
    ].map((parameters) => ({ resource: identities, parameters: parameters as ListParameters })),
    ...[
      {},
      { filter: 'count(identities) > 1' },
      { filter: 'isEmpty(from identities where name = "a") limit 1' },
      { filter: 'not isEmpty(services) sort by name' },
    ].map((parameters) => ({ resource: servicePolicies, parameters: parameters as ListParameters })),
    { resource: services, parameters: { limit: 1 } as ListParameters },
  ]
  const page = async ({ resource, parameters }: (typeof lists)[number]) => {
    const { keys, total } = await list(world.controller.store, world.system, { resource, plan: planList(parameters) })
    return { resource: resource.plural, parameters, keys, total }
  }

  beforeAll(async () => {
    world = await testController()
  })
  afterAll(() => world.close())

  it('shows after each change what the rows hold', async () => {
    const { entities, store } = world.controller
    const dice = random(7)
    const ids = new Map<string, string>()
    const roles = () => ROLES.filter(() => dice.below(2) === 0)
    const selectors = () => roles().map((role) => `#${role}`)
    const change = async () => {
      const resource = dice.pick([identities, identities, services, servicePolicies])
      const name = dice.pick(NAMES)
      const key = `${resource.plural} ${name}`
      const id = ids.get(key)
      const values =
        resource === servicePolicies
          ? { identityRoles: selectors(), serviceRoles: selectors() }
          : { roleAttributes: roles(), ...(resource === identities ? { externalId: `${key} ${dice.below(3)}` } : {}) }
      if (id === undefined) {
        const fixed = { name, ...(resource === identities ? { typeId: 'Device' } : {}) }
        const policy = resource === servicePolicies ? { type: 'Dial', semantic: 'AnyOf' } : {}
        const entity = await entities.create(world.system, resource, { ...fixed, ...policy, ...values } as never)
        ids.set(key, (entity as { id: string }).id)
      } else if (dice.below(3) === 0) {
        await entities.remove(world.system, resource, id)
        ids.delete(key)
      } else await entities.patch(world.system, resource, id, values as never)
    }

    for (let at = 0; at < CHANGES; at++) {
      await change()
      const cached = await Promise.all(lists.map(page))
      const again = await Promise.all(lists.map(page))
      store.results.clear()
      const read = await Promise.all(lists.map(page))

      expect(cached).toEqual(read)
      expect(again).toEqual(read)
    }
  })
})
