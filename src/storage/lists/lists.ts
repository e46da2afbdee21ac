// Pages of records: filter, order, window and total, by statements whose cost is proportional to what they return.
import type { Compilable, CompiledQuery, SqlBool } from 'kysely'
import { toSetTableName } from '../../definitions/model/columns.ts'
import type { FilterSource } from '../../definitions/model/filter-symbols.ts'
import { compiledResources, getCompiledResource } from '../../definitions/model/index.ts'
import type { RecordScope } from '../../definitions/permissions/words.ts'
import type { AnyResource, AnyRow } from '../../definitions/resources/define.ts'
import type { Scope } from '../behavior.ts'
import { subtypeConditions } from '../entities/subtypes.ts'
import { compileUniqueLookup, findUniqueEquality, findUniqueLookup } from '../entities/unique-lookups.ts'
import { type CompiledFilter, FilterCompiler, type OrderTerm } from '../filter/compile.ts'
import type { Predicate } from '../filter/tree.ts'
import { compileSql, getSqlDialect, type RowCountHint } from '../sql-dialect.ts'
import type { Store } from '../store.ts'
import { type Context, toReader } from '../transactions/context.ts'
import { isOneOf } from '../untyped.ts'
import { type ListPlan, withSortParameterErrors } from './list-plan.ts'
import {
  isSelective,
  parseRoleFilter,
  type RecordSearch,
  scopesCondition,
  selectorsCondition,
} from './role-conditions.ts'
import { type SqlText, sqlText, toWhere } from './sql-text.ts'

type Reading = Pick<Context, 'db' | 'caller'>

/** Restricts a list to some records of the resource, in addition to the caller's filter. */
export type Restriction =
  | Scope
  | { readonly field: string; readonly equals: string | number }
  | { readonly field: string; readonly contains: string }
  | { readonly field: string; readonly atMost: number }
  | { readonly scopes: readonly RecordScope[] }
  | RestrictingCondition

/** A condition of one resource, with the tables that it reads besides, and the cost of testing one record. */
export interface RestrictingCondition {
  readonly condition: SqlText<SqlBool>
  readonly tables: readonly string[]
  readonly cost: number
}

/** The part of a list that a response shows, and the total. */
export interface Window {
  readonly limit: number | 'none'
  readonly offset: number
  readonly total: number
}

export interface Page extends Window {
  /** Keys (`n`) of the records, in order. */
  readonly keys: readonly number[]
  /** The tables that it was read from. */
  readonly tables: readonly string[]
}

/** All rows of a list, and whether finding them may take so long that a thread should do it. */
export interface RowQuery<Row = AnyRow> extends Compilable<Row> {
  readonly isCostly: boolean
}

/** The conditions of a list, in the form that finds its first records fastest, or all of them. */
type Conditions = (hint: RowCountHint) => Promise<readonly SqlText<SqlBool>[]>

/** The records of a list: those of a resource that match the plan and the restrictions. */
export interface RecordList {
  readonly resource: AnyResource
  readonly plan: ListPlan
  readonly restrictions?: readonly Restriction[]
  /** The symbols that the plan may use; those of the resource if it is absent. */
  readonly source?: FilterSource
}

/** A list of any table: the rows that match the plan, which may use the symbols of `source`, and meet the conditions. */
export interface ListQuery {
  readonly context: Reading
  readonly source: FilterSource
  readonly plan: ListPlan
  readonly conditions: Conditions
  /** The cost of testing one record by the conditions, if it is more than that of a few comparisons. */
  readonly conditionCost?: number
  /** The tables that the conditions read; complete once these are built. */
  readonly tables: ReadonlySet<string>
}

/** The query of a list that has no conditions besides its plan. */
export function toListQuery(context: Reading, source: FilterSource, plan: ListPlan): ListQuery {
  return { context, source, plan, conditions: async () => [], tables: new Set() }
}

