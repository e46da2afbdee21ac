// Random filters, orders and pages over random records give what an evaluation in memory gives.
import { join } from 'node:path'
import { sql } from 'kysely'
import { beforeAll, describe, expect, it } from 'vitest'
import { getCompiledResource } from '../../src/definitions/model/index.ts'
import { FilterCompiler } from '../../src/storage/filter/compile.ts'
import { planList } from '../../src/storage/lists/list-plan.ts'
import { list } from '../../src/storage/lists/lists.ts'
import { DatabaseFiles } from '../../src/storage/sqlite/database-files.ts'
import { Scans } from '../../src/storage/sqlite/scans.ts'
import { untyped } from '../../src/storage/untyped.ts'
import { type Random, random } from '../world/random.ts'
import { useController } from '../world/use-controller.ts'
import { type Listed, randomNetwork } from './random-network.ts'
import { compareText, QueryMaker, type Seen } from './random-queries.ts'

const RECORDS = 40
const QUERIES = 1_500

const world = useController()
let lists: Listed[]

beforeAll(async () => {
  lists = await randomNetwork(world, random(1), RECORDS)
})

/** Keys of an order, as text and as what they do. */
function randomOrder(dice: Random, { symbols }: Listed): { text: string; compare(a: Seen, b: Seen): number } {
  const sortable = symbols.filter(({ type }) => type !== 'set' && type !== 'tags')
  const keys = Array.from({ length: dice.below(3) }, () => ({
    ...dice.pick(sortable),
    direction: dice.pick(['', ' asc', ' DESC']),
  }))
  const text = keys.length === 0 ? '' : ` sort by ${keys.map(({ name, direction }) => name + direction).join(', ')}`
  return {
    text,
    compare(a, b) {
      for (const { name, direction } of keys) {
        const order = compareValues(a[name], b[name])
        if (order !== 0) return direction === ' DESC' ? -order : order
      }
      return compareText(a.id as string, b.id as string)
    },
  }
}

/** Missing values come first. */
function compareValues(a: unknown, b: unknown): number {
  const [left, right] = [a ?? null, b ?? null]
  if (left === right) return 0
  if (left === null) return -1
  if (right === null) return 1
  return typeof left === 'string' ? compareText(left, right as string) : Number(left) - Number(right)
}

describe.each([0, 1, 2, 3, 4])('list %i', (which) => {
  it('gives the rows, the order, the window and the total that were asked for', async () => {
    const listed = lists[which] as Listed
    const ids = new Map(
      (await untyped(world.controller.store.db).selectFrom(listed.resource.table).select(['n', 'id']).execute()).map(
        ({ n, id }) => [n, id],
      ),
    )
    for (let seed = 0; seed < QUERIES; seed++) {
      const dice = random(which * 100_000 + seed)
      const { text, passes } = new QueryMaker(dice, listed.symbols).expression()
      const order = randomOrder(dice, listed)
      const [limit, offset] = [dice.pick([undefined, 1, 3, 7, -1]), dice.pick([0, 0, 2, 9])]
      const filter = text + order.text
      const expected = listed.records.filter(passes).sort(order.compare)

      const plan = planList({ filter, offset, ...(limit ? { limit } : {}) })
      const page = await Promise.resolve()
        .then(() => list(world.controller.store, world.system, { resource: listed.resource, plan }))
        .catch((error) => {
          throw new Error(`${filter}: ${error.publicCause?.message ?? error.message}`)
        })

      const window = limit === -1 ? expected.slice(offset) : expected.slice(offset, offset + (limit ?? 10))
      expect({ filter, ids: page.keys.map((n) => ids.get(n)), total: page.total }).toEqual({
        filter,
        ids: window.map(({ id }) => id),
        total: expected.length,
      })
    }
  })
})

describe.each([0, 1, 2, 3, 4])('a guarded condition on list %i', (which) => {
  it('finds in a thread what it finds without its guard', async () => {
    const { resource, symbols } = lists[which] as Listed
    const { db } = world.controller.store
    const source = getCompiledResource(resource.plural).filterSource
    const file = join(world.directory, 'controller.db')
    const scans = new Scans(file, new DatabaseFiles(file))
    for (let seed = 0; seed < QUERIES / 10; seed++) {
      const { text } = new QueryMaker(random(which * 200_000 + seed), symbols).expression()
      const { predicate } = planList({ filter: text })
      if (!predicate) continue
      const query = (isGuarded: boolean) => {
        const { condition } = new FilterCompiler(db, source, { isGuarded }).compile(predicate)
        return sql<{ n: number }>`select n from ${sql.table(resource.table)} where ${condition} order by n`.compile(db)
      }

      const { rows } = await db.executeQuery(query(false))
      const guarded = await scans.rows(query(true), { id: 'reader', isAdministrator: true })

      expect({ text, rows: guarded }).toEqual({ text, rows })
    }
    await scans.close()
  })
})
