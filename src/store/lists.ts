// Pages of records: filter, order, window and total, by statements whose cost follows what they return.
import { type Expression, type SqlBool, sql } from 'kysely'
import type { Context } from '../context.ts'
import { ControllerError } from '../errors.ts'
import { FilterCompiler, sortFault } from '../filter/compile.ts'
import { parseQuery, parseSort } from '../filter/parse.ts'
import type { Predicate, Query, SortKey } from '../filter/tree.ts'
import type { Side } from '../policy/side.ts'
import type { AnyResource, Scope } from '../resources/define.ts'
import { wordsOf } from './dialects/dialect.ts'
import { setTableName } from './rows.ts'
import { isOneOf, untyped } from './untyped.ts'

const DEFAULT_LIMIT = 10
const MOST_ROWS = 500
const FARTHEST_OFFSET = 100_000

/** What a caller may say about a list. */
export interface ListParameters {
  readonly filter?: string
  readonly sort?: string
  readonly limit?: number
  readonly offset?: number
  readonly roleFilter?: readonly string[]
  readonly roleSemantic?: 'AllOf' | 'AnyOf'
}

/** Which records of the resource the list is about, beside what the caller's filter says. */
export type Restriction =
  | Scope
  | { readonly field: string; readonly equals: string }
  | { readonly field: string; readonly contains: string }

/** A list as it will be asked for. */
export interface ListPlan {
  readonly predicate: Predicate | undefined
  readonly sort: readonly SortKey[]
  /** How many rows; `none` is all of them. */
  readonly limit: number | 'none'
  readonly offset: number
  readonly roleFilter: readonly string[]
  readonly roleSemantic: 'AllOf' | 'AnyOf'
}

export interface Page {
  /** Keys (`n`) of the records, in order. */
  readonly keys: readonly number[]
  readonly total: number
  readonly limit: number | 'none'
  readonly offset: number
}

/**
 * Reads a list's parameters. Skip and limit inside the filter win over the parameters.
 * @throws INVALID_FILTER, INVALID_SORT_IDENTIFIER
 */
export function planList(parameters: ListParameters): ListPlan {
  const query: Query = parameters.filter ? parseQuery(parameters.filter) : { sort: [] }
  const sort = query.sort.length > 0 || !parameters.sort ? query.sort : parseSortParameter(parameters.sort)
  return {
    predicate: query.predicate,
    sort,
    limit: effectiveLimit(query.limit ?? parameters.limit),
    offset: Math.min(Math.max(query.skip ?? parameters.offset ?? 0, 0), FARTHEST_OFFSET),
    roleFilter: parameters.roleFilter ?? [],
    roleSemantic: parameters.roleSemantic ?? 'AllOf',
  }
}

function parseSortParameter(text: string): readonly SortKey[] {
  try {
    return parseSort(text)
  } catch (error) {
    throw sortFault(error, causeMessage(error))
  }
}

function effectiveLimit(limit: number | 'none' | undefined): number | 'none' {
  if (limit === 'none' || limit === -1) return 'none'
  if (limit === undefined || limit <= 0) return DEFAULT_LIMIT
  return Math.min(limit, MOST_ROWS)
}

function causeMessage(error: unknown): string {
  const cause = error instanceof ControllerError ? error.publicCause : undefined
  return cause && 'message' in cause ? (cause.message ?? '') : ''
}

/** One page of the records of `resource` that fit the plan and the restrictions. */
export async function list(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[] = [],
): Promise<Page> {
  const query = await compileList(context, resource, plan, restrictions)
  const { limit, offset } = plan
  const found = await query.matching.select('n').execute()
  const isWhole = offset === 0 && (limit === 'none' || found.length < limit)
  const total = isWhole ? found.length : await context.controller.store.total(query.count, query.tables)
  return { keys: found.map(({ n }) => n as number), total, limit, offset }
}

/** All rows of a list, for a stream. */
export async function allRows(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[] = [],
) {
  return (await compileList(context, resource, plan, restrictions)).matching.selectAll()
}

/**
 * The statements of a list. A page takes the keys alone: walking an index, or sorting, with whole rows in hand costs three
 * times as much, and most records are remembered anyway.
 */
async function compileList(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  plan: ListPlan,
  restrictions: readonly Restriction[] = [],
) {
  const db = untyped(context.db)
  const narrow = await narrowTests(context, resource, plan.predicate)
  const compiler = new FilterCompiler(context.db, resource, narrow)
  const filter = plan.predicate ? compiler.compile(plan.predicate) : undefined
  const conditions = filter ? [filter.condition] : []
  const tables = new Set([resource.table, ...(filter?.tables ?? [])])
  if (plan.roleFilter.length > 0) {
    conditions.push(await sidesCondition(context, resource, [roleFilterSide(plan)], tables))
  }
  for (const restriction of restrictions) conditions.push(await restrict(context, resource, restriction, tables))

  const order = compiler.order(plan.sort)
  const matching = conditions.reduce((query, condition) => query.where(condition), db.selectFrom(resource.table))
  const count = matching.select((eb) => eb.fn.countAll<number>().as('n'))

  const ordered = order.reduce(
    (sorted, key) => sorted.orderBy(sql`${key.expression} ${sql.raw(key.isDescending ? 'desc' : 'asc')}`),
    matching,
  )
  return { matching: windowed(ordered, plan), count, tables: [...tables] }
}