function toRecordQuery(store: Store, context: Reading, recordList: RecordList): ListQuery {
  const { resource, plan, restrictions = [], source = getCompiledResource(resource.plural).filterSource } = recordList
  const tables = new Set<string>()
  const conditions: Conditions = (hint) =>
    buildConditions({ store, context, resource, tables, hint }, plan, restrictions)
  const conditionCost = restrictions.reduce((sum, each) => sum + getRestrictionCost(context, each), 0)
  return { context, source, plan, conditions, conditionCost, tables }
}

/** The cost of testing one record, if it is more than that of a few comparisons. */
function getRestrictionCost({ db }: Reading, restriction: Restriction): number {
  if ('cost' in restriction) return restriction.cost
  if (!('scopes' in restriction)) return 0
  return restriction.scopes.filter((scope) => 'tag' in scope).length * getSqlDialect(db).costs.ofTest.tag
}

/** One page of the records of a list. */
export async function list(store: Store, context: Reading, recordList: RecordList): Promise<Page> {
  const { resource, plan, restrictions = [], source = getCompiledResource(resource.plural).filterSource } = recordList
  const lookup = restrictions.length === 0 ? findUniqueLookup(plan, source) : undefined
  if (lookup) return lookUp(store, context, resource, plan, compileUniqueLookup(context, resource, lookup))
  const query = () => queryPage(store, toRecordQuery(store, context, recordList))
  const key = restrictions.length === 0 ? toPageKey(resource, plan, source) : undefined
  if (key === undefined) return query()
  return store.results.find(key, async () => {
    const page = await query()
    return { value: page, tables: page.tables, bytes: PAGE_BYTES + KEY_BYTES * page.keys.length }
  })
}

async function lookUp(
  store: Store,
  { caller }: Reading,
  { table }: AnyResource,
  { limit, offset }: ListPlan,
  lookup: CompiledQuery<{ n: number }>,
): Promise<Page> {
  const rows = await store.scan({ compile: () => lookup }, toReader(caller))
  return { keys: rows.map(({ n }) => n), total: rows.length, limit, offset, tables: [table] }
}

// The page with its arrays, and one of its keys.
const PAGE_BYTES = 200
const KEY_BYTES = 8

/** Numbers the sources whose symbols depend on nothing but rows. */
const sourceNumbers = new WeakMap<FilterSource, number | 'none'>()
let lastSourceNumber = 0

/** The key under which a page is cached; undefined if it depends on more than rows. */
function toPageKey(resource: AnyResource, plan: ListPlan, source: FilterSource): string | undefined {
  let number = sourceNumbers.get(source)
  if (number === undefined) {
    const dependsOnMoment = [...source.symbols.values()].some(({ trueIds }) => trueIds !== undefined)
    number = dependsOnMoment ? 'none' : ++lastSourceNumber
    sourceNumbers.set(source, number)
  }
  if (number === 'none') return undefined
  const { texts, limit, offset, roleFilter, roleSemantic } = plan
  return JSON.stringify([
    resource.plural,
    number,
    texts.filter,
    texts.sort,
    limit,
    offset,
    ...(roleFilter.length === 0 ? [] : [roleSemantic, ...roleFilter]),
  ])
}

/** The ids of a list, in order, if it is restricted by ids alone and its first page holds all of it. */
export function listIds(
  { predicate, order, limit, offset, roleFilter }: ListPlan,
  [restriction, ...others]: readonly Restriction[],
): readonly string[] | undefined {
  if (!restriction || !('ids' in restriction) || others.length > 0) return undefined
  if (predicate || order.keys.length > 0 || roleFilter.length > 0 || offset > 0) return undefined
  const ids = [...new Set(restriction.ids)].sort()
  return limit === 'none' || ids.length <= limit ? ids : undefined
}

/** All rows of a list as a query, for a stream. */
export function queryRows(store: Store, context: Reading, recordList: RecordList): Promise<RowQuery> {
  return queryRowsOf(store, toRecordQuery(store, context, recordList))
}

/** The same for any table. */
export async function queryRowsOf<Row = AnyRow>(store: Store, query: ListQuery): Promise<RowQuery<Row>> {
  const { matching, window, isCostly } = await buildStatements(store, query, 'all')
  return { compile: () => compileSql(query.context.db, sqlText<Row>`select * ${matching} ${window}`), isCostly }
}

