// The SQL dialect of SQLite.
import type { SqlBool } from 'kysely'
import { type SqlText, sql } from '../lists/sql-text.ts'
import type { SqlDialect } from '../sql-dialect.ts'

const ASCII = /^[\x20-\x7e]*$/

function toJsonPath(path: readonly string[]): string {
  return `$.${path.map((key) => `"${key}"`).join('.')}`
}

// A JSON array as the one parameter: lists of any length share a statement, and none is too long.
const isElementOf: SqlDialect['isElementOf'] = (value, json) =>
  sql<SqlBool>`${value} in (select value from json_each(${json}))`

export const sqliteDialect: SqlDialect = {
  joinPieces: (pieces) => pieces.join('?'),
  isOneOf: (value, values) => isElementOf(value, JSON.stringify(values)),
  isElementOf,
  contains: (text, needle) => sql<SqlBool>`instr(${text}, ${needle}) > 0`,
  containsIgnoringCase(text: SqlText, needle: string) {
    const folded = needle.toUpperCase()
    const isContained = sql<SqlBool>`instr(unicode_upper(${text}), ${folded}) > 0`
    if (!ASCII.test(folded)) return isContained
    // SQLite's own upper() converts ASCII only, and is ten times as fast. It is used for text that is ASCII only, because some
    // other letters become ASCII in upper case, such as the German sharp s.
    return sql<SqlBool>`(instr(upper(${text}), ${folded}) > 0 or (octet_length(${text}) <> length(${text}) and ${isContained}))`
  },
  // The planner assumes that an unknown function rejects some of the rows.
  guard: (cost) => sql<SqlBool>`likelihood(spend(${cost}), 1.0)`,
  asText: (value) => sql`cast(${value} as text)`,
  elements: (json) => sql<{ value: string }>`json_each(${json})`,
  elementCount: (json) => sql<number>`json_array_length(${json})`,
  // Each step goes to the next value in the index, whereas `select distinct` would read every row. SQLite returns the rows of
  // such a query as it finds them, in this order.
  distinctValues(table, column, isDescending, start) {
    const edge = sql.raw(isDescending ? 'max' : 'min')
    const from =
      start === undefined ? sql`` : sql` where ${sql.ref(column)} ${sql.raw(isDescending ? '<=' : '>=')} ${start}`
    const next = sql`${sql.ref(column)} ${sql.raw(isDescending ? '<' : '>')} step.value`
    return sql`(with recursive step(value) as (
      select (select ${edge}(${sql.ref(column)}) from ${sql.table(table)}${from})
      union all
      select (select ${edge}(${sql.ref(column)}) from ${sql.table(table)} where ${next}) from step where step.value is not null
    ) select value from step where value is not null)`
  },
  member: (json, path) => sql`json_extract(${json}, ${toJsonPath(path)})`,
  memberText: (json, path) => sql<string>`case json_type(${json}, ${toJsonPath(path)})
    when 'true' then 'true' when 'false' then 'false' when 'null' then null
    when 'text' then json_extract(${json}, ${toJsonPath(path)}) else ${json} -> ${toJsonPath(path)} end`,
  memberType: (json, path) => sql<string>`json_type(${json}, ${toJsonPath(path)})`,
}