function windowed<Q extends { limit(rows: number): Q; offset(rows: number): Q }>(
  query: Q,
  { limit, offset }: ListPlan,
): Q {
  if (limit !== 'none') return query.limit(limit).offset(offset)
  return offset === 0 ? query : query.limit(Number.MAX_SAFE_INTEGER).offset(offset)
}

// ---- conditions over sets ---------------------------------------------------------------------------------------------

/**
 * Below this many members it is cheaper to start from the set's table than to walk the records in order and ask of each:
 * measured at 2.4 times the square root of all records.
 */
async function narrowLimit(context: Pick<Context, 'db' | 'controller'>, resource: AnyResource): Promise<number> {
  const all = await countOf(context, resource.table, sql<SqlBool>`1 = 1`)
  return 2.4 * Math.sqrt(all)
}

function countOf(
  { db, controller }: Pick<Context, 'db' | 'controller'>,
  table: string,
  condition: Expression<SqlBool>,
): Promise<number> {
  const query = untyped(db)
    .selectFrom(table)
    .select((eb) => eb.fn.countAll<number>().as('n'))
    .where(condition)
  return controller.store.total(query, [table])
}

/** The set equalities, among the terms that all must hold, which few records pass. */
async function narrowTests(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  predicate: Predicate | undefined,
): Promise<ReadonlySet<Predicate>> {
  const narrow = new Set<Predicate>()
  const terms = predicate?.kind === 'and' ? predicate.terms : predicate ? [predicate] : []
  for (const term of terms) {
    if (term.kind !== 'compare' || term.operator !== '=' || term.left.kind !== 'anyOf') continue
    const field = term.left.symbol.name
    if (resource.fields[field]?.kind.name !== 'set' || term.right.kind !== 'string') continue
    const members = await countOf(context, setTableName(resource, field), sql<SqlBool>`value = ${term.right.value}`)
    if (members < (await narrowLimit(context, resource))) narrow.add(term)
  }
  return narrow
}

async function restrict(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  restriction: Restriction,
  tables: Set<string>,
): Promise<Expression<SqlBool>> {
  if ('ids' in restriction) return isOneOf(context.db, `${resource.table}.id`, restriction.ids)
  if ('sides' in restriction) return sidesCondition(context, resource, restriction.sides, tables)
  if ('equals' in restriction)
    return sql<SqlBool>`${sql.ref(`${resource.table}.${restriction.field}`)} = ${restriction.equals}`
  const table = setTableName(resource, restriction.field)
  tables.add(table)
  return sql<SqlBool>`${sql.ref(`${resource.table}.n`)} in (select n from ${sql.table(table)} where value = ${restriction.contains})`
}

/** What `roleFilter` asks for. Here `#all` is an attribute like any other. */
function roleFilterSide({ roleFilter, roleSemantic }: ListPlan): Side {
  const named = (prefix: string) => roleFilter.filter((role) => role.startsWith(prefix)).map((role) => role.slice(1))
  return { semantic: roleSemantic, isAll: false, ids: new Set(named('@')), attributes: new Set(named('#')) }
}

/** Records that match any of these sides of policies: by id, by attributes, or all of them. */
async function sidesCondition(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  sides: readonly Side[],
  tables: Set<string>,
): Promise<Expression<SqlBool>> {
  if (sides.some((side) => side.isAll)) return sql<SqlBool>`1 = 1`
  const table = setTableName(resource, 'roleAttributes')
  tables.add(table)
  const alternatives: Expression<SqlBool>[] = []
  for (const { semantic, attributes } of sides) {
    if (attributes.size > 0)
      alternatives.push(await attributesCondition(context, resource, table, semantic, [...attributes]))
  }
  const ids = new Set(sides.flatMap((side) => [...side.ids]))
  if (ids.size > 0) alternatives.push(isOneOf(context.db, `${resource.table}.id`, [...ids]))
  return alternatives.length === 0 ? sql<SqlBool>`1 = 0` : sql<SqlBool>`(${sql.join(alternatives, sql` or `)})`
}

async function attributesCondition(
  context: Pick<Context, 'db' | 'controller'>,
  resource: AnyResource,
  table: string,
  semantic: 'AllOf' | 'AnyOf',
  attributes: readonly string[],
): Promise<Expression<SqlBool>> {
  const own = sql.ref(`${resource.table}.n`)
  const limit = await narrowLimit(context, resource)
  const having = async (values: readonly string[]): Promise<Expression<SqlBool>> => {
    const has = wordsOf(context.db).isOneOf(sql.ref('value'), values)
    const members = await countOf(context, table, has)
    const select = sql`select n from ${sql.table(table)} where ${has}`
    return members < limit
      ? sql<SqlBool>`${own} in (${select})`
      : sql<SqlBool>`exists (${select} and ${sql.ref(`${table}.n`)} = ${own})`
  }
  if (semantic === 'AnyOf') return having(attributes)
  const all = await Promise.all(attributes.map((attribute) => having([attribute])))
  return sql<SqlBool>`(${sql.join(all, sql` and `)})`
}
