// Lists of distinct values: what is in use as a role attribute, filtered, sorted and paged like any list.
import { beforeAll, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { listValues } from '../../src/storage/lists/value-lists.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

beforeAll(async () => {
  const attributes = [['staff', 'abroad'], ['staff'], ['Zürich', 'lab-1', 'lab-2'], []]
  for (const [at, roleAttributes] of attributes.entries()) {
    await world.controller.entities.create(world.system, identities, {
      name: `identity ${at}`,
      typeId: 'Device',
      isAdmin: false,
      roleAttributes,
    })
  }
})

const listed = async (parameters: ListParameters, defaultLimit?: number | 'none') =>
  listValues(world.controller.store, world.system, identities, 'roleAttributes', planList(parameters, defaultLimit))

describe('a list of the attributes in use', () => {
  it('has each of them once, in the order of their bytes', async () => {
    expect(await listed({})).toEqual({
      items: ['Zürich', 'abroad', 'lab-1', 'lab-2', 'staff'],
      total: 5,
      limit: 10,
      offset: 0,
    })
  })

  it.each([
    [{ filter: 'id contains "lab"' }, ['lab-1', 'lab-2'], 2],
    [{ filter: 'id icontains "ZÜR"' }, ['Zürich'], 1],
    [{ filter: 'id = "staff"' }, ['staff'], 1],
    [{ filter: 'id = "unknown"' }, [], 0],
    [{ filter: 'not (id in ["staff", "abroad"])' }, ['Zürich', 'lab-1', 'lab-2'], 3],
    [{ filter: 'true sort by id desc skip 1 limit 2' }, ['lab-2', 'lab-1'], 5],
    [{ sort: 'id desc', limit: 1 }, ['staff'], 5],
    [{ sort: 'name asc' }, ['Zürich', 'abroad', 'lab-1', 'lab-2', 'staff'], 5],
    [{ sort: 'name desc', limit: 1 }, ['staff'], 5],
    [{ filter: 'name icontains "LAB" sort by name desc' }, ['lab-2', 'lab-1'], 2],
    [{ limit: 2, offset: 1 }, ['abroad', 'lab-1'], 5],
    [{ offset: 7 }, [], 5],
    [{ limit: -1, offset: 3 }, ['lab-2', 'staff'], 5],
  ])('returns what %j selects', async (parameters, values, total) => {
    const page = await listed(parameters)

    expect(page).toMatchObject({ items: values, total })
  })

  it.each([
    [{ filter: 'tags.x = "x"' }, 'INVALID_FILTER'],
    [{ filter: 'id = ' }, 'INVALID_FILTER'],
    [{ sort: 'createdAt' }, 'INVALID_SORT_IDENTIFIER'],
  ])('refuses %j', async (parameters, code) => {
    await expect(listed(parameters)).rejects.toMatchObject({ code })
  })

  it('gives all of thousands where no limit is asked for, each once', async () => {
    const many = Array.from({ length: 2_500 }, (_, at) => `many-${String(at).padStart(5, '0')}`)
    const { id } = await world.controller.entities.create(world.system, identities, {
      name: 'of many roles',
      typeId: 'Device',
      isAdmin: false,
      roleAttributes: many,
    })

    const forward = await listed({ filter: 'id contains "many"' }, 'none')
    const backward = await listed({ filter: 'id contains "many" sort by id desc' }, 'none')

    expect(forward).toEqual({ items: many, total: 2_500, limit: 'none', offset: 0 })
    expect(backward.items).toEqual(many.toReversed())
    await world.controller.entities.remove(world.system, identities, id)
  })

  it('drops an attribute with its last record', async () => {
    const { id } = await world.controller.entities.create(world.system, identities, {
      name: 'the last',
      typeId: 'Device',
      isAdmin: false,
      roleAttributes: ['fleeting', 'staff'],
    })
    const before = await listed({ filter: 'id = "fleeting"' })

    await world.controller.entities.remove(world.system, identities, id)

    expect(before.total).toBe(1)
    expect(await listed({ filter: 'id = "fleeting"' })).toMatchObject({ items: [], total: 0 })
    expect((await listed({})).total).toBe(5)
  })
})
