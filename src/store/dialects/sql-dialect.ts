// The SQL in which databases differ, behind common names that all other code uses.
import type { Expression, Kysely, RawBuilder, SqlBool } from 'kysely'

export interface SqlDialect {
  /** `value` is one of `values`: one statement text for any number of them. */
  isOneOf(value: Expression<unknown>, values: readonly (string | number)[]): Expression<SqlBool>
  /** The same for the elements of a JSON array, which is one parameter. */
  isElementOf(value: Expression<unknown>, json: string): Expression<SqlBool>
  /** `needle` occurs in `text`, byte for byte. */
  contains(text: Expression<unknown>, needle: string): Expression<SqlBool>
  /** `needle` occurs in `text` once both are in upper case. */
  containsIgnoringCase(text: Expression<unknown>, needle: string): Expression<SqlBool>
  /**
   * A condition that is always true. It counts the cost of each record that a filter reads, so that a statement that costs too
   * much can be ended.
   */
  guard(cost: number): Expression<SqlBool>
  /** A number as decimal text. */
  asText(value: Expression<unknown>): RawBuilder<unknown>
  /** A table expression over the elements of a JSON array, each in a column `value`. */
  elements(json: Expression<unknown>): RawBuilder<{ value: string }>
  /** How many elements a JSON array has. */
  elementCount(json: Expression<unknown>): RawBuilder<number>
  /**
   * A table expression over the distinct values of a column, in order, found one by one, so that a few values cost little. It
   * begins at `start`, inclusive, if one is given.
   */
  distinctValues(table: string, column: string, isDescending: boolean, start?: string): RawBuilder<{ value: string }>
  /** A member of a JSON object as a plain value; booleans as 0 and 1. */
  member(json: Expression<unknown>, path: readonly string[]): RawBuilder<unknown>
  /** The same member as text: `true`, `false`, a number's digits, a string's characters; null if the member is missing. */
  memberText(json: Expression<unknown>, path: readonly string[]): RawBuilder<string>
  /** The type of a member: `true`, `false`, `integer`, `real`, `text`, `null`; null if the member is missing. */
  memberType(json: Expression<unknown>, path: readonly string[]): RawBuilder<string>
}

/** The adapter of our executors, which provides the SQL dialect of its database. */
export interface SqlDialectAdapter {
  readonly sqlDialect: SqlDialect
}

/** Returns the SQL dialect of the database behind a handle. */
// biome-ignore lint/suspicious/noExplicitAny: handles of any database type
export function getSqlDialect(db: Kysely<any>): SqlDialect {
  return (db.getExecutor().adapter as unknown as SqlDialectAdapter).sqlDialect
}
