// Lists of what only memory holds, filtered and sorted by the same statements as tables.
//
// So the query language has one evaluator, and the work for such a list is limited as for a table.
import type { Compilable } from 'kysely'
import type { FilterSource } from '../../definitions/model/filter-symbols.ts'
import type { Stored } from '../../definitions/schema/field.ts'
import { FilterCompiler } from '../filter/compile.ts'
import { compileSql, getSqlDialect } from '../sql-dialect.ts'
import type { Store } from '../store.ts'
import { type Context, toReader } from '../transactions/context.ts'
import type { ListPlan } from './list-plan.ts'
import { compileOrderBy, type Window } from './lists.ts'
import { sqlText } from './sql-text.ts'

/** An item as filters see it: the columns of the symbols of its source, as a table would hold them. */
export type MemoryRow = { readonly id: string } & Readonly<Record<string, Stored>>

/** One page of items. */
export interface MemoryPage<Item> extends Window {
  readonly items: readonly Item[]
}

/** A list of what memory holds. */
export interface MemoryList<Item> {
  /** The symbols that the plan may use; its table is only the name that statements give to the items. */
  readonly source: FilterSource
  readonly plan: ListPlan
  readonly items: readonly Item[]
  readonly toRow: (item: Item) => MemoryRow
}

/**
 * One page of the items. They are passed to the database as one JSON parameter only if the plan has a filter or an order;
 * without them, they are ordered by id.
 * @throws INVALID_FILTER, INVALID_SORT_IDENTIFIER
 */
export async function listFromMemory<Item>(
  store: Store,
  context: Pick<Context, 'db' | 'caller'>,
  memoryList: MemoryList<Item>,
): Promise<MemoryPage<Item>> {
  const { plan, items, toRow } = memoryList
  const { limit, offset } = plan
  const isPlain = !plan.predicate && plan.order.keys.length === 0
  const matching = isPlain ? sortById(items, toRow) : await selectMatching(store, context, memoryList)
  const page = matching.slice(offset, limit === 'none' ? undefined : offset + limit)
  return { items: page, total: matching.length, limit, offset }
}

function sortById<Item>(items: readonly Item[], toRow: (item: Item) => MemoryRow): Item[] {
  return items
    .map((item) => ({ item, id: toRow(item).id }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ item }) => item)
}

async function selectMatching<Item>(
  store: Store,
  { db, caller }: Pick<Context, 'db' | 'caller'>,
  { source, plan, items, toRow }: MemoryList<Item>,
): Promise<Item[]> {
  const compiler = new FilterCompiler(db, source, { isGuarded: true })
  const condition = plan.predicate ? compiler.compile(plan.predicate).condition : sqlText`1 = 1`
  const columns = [...new Set([source.key.column, ...[...source.symbols.values()].map(({ column }) => column)])]
  const rows = items.map((item, position) => ({ ...pick(toRow(item), columns), position }))
  const dialect = getSqlDialect(db)
  const members = ['position', ...columns].map(
    (column) => sqlText`${dialect.member(sqlText.ref('value'), [column])} as ${sqlText.ref(column)}`,
  )
  const elements = dialect.elements(sqlText`${JSON.stringify(rows)}`)
  const query = sqlText<{ position: number }>`select position from
    (select ${sqlText.join(members)} from ${elements}) as ${sqlText.table(source.table)}
    where ${condition} ${compileOrderBy(compiler, plan)}`
  const statement: Compilable<{ position: number }> = { compile: () => compileSql(db, query) }
  const positions = await store.scan(statement, toReader(caller))
  return positions.map(({ position }) => items[position] as Item)
}

function pick(row: MemoryRow, columns: readonly string[]): Record<string, Stored> {
  return Object.fromEntries(columns.map((column) => [column, row[column] ?? null]))
}
