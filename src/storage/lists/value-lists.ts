// Lists of distinct values, such as the role attributes that are in use. Their cost is proportional to what they return.
import { setImmediate } from 'node:timers/promises'
import { toSetTableName } from '../../definitions/model/columns.ts'
import { type FilterSource, type FilterSymbol, toFilterSource } from '../../definitions/model/filter-symbols.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { FilterCompiler } from '../filter/compile.ts'
import type { Predicate } from '../filter/tree.ts'
import { compileSql, getSqlDialect } from '../sql-dialect.ts'
import type { Store } from '../store.ts'
import { type Context, toReader } from '../transactions/context.ts'
import type { ListPlan } from './list-plan.ts'
import { compileOrder, type Window } from './lists.ts'
import { sqlText } from './sql-text.ts'

// Consoles sort every list by `name`.
const SYMBOLS = ['id', 'name'].map(
  (name): FilterSymbol => ({ name, type: 'string', column: 'value', member: name, isNullable: false }),
)

/** Values as filters see them: `id` and `name` are the value itself, and the only symbols. */
export const valueSource: FilterSource = toFilterSource({
  table: 'found',
  symbols: new Map(SYMBOLS.map((symbol) => [symbol.name, symbol])),
  key: { column: 'value', isDescending: false },
})

export interface ValuePage extends Window {
  readonly items: readonly string[]
}

// How many values are read at a time; the event loop gets a turn in between.
const BATCH = 1_000

/**
 * One page of the distinct members of a set field of all records, in the order of their bytes. The plan's filter and sort
 * know the symbols `id` and `name`; a limit of `none` gives all of them.
 * @throws INVALID_FILTER, INVALID_SORT_IDENTIFIER
 */
export async function listValues(
  store: Store,
  context: Pick<Context, 'db' | 'caller'>,
  resource: AnyResource,
  field: string,
  plan: ListPlan,
): Promise<ValuePage> {
  const { db, caller } = context
  const reader = toReader(caller)
  const { limit, offset, predicate } = plan
  const table = toSetTableName(resource, field)
  const compiler = new FilterCompiler(db, valueSource, { isGuarded: true })
  const condition = predicate ? compiler.compile(predicate).condition : sqlText`1 = 1`
  const isDescending = compileOrder(compiler, plan)[0]?.isDescending ?? false
  const exact = findExactValue(predicate)
  const matching = (start?: string) => {
    const values =
      exact === undefined
        ? getSqlDialect(db).distinctValues(table, 'value', isDescending, start)
        : sqlText`(select value from ${sqlText.table(table)} where value = ${exact} limit 1)`
    return sqlText<{ value: string }>`${values} as found where ${condition}`
  }

  const values: string[] = []
  let start: string | undefined
  for (;;) {
    const batchSize = limit === 'none' ? BATCH : Math.min(limit - values.length, BATCH)
    // The last value of the previous batch is found again, and skipped.
    const skip = start === undefined ? offset : 1
    const query = sqlText<{ value: string }>`select value from ${matching(start)} limit ${batchSize} offset ${skip}`
    const rows = await store.scan({ compile: () => compileSql(db, query) }, reader)
    for (const { value } of rows) values.push(value)
    start = rows.at(-1)?.value
    if (rows.length < batchSize || values.length === limit || start === undefined) break
    await setImmediate()
  }
  const isWhole = offset === 0 && (limit === 'none' || values.length < limit)
  const count = sqlText<{ n: number }>`select count(*) as n from ${matching()}`
  const total = isWhole ? values.length : await store.count({ compile: () => compileSql(db, count) }, [table], reader)
  return { items: values, total, limit, offset }
}

/** The only value that can pass, if the predicate is an equality. */
function findExactValue(predicate: Predicate | undefined): string | undefined {
  const isEquality = predicate?.kind === 'compare' && predicate.operator === '=' && predicate.left.kind === 'symbol'
  return isEquality && predicate.right.kind === 'string' ? predicate.right.value : undefined
}
