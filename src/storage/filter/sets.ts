// Compiles sets to SQL: values that a record stores, and records that match a role selector of a policy.
import type { SqlBool } from 'kysely'
import { toSetTableName } from '../../definitions/model/columns.ts'
import type { FilterSource, FilterSymbol } from '../../definitions/model/filter-symbols.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { getResource } from '../../definitions/resources/index.ts'
import { sqlText } from '../lists/sql-text.ts'
import type { SqlDialect } from '../sql-dialect.ts'
import type { Column, Condition, Test } from './comparisons.ts'

/** A symbol that names a set. */
export type SetSymbol = FilterSymbol & { readonly set: NonNullable<FilterSymbol['set']> }

/** The elements of one record's set, as SQL. */
export interface SetSql {
  /** The tables it reads besides the record's own. */
  readonly tables: readonly string[]
  /** At least one element passes. */
  some(test: Test): Condition
  /** At least one element equals a value: `test` is an equality, which can use an index. `isNarrow`: few records have it. */
  someEqual(test: Test, isNarrow: boolean): Condition
  readonly isEmpty: Condition
  readonly count: Column
  /** The keys (`n`) of the records that the set refers to, each once. */
  readonly keys: Column
}

export function compileSet(sqlDialect: SqlDialect, { table }: FilterSource, { column, set }: SetSymbol): SetSql {
  return set.kind === 'members'
    ? compileStoredSet(sqlDialect, table, sqlText.ref(`${table}.${column}`), set.table, set.linked)
    : compileMatchedSet(sqlDialect, table, column, getResource(set.linked))
}

const VALUE = sqlText.ref('value')

function compileStoredSet(
  sqlDialect: SqlDialect,
  owner: string,
  json: Column,
  table: string,
  linked: string | undefined,
): SetSql {
  const elements = sqlDialect.elements(json)
  const target = linked ? getResource(linked).table : ''
  return {
    tables: [table],
    some: (test) => sqlText<SqlBool>`exists (select 1 from ${elements} where ${test(VALUE)})`,
    // Searches the set's table, which is ordered by value. If few records have the value, the search starts there; if many
    // have it, the search starts at the records.
    someEqual(test, isNarrow) {
      const own = sqlText.ref(`${owner}.n`)
      const having = sqlText`select n from ${sqlText.table(table)} where ${test(sqlText.ref(`${table}.value`))}`
      return isNarrow
        ? sqlText<SqlBool>`${own} in (${having})`
        : sqlText<SqlBool>`exists (${having} and ${sqlText.ref(`${table}.n`)} = ${own})`
    },
    isEmpty: sqlText<SqlBool>`${sqlDialect.elementCount(json)} = 0`,
    count: sqlDialect.elementCount(json),
    keys: sqlText`select n from ${sqlText.table(target)} where id in (select value from ${elements})`,
  }
}

/**
 * The records that match a role selector, by the rules of `src/policy/role-selector.ts`: those it names by `@id`, all records
 * for `#all`, and those with any or all of its attributes, depending on `semantic`. Counting costs one step a match; a test
 * of one id costs one step a role and attribute.
 */
function compileMatchedSet(sqlDialect: SqlDialect, policies: string, column: string, target: AnyResource): SetSql {
  const roles = sqlDialect.elements(sqlText.ref(`${policies}.${column}`))
  const semantic = sqlText.ref(`${policies}.semantic`)
  const records = sqlText.table(target.table)
  const attributes = toSetTableName(target, 'roleAttributes')
  const namedIds = sqlText`(select substr(value, 2) from ${roles} where substr(value, 1, 1) = '@')`
  const requiredAttributes = sqlText`(select substr(value, 2) from ${roles} where substr(value, 1, 1) = '#')`
  const requiredCount = sqlText`(select count(*) from ${roles} where substr(value, 1, 1) = '#')`
  const isAll = sqlText`exists (select 1 from ${roles} where value = '#all')`
  const having = sqlText`select n from ${sqlText.table(attributes)} where value in ${requiredAttributes}`
  const branches = [
    sqlText`select n from ${records} where ${isAll}`,
    sqlText`select n from ${records} where id in ${namedIds}`,
    sqlText`${having} and (${semantic} = 'AnyOf' or ${requiredCount} = 1)`,
    sqlText`${having} and ${semantic} = 'AllOf' and ${requiredCount} > 1 group by n having count(*) = ${requiredCount}`,
  ]
  // Each branch is a sub-query, so that the `group by` of the last one does not apply to the others.
  const each = branches.map((side) => sqlText`select n from (${side}) as branch`)
  const keys = sqlText`${sqlText.join(each, sqlText` union `)}`
  const id = sqlText.ref('candidate.id')
  return {
    tables: [target.table, attributes],
    some: (test) =>
      sqlText<SqlBool>`exists (select 1 from (${keys}) as found join ${records} as candidate on candidate.n = found.n where ${test(id)})`,
    someEqual(test) {
      const own = sqlText`(select value from ${sqlDialect.elements(sqlText.ref('candidate.roleAttributes'))})`
      const asNamed = sqlText`exists (select 1 from ${roles} where value = '#all' or value = '@' || candidate.id)`
      const asAny = sqlText`${semantic} = 'AnyOf' and exists (select 1 from ${roles} where substr(value, 1, 1) = '#' and substr(value, 2) in ${own})`
      const asAll = sqlText`${semantic} = 'AllOf' and ${requiredCount} > 0 and not exists (select 1 from ${roles} where substr(value, 1, 1) = '#' and substr(value, 2) not in ${own})`
      return sqlText<SqlBool>`exists (select 1 from ${records} as candidate where ${test(id)} and (${asNamed} or (${asAny}) or (${asAll})))`
    },
    // `union all` keeps duplicates, so that the first match is enough.
    isEmpty: sqlText<SqlBool>`not exists (${sqlText.join(each, sqlText` union all `)})`,
    count: sqlText`(select count(*) from (${keys}) as found)`,
    keys,
  }
}