/** One page of a list of any table. */
export async function queryPage(store: Store, query: ListQuery): Promise<Page> {
  const { context, plan } = query
  const { limit, offset } = plan
  const first = await buildStatements(store, query, 'first')
  const { matching, window, read } = first
  // Keys only: walking an index, or sorting, with whole rows costs three times as much, and most records are cached anyway.
  const reader = toReader(context.caller)
  const page = { compile: () => compileSql(context.db, sqlText<{ n: number }>`select n ${matching} ${window}`) }
  const rows = await store.scan(page, reader)
  const keys = rows.map(({ n }) => n)
  if (offset === 0 && (limit === 'none' || rows.length < limit))
    return { keys, total: rows.length, limit, offset, tables: read }
  // If only the table itself is read, all of its records are found in the same way as the first ones.
  const all = read.length === 1 ? first : await buildStatements(store, query, 'all')
  const count = sqlText<{ n: number }>`select count(*) as n ${all.matchingCount}`
  const total = await store.count({ compile: () => compileSql(context.db, count) }, read, reader)
  return { keys, total, limit, offset, tables: read }
}

/** The common part of the statements of a list: which rows, in which order and window, and the tables that they read. */
interface Statements {
  readonly matching: SqlText
  /** The same for a count: it sorts nothing, so it counts its cost only if the filter tests something. */
  readonly matchingCount: SqlText
  readonly window: SqlText
  readonly read: readonly string[]
  readonly isCostly: boolean
}

async function buildStatements(store: Store, query: ListQuery, hint: RowCountHint): Promise<Statements> {
  const { context, source, plan } = query
  const conditions = await query.conditions(hint)
  const narrow = await findSelectiveTests(store, query, hint)
  const compiler = new FilterCompiler(context.db, source, { narrow })
  const filter = plan.predicate ? compiler.compile(plan.predicate) : undefined
  const isCostly = await mayBeCostly(store, query, filter)
  const plain = composeStatements(query, conditions, compiler, filter, isCostly)
  if (!isCostly) return plain
  const guardedCompiler = new FilterCompiler(context.db, source, { narrow, isGuarded: true })
  const guardedFilter = guardedCompiler.compile(plan.predicate ?? EVERYTHING)
  const guarded = composeStatements(query, conditions, guardedCompiler, guardedFilter, isCostly)
  const countIsCostly = filter?.cost || query.conditionCost
  return countIsCostly ? guarded : { ...guarded, matchingCount: plain.matchingCount }
}

function composeStatements(
  { source, plan, tables }: ListQuery,
  conditions: readonly SqlText<SqlBool>[],
  compiler: FilterCompiler,
  filter: CompiledFilter | undefined,
  isCostly: boolean,
): Statements {
  const where = toWhere(filter ? [filter.condition, ...conditions] : conditions)
  const matching = sqlText`from ${sqlText.table(source.table)}${where}`
  return {
    matching,
    matchingCount: matching,
    window: sqlText`${compileOrderBy(compiler, plan)}${toWindow(plan)}`,
    read: [...new Set([source.table, ...tables, ...(filter?.tables ?? [])])],
    isCostly,
  }
}

const EVERYTHING: Predicate = { kind: 'constant', value: true }

/** Whether the list costs much if all records of all tables that it reads have to be read. */
async function mayBeCostly(
  store: Store,
  { context, source, plan: { predicate, order }, conditionCost = 0 }: ListQuery,
  filter: CompiledFilter | undefined,
): Promise<boolean> {
  if (findUniqueEquality(source, predicate)) return false
  const { costs } = getSqlDialect(context.db)
  const cost = (filter?.cost ?? 0) + conditionCost + costs.ofOrder * order.keys.length
  if (cost === 0) return false
  const tables = [source.table, ...(filter?.tables ?? [])].filter((table) => recordTables.has(table))
  let records = 0
  for (const table of tables) {
    const query = sqlText<{ n: number }>`select coalesce(max(n), 0) as n from ${sqlText.table(table)}`
    records += await store.count({ compile: () => compileSql(context.db, query) }, [table])
  }
  return cost * records > costs.maxUnguarded
}

