// The SQL dialect of SQLite.
import type { SqlBool } from 'kysely'
import { type SqlText, sqlText } from '../lists/sql-text.ts'
import type { SqlDialect } from '../sql-dialect.ts'
import { sqlitePlanningCosts } from './planning-costs.ts'

const ASCII = /^[\x20-\x7e]*$/

function toJsonPath(path: readonly string[]): string {
  return `$.${path.map((key) => `"${key}"`).join('.')}`
}

// A JSON array as the one parameter: lists of any length share a statement, and none is too long.
const isElementOf: SqlDialect['isElementOf'] = (value, json) =>
  sqlText<SqlBool>`${value} in (select value from json_each(${json}))`

export const sqliteDialect: SqlDialect = {
  costs: sqlitePlanningCosts,
  joinPieces: (pieces) => pieces.join('?'),
  isOneOf: (value, values) => isElementOf(value, JSON.stringify(values)),
  isElementOf,
  contains: (text, needle) => sqlText<SqlBool>`instr(${text}, ${needle}) > 0`,
  containsIgnoringCase(text: SqlText, needle: string) {
    const folded = needle.toUpperCase()
    const isContained = sqlText<SqlBool>`instr(unicode_upper(${text}), ${folded}) > 0`
    if (!ASCII.test(folded)) return isContained
    // SQLite's own upper() converts ASCII only, and is ten times as fast. It is used for text that is ASCII only, because some
    // other letters become ASCII in upper case, such as the German sharp s.
    return sqlText<SqlBool>`(instr(upper(${text}), ${folded}) > 0 or (octet_length(${text}) <> length(${text}) and ${isContained}))`
  },
  // The planner assumes that an unknown function rejects some of the rows.
  guard: (cost) => sqlText<SqlBool>`likelihood(spend(${cost}), 1.0)`,
  asText: (value) => sqlText`cast(${value} as text)`,
  elements: (json) => sqlText<{ value: string }>`json_each(${json})`,
  elementCount: (json) => sqlText<number>`json_array_length(${json})`,
  // Each step goes to the next value in the index, whereas `select distinct` would read every row. SQLite returns the rows of
  // such a query as it finds them, in this order.
  distinctValues(table, column, isDescending, start) {
    const edge = sqlText.raw(isDescending ? 'max' : 'min')
    const from =
      start === undefined
        ? sqlText``
        : sqlText` where ${sqlText.ref(column)} ${sqlText.raw(isDescending ? '<=' : '>=')} ${start}`
    const next = sqlText`${sqlText.ref(column)} ${sqlText.raw(isDescending ? '<' : '>')} step.value`
    return sqlText`(with recursive step(value) as (
      select (select ${edge}(${sqlText.ref(column)}) from ${sqlText.table(table)}${from})
      union all
      select (select ${edge}(${sqlText.ref(column)}) from ${sqlText.table(table)} where ${next}) from step where step.value is not null
    ) select value from step where value is not null)`
  },
  member: (json, path) => sqlText`json_extract(${json}, ${toJsonPath(path)})`,
  memberText: (json, path) => sqlText<string>`case json_type(${json}, ${toJsonPath(path)})
    when 'true' then 'true' when 'false' then 'false' when 'null' then null
    when 'text' then json_extract(${json}, ${toJsonPath(path)}) else ${json} -> ${toJsonPath(path)} end`,
  memberType: (json, path) => sqlText<string>`json_type(${json}, ${toJsonPath(path)})`,
}
