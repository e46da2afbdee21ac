// The lists that are expected to cost so much that their statements count what they read.
import { sql } from 'kysely'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { list, queryRows } from '../../src/storage/lists/lists.ts'
import { useController } from '../world/use-controller.ts'

// The keys of records grow with their number, so one record with such a key makes a table look large.
const MANY_RECORDS = 100_000

const world = useController()

beforeAll(async () => {
  const { entities } = world.controller
  const { id } = await entities.create(world.system, identities, { name: 'laptop', typeId: 'Device' })
  await entities.create(world.system, identities, { name: 'phone', typeId: 'Device' })
  await world.system.write((tx) => sql`update identities set n = ${MANY_RECORDS} where id = ${id}`.execute(tx.db))
})

const isCostly = async (filter: string) =>
  (await queryRows(world.controller.store, world.system, { resource: identities, plan: planList({ filter }) })).isCostly

describe('a list of a large table', () => {
  it('is costly if each record may have to be read', async () => {
    expect(await isCostly('name contains "top"')).toBe(true)
    expect(await isCostly('not (name = "laptop")')).toBe(true)
    expect(await isCostly('name = "laptop" or externalId = "7"')).toBe(true)
  })

  it('is not costly if an index finds the only record that can match', async () => {
    expect(await isCostly('name = "laptop"')).toBe(false)
    expect(await isCostly('name = "laptop" sort by createdAt')).toBe(false)
  })
})

describe('the total of a large list', () => {
  /** The statements that count while a page of one record is read. */
  const listCounts = async (parameters: ListParameters): Promise<string[]> => {
    const { store } = world.controller
    const count = vi.spyOn(store, 'count')
    store.results.clear()
    await list(store, world.system, { resource: identities, plan: planList({ ...parameters, limit: 1 }) })
    const texts = count.mock.calls.map(([query]) => query.compile().sql)
    count.mockRestore()
    return texts.filter((text) => text.includes('count(*)'))
  }

  it.each<[string, ListParameters]>([
    ['of all records', {}],
    ['of all records in an order', { sort: 'createdAt desc' }],
    ['of a filter that all records pass, in an order', { filter: 'true sort by createdAt desc' }],
  ])('%s is counted without a condition, which the database does without reading each', async (_what, parameters) => {
    expect(await listCounts(parameters)).toEqual(['select count(*) as n from "identities"'])
  })

  it('counts its cost if each record may have to be tested', async () => {
    expect(await listCounts({ filter: 'name contains "o" sort by createdAt' })).toEqual([
      expect.stringMatching(/ where .*spend.*instr/),
    ])
  })
})
