// Lists of what memory holds: filtered, sorted and paged as lists of tables are.
import { beforeAll, describe, expect, it } from 'vitest'
import { compileFilterSource } from '../../src/definitions/model/filter-symbols.ts'
import { defineResource } from '../../src/definitions/resources/define.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { f } from '../../src/definitions/schema/fields.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { planList } from '../../src/storage/lists/list-plan.ts'
import { listFromMemory, type MemoryRow } from '../../src/storage/lists/memory-lists.ts'
import { useController } from '../world/use-controller.ts'

const shape = defineResource({
  name: 'parcel',
  plural: 'parcels',
  summary: 'Something that only memory holds.',
  fields: {
    label: f.text({ filter: true, nullable: true }),
    weight: f.int({ min: 0, max: 100, filter: true }),
    isOpen: f.bool({ filter: true }),
    serviceId: f.reference('services', { as: 'service', filter: 'service', nullable: true }),
  },
  columns: [],
  example: { create: {}, filter: 'isOpen = true' },
})
const source = compileFilterSource(shape)

const world = useController()
let serviceId: string
let items: readonly MemoryRow[]

beforeAll(async () => {
  await world.system.write(async (tx) => {
    const service = newEntity(tx, services, { name: 'post', encryptionRequired: true })
    serviceId = service.id
    await world.controller.entities.insert(tx, services, service)
  })
  const item = (id: string, label: string | null, weight: number, isOpen: number, of: string | null): MemoryRow => ({
    id,
    createdAt: Date.UTC(2026, 0, weight),
    updatedAt: 0,
    tags: JSON.stringify({ colour: isOpen ? 'red' : 'blue' }),
    label,
    weight,
    isOpen,
    serviceId: of,
  })
  items = [
    item('c', 'It\'s "quoted" \\ Ä', 3, 1, serviceId),
    item('a', null, 1, 0, null),
    item('b', 'plain', 2, 1, 'gone'),
    item('d', 'Plain', 2, 0, serviceId),
  ]
})

async function ids(filter: string, others: { sort?: string; limit?: number; offset?: number } = {}) {
  const plan = planList({ filter, ...others })
  const page = await listFromMemory(world.controller.store, world.system, {
    source,
    plan,
    items,
    toRow: (item) => item,
  })
  return { ids: page.items.map(({ id }) => id).join(''), total: page.total }
}

describe('a list of what memory holds', () => {
  it.each([
    ['', 'abcd'],
    ['limit none', 'abcd'],
    ['true', 'abcd'],
    ['isOpen = true', 'bc'],
    ['not isOpen', 'ad'],
    ['label = "plain"', 'b'],
    ['label icontains "PLAIN"', 'bd'],
    ['label = "It\'s \\"quoted\\" \\\\ Ä"', 'c'],
    ['label = null', 'a'],
    ['label != "plain"', 'acd'],
    ['weight between 2 and 3', 'bd'],
    ['weight > 1 and not (id in ["b"])', 'cd'],
    ['createdAt < datetime(2026-01-02T00:00:00Z)', 'a'],
    ['tags.colour = "red"', 'bc'],
    ['service.name = "post"', 'cd'],
    ['service = null', 'a'],
    ['true sort by weight desc', 'cbda'],
    ['true sort by isOpen, label desc', 'dabc'],
    ['true sort by weight skip 1 limit 2', 'bd'],
  ])('has for the filter %s the items %s', async (filter, expected) => {
    expect((await ids(filter)).ids).toBe(expected)
  })

  it('says how many items match, on whatever page', async () => {
    expect(await ids('isOpen = true', { limit: 1 })).toEqual({ ids: 'b', total: 2 })
    expect(await ids('', { limit: 1, offset: 2 })).toEqual({ ids: 'c', total: 4 })
    expect(await ids('', { sort: 'id desc', limit: 1 })).toEqual({ ids: 'd', total: 4 })
  })

  it.each(['colour = 1', 'weight = "a"', 'isOpen > true', 'label sort by service.name'])(
    'refuses %s',
    async (filter) => {
      await expect(ids(filter)).rejects.toMatchObject({ code: 'INVALID_FILTER' })
    },
  )
})
