// Conditions over role attributes: the records that a role filter, or a side of a policy, selects.
import type { SqlBool } from 'kysely'
import { toSetTableName } from '../../definitions/model/columns.ts'
import type { RecordScope } from '../../definitions/permissions/words.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import type { RoleSelector } from '../../policy/role-selector.ts'
import { compileSql, getSqlDialect, type RowCountHint } from '../sql-dialect.ts'
import type { Store } from '../store.ts'
import type { Context } from '../transactions/context.ts'
import { isOneOf } from '../untyped.ts'
import type { ListPlan } from './list-plan.ts'
import { ALWAYS, joinConditions, type SqlText, sqlText, toWhere } from './sql-text.ts'

type Reading = Pick<Context, 'db'>

/** How records of a resource are found; what builds conditions adds the tables that these read. */
export interface RecordSearch {
  readonly store: Store
  readonly context: Reading
  readonly resource: AnyResource
  readonly tables: Set<string>
  readonly hint: RowCountHint
}

/** The condition of a `roleFilter`, in which `#all` is an attribute like any other. */
export function parseRoleFilter({ roleFilter, roleSemantic }: ListPlan): RoleSelector {
  const named = (prefix: string) => roleFilter.filter((role) => role.startsWith(prefix)).map((role) => role.slice(1))
  return { semantic: roleSemantic, isAll: false, ids: new Set(named('@')), attributes: new Set(named('#')) }
}

/** Records that match any of these sides of policies: by id, by attributes, or all of them. Adds the tables it reads. */
export async function selectorsCondition(
  search: RecordSearch,
  sides: readonly RoleSelector[],
): Promise<SqlText<SqlBool>> {
  const { context, resource, tables } = search
  if (sides.some((side) => side.isAll)) return ALWAYS
  tables.add(toSetTableName(resource, 'roleAttributes'))
  const alternatives: SqlText<SqlBool>[] = []
  for (const { semantic, attributes } of sides)
    if (attributes.size > 0) alternatives.push(await attributesCondition(search, semantic, [...attributes]))
  const ids = new Set(sides.flatMap((side) => [...side.ids]))
  if (ids.size > 0) alternatives.push(isOneOf(context.db, `${resource.table}.id`, [...ids]))
  return alternatives.length === 0 ? sqlText<SqlBool>`1 = 0` : joinConditions(alternatives, 'or')
}

/** Records with one of these role attributes, or a tag of these values. Adds the tables it reads. */
export async function scopesCondition(search: RecordSearch, scopes: readonly RecordScope[]): Promise<SqlText<SqlBool>> {
  const attributes = new Set(scopes.flatMap((scope) => ('attribute' in scope ? [scope.attribute] : [])))
  const side = { semantic: 'AnyOf', isAll: false, ids: new Set<string>(), attributes } as const
  const alternatives = attributes.size === 0 ? [] : [await selectorsCondition(search, [side])]
  const { memberText, memberType } = getSqlDialect(search.context.db)
  const tags = sqlText.ref(`${search.resource.table}.tags`)
  for (const scope of scopes) {
    if (!('tag' in scope)) continue
    const path = [scope.tag]
    const isText = sqlText<SqlBool>`${memberType(tags, path)} = 'text'`
    alternatives.push(sqlText<SqlBool>`(${isText} and ${memberText(tags, path)} = ${scope.value})`)
  }
  return joinConditions(alternatives, 'or')
}

// From this number of attributes on, a record is matched by how many of them it has, instead of by one test for each.
const MANY_ATTRIBUTES = 8

async function attributesCondition(
  search: RecordSearch,
  semantic: 'AllOf' | 'AnyOf',
  attributes: readonly string[],
): Promise<SqlText<SqlBool>> {
  const { context, resource } = search
  const table = toSetTableName(resource, 'roleAttributes')
  const own = sqlText.ref(`${resource.table}.n`)
  const having = async (values: readonly string[]): Promise<SqlText<SqlBool>> => {
    const has = getSqlDialect(context.db).isOneOf(sqlText.ref('value'), values)
    const select = sqlText`select n from ${sqlText.table(table)} where ${has}`
    return (await isSelective(search, resource.table, table, has))
      ? sqlText<SqlBool>`${own} in (${select})`
      : sqlText<SqlBool>`exists (${select} and ${sqlText.ref(`${table}.n`)} = ${own})`
  }
  if (semantic === 'AnyOf') return having(attributes)
  if (attributes.length >= MANY_ATTRIBUTES) {
    const has = getSqlDialect(context.db).isOneOf(sqlText.ref('value'), attributes)
    const holders = sqlText`select n from ${sqlText.table(table)} where ${has} group by n having count(*) = ${attributes.length}`
    return sqlText<SqlBool>`${own} in (${holders})`
  }
  const conditions: SqlText<SqlBool>[] = []
  for (const attribute of attributes) conditions.push(await having([attribute]))
  return sqlText<SqlBool>`(${sqlText.join(conditions, sqlText` and `)})`
}

/** Whether few records pass a test of a set, see `PlanningCosts.isSelective`. */
export async function isSelective(
  { store, context, hint }: Pick<RecordSearch, 'store' | 'context' | 'hint'>,
  table: string,
  setTable: string,
  condition: SqlText<SqlBool>,
): Promise<boolean> {
  const members = await countMatches(store, context, setTable, condition)
  const records = await countMatches(store, context, table, ALWAYS)
  return getSqlDialect(context.db).costs.isSelective(members, records, hint)
}

function countMatches(store: Store, { db }: Reading, table: string, condition: SqlText<SqlBool>): Promise<number> {
  const query = sqlText<{ n: number }>`select count(*) as n from ${sqlText.table(table)}${toWhere([condition])}`
  return store.count({ compile: () => compileSql(db, query) }, [table])
}
