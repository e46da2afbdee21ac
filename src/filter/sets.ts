// Sets as SQL: members that a record stores, and records that match the roles of a policy.
import { type SqlBool, sql } from 'kysely'
import { toSetTableName } from '../model/columns.ts'
import type { FilterSource, FilterSymbol } from '../model/filter-symbols.ts'
import type { AnyResource } from '../resources/define.ts'
import { getResource } from '../resources/index.ts'
import type { SqlDialect } from '../store/dialects/sql-dialect.ts'
import type { Column, Condition, Test } from './comparisons.ts'

/** A set symbol, which has a `set`. */
export type SetSymbol = FilterSymbol & { readonly set: NonNullable<FilterSymbol['set']> }

/** The elements of one record's set, as SQL. */
export interface SetSql {
  /** The tables it reads beside the record's own. */
  readonly tables: readonly string[]
  /** Some element passes. */
  some(test: Test): Condition
  /** Some element equals a value: `test` is an equality, which indexes answer. `isNarrow`: few records have it. */
  someEqual(test: Test, isNarrow: boolean): Condition
  readonly isEmpty: Condition
  readonly count: Column
  /** The keys (`n`) of the records that it names, each once. A set that names none has no such keys. */
  readonly keys: Column
}

export function compileSet(words: SqlDialect, { table }: FilterSource, { column, set }: SetSymbol): SetSql {
  return set.kind === 'members'
    ? members(words, table, sql.ref(`${table}.${column}`), set.table, set.linked)
    : matched(words, table, column, getResource(set.linked))
}

const VALUE = sql.ref('value')

function members(words: SqlDialect, owner: string, json: Column, table: string, linked: string | undefined): SetSql {
  const elements = words.elements(json)
  const target = linked ? getResource(linked).table : ''
  return {
    tables: [table],
    some: (test) => sql<SqlBool>`exists (select 1 from ${elements} where ${test(VALUE)})`,
    // Asked of the set's own table, which is ordered by value: from there to the records where few have it, and the
    // other way round where many do.
    someEqual(test, isNarrow) {
      const own = sql.ref(`${owner}.n`)
      const having = sql`select n from ${sql.table(table)} where ${test(sql.ref(`${table}.value`))}`
      return isNarrow
        ? sql<SqlBool>`${own} in (${having})`
        : sql<SqlBool>`exists (${having} and ${sql.ref(`${table}.n`)} = ${own})`
    },
    isEmpty: sql<SqlBool>`${words.elementCount(json)} = 0`,
    count: words.elementCount(json),
    keys: sql`select n from ${sql.table(target)} where id in (select value from ${elements})`,
  }
}

/**
 * The records that match one side of a policy, from its roles and their attributes, by the rules of `src/policy/role-selector.ts`:
 * those it names by `@id`, all of them by `#all`, and by attributes those with any, or with all, as `semantic` says.
 * Counting costs as much as there are matches; asking for one id costs as much as there are roles and attributes.
 */
function matched(words: SqlDialect, policies: string, column: string, target: AnyResource): SetSql {
  const roles = words.elements(sql.ref(`${policies}.${column}`))
  const semantic = sql.ref(`${policies}.semantic`)
  const records = sql.table(target.table)
  const attributes = toSetTableName(target, 'roleAttributes')
  const named = sql`(select substr(value, 2) from ${roles} where substr(value, 1, 1) = '@')`
  const wanted = sql`(select substr(value, 2) from ${roles} where substr(value, 1, 1) = '#')`
  const wantedCount = sql`(select count(*) from ${roles} where substr(value, 1, 1) = '#')`
  const isAll = sql`exists (select 1 from ${roles} where value = '#all')`
  const having = sql`select n from ${sql.table(attributes)} where value in ${wanted}`
  const sides = [
    sql`select n from ${records} where ${isAll}`,
    sql`select n from ${records} where id in ${named}`,
    sql`${having} and (${semantic} = 'AnyOf' or ${wantedCount} = 1)`,
    sql`${having} and ${semantic} = 'AllOf' and ${wantedCount} > 1 group by n having count(*) = ${wantedCount}`,
  ]
  // Each branch is a query of its own in brackets: the last one has a `group by`, which must not reach the others.
  const each = sides.map((side) => sql`select n from (${side}) as side`)
  const keys = sql`${sql.join(each, sql` union `)}`
  const id = sql.ref('candidate.id')
  return {
    tables: [target.table, attributes],
    some: (test) =>
      sql<SqlBool>`exists (select 1 from (${keys}) as found join ${records} as candidate on candidate.n = found.n where ${test(id)})`,
    someEqual(test) {
      const own = sql`(select value from ${words.elements(sql.ref('candidate.roleAttributes'))})`
      const asNamed = sql`exists (select 1 from ${roles} where value = '#all' or value = '@' || candidate.id)`
      const asAny = sql`${semantic} = 'AnyOf' and exists (select 1 from ${roles} where substr(value, 1, 1) = '#' and substr(value, 2) in ${own})`
      const asAll = sql`${semantic} = 'AllOf' and ${wantedCount} > 0 and not exists (select 1 from ${roles} where substr(value, 1, 1) = '#' and substr(value, 2) not in ${own})`
      return sql<SqlBool>`exists (select 1 from ${records} as candidate where ${test(id)} and (${asNamed} or (${asAny}) or (${asAll})))`
    },
    // Without removing what several branches find, so that the first match is enough.
    isEmpty: sql<SqlBool>`not exists (${sql.join(each, sql` union all `)})`,
    count: sql`(select count(*) from (${keys}) as found)`,
    keys,
  }
}
