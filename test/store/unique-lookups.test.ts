// Lists by an equality with a unique value: they find what the general statement of a list finds.
import { beforeAll, describe, expect, it } from 'vitest'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { identities } from '../../src/definitions/resources/identities.ts'
import { routers } from '../../src/definitions/resources/routers.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { list } from '../../src/storage/lists/lists.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

beforeAll(async () => {
  const { entities } = world.controller
  for (const name of ['laptop', 'phone', 'It\'s "quoted" \\ Ä']) {
    await entities.create(world.system, identities, { name, typeId: 'Device' })
  }
  await entities.create(world.system, edgeRouters, { name: 'edge-1' })
  await entities.create(world.system, routers, { name: 'transit-1' })
})

const find = async (resource: typeof identities | typeof edgeRouters, parameters: ListParameters) =>
  list(world.controller.store, world.system, { resource, plan: planList(parameters) })

describe('a list by a unique value', () => {
  it.each([
    ['"laptop"', 1],
    ['"It\'s \\"quoted\\" \\\\ Ä"', 1],
    ['"Laptop"', 0],
    ['"unknown"', 0],
  ])('finds the record of the name %s, as any other condition does', async (name, total) => {
    const { keys, ...page } = await find(identities, { filter: `name = ${name}`, limit: 3 })

    expect({ keys, page }).toMatchObject({ page: { total, limit: 3, offset: 0 } })
    expect(keys).toEqual((await find(identities, { filter: `not (name != ${name})`, limit: 3 })).keys)
    expect(keys).toHaveLength(total)
  })

  it('finds records of the resource only, if a table holds those of others too', async () => {
    expect((await find(edgeRouters, { filter: 'name = "edge-1"' })).keys).toHaveLength(1)
    expect((await find(edgeRouters, { filter: 'name = "transit-1"' })).keys).toEqual([])
  })

  it('counts the record that an offset leaves out', async () => {
    expect(await find(identities, { filter: 'name = "laptop"', offset: 1 })).toMatchObject({ keys: [], total: 1 })
  })

  it('is restricted by roles, too', async () => {
    expect((await find(identities, { filter: 'name = "laptop"', roleFilter: ['#staff'] })).keys).toEqual([])
  })

  it('refuses an order by what is not a field', async () => {
    const refused = find(identities, { filter: 'name = "laptop"', sort: 'nonsense' })

    await expect(refused).rejects.toMatchObject({ code: 'INVALID_SORT_IDENTIFIER' })
  })
})