/** Tables with a record in each row, whose keys (`n`) grow with their number. */
const recordTables: ReadonlySet<string> = new Set([
  ...compiledResources.map(({ definition }) => definition.table),
  'audit_records',
])

const EMPTY_SQL = sqlText``

function toWindow({ limit, offset }: ListPlan) {
  // A limit that is a parameter would have SQLite plan the statement again at each use.
  if (limit !== 'none') return sqlText` limit ${sqlText.lit(limit)} offset ${offset}`
  return offset === 0 ? EMPTY_SQL : sqlText` limit ${Number.MAX_SAFE_INTEGER} offset ${offset}`
}

/** The terms that a plan sorts by. @throws INVALID_FILTER or INVALID_SORT_IDENTIFIER, depending on where the order was asked for */
export function compileOrder(compiler: FilterCompiler, { order: { keys, isParameter } }: ListPlan): OrderTerm[] {
  return isParameter ? withSortParameterErrors(() => compiler.compileOrder(keys)) : compiler.compileOrder(keys)
}

/** The clause that sorts by what a plan sorts by. @throws INVALID_FILTER or INVALID_SORT_IDENTIFIER, as `compileOrder` */
export function compileOrderBy(compiler: FilterCompiler, plan: ListPlan): SqlText {
  const terms = compileOrder(compiler, plan).map(({ expression, isDescending }) =>
    isDescending ? sqlText`${expression} desc` : sqlText`${expression} asc`,
  )
  return sqlText`order by ${sqlText.join(terms)}`
}

/** The set equalities, among the terms that all must hold, which few records pass. */
async function findSelectiveTests(
  store: Store,
  { context, source, plan: { predicate } }: ListQuery,
  hint: RowCountHint,
): Promise<ReadonlySet<Predicate>> {
  const narrow = new Set<Predicate>()
  for (const term of predicate?.kind === 'and' ? predicate.terms : predicate ? [predicate] : []) {
    if (term.kind !== 'compare' || term.operator !== '=' || term.left.kind !== 'anyOf') continue
    const set = source.symbols.get(term.left.symbol.name)?.set
    if (set?.kind !== 'members' || term.right.kind !== 'string') continue
    const test = sqlText<SqlBool>`value = ${term.right.value}`
    if (await isSelective({ store, context, hint }, source.table, set.table, test)) narrow.add(term)
  }
  return narrow
}

/** The conditions of a list besides its filter. Adds the tables that they read. */
async function buildConditions(
  search: RecordSearch,
  plan: ListPlan,
  restrictions: readonly Restriction[],
): Promise<readonly SqlText<SqlBool>[]> {
  const conditions: SqlText<SqlBool>[] = subtypeConditions(search.resource)
  if (plan.roleFilter.length > 0) conditions.push(await selectorsCondition(search, [parseRoleFilter(plan)]))
  for (const restriction of restrictions) conditions.push(await toCondition(search, restriction))
  return conditions
}

async function toCondition(search: RecordSearch, restriction: Restriction): Promise<SqlText<SqlBool>> {
  const { context, resource, tables } = search
  if ('ids' in restriction) return isOneOf(context.db, `${resource.table}.id`, restriction.ids)
  if ('sides' in restriction) return selectorsCondition(search, restriction.sides)
  if ('equals' in restriction)
    return sqlText<SqlBool>`${sqlText.ref(`${resource.table}.${restriction.field}`)} = ${restriction.equals}`
  if ('atMost' in restriction)
    return sqlText<SqlBool>`${sqlText.ref(`${resource.table}.${restriction.field}`)} <= ${restriction.atMost}`
  if ('scopes' in restriction) return scopesCondition(search, restriction.scopes)
  if ('condition' in restriction) {
    for (const table of restriction.tables) tables.add(table)
    return restriction.condition
  }
  const table = toSetTableName(resource, restriction.field)
  tables.add(table)
  return sqlText<SqlBool>`${sqlText.ref(`${resource.table}.n`)} in (select n from ${sqlText.table(table)} where value = ${restriction.contains})`
}
