// The SQL in which databases differ, behind common names that all other code uses.
import { type CompiledQuery, type Kysely, RawNode, type SqlBool } from 'kysely'
import type { SqlText } from './lists/sql-text.ts'

/** How many of the matching records a statement needs: the first ones in an order, or all of them, as for a count. */
export type RowCountHint = 'first' | 'all'

/** The costs of testing and finding records in a database, in units of its own. */
export interface PlanningCosts {
  /** The cost of each kind of test of one record. */
  readonly ofTest: {
    readonly comparison: number
    /** Searches for a text in another. */
    readonly contains: number
    readonly icontains: number
    /** Extracts a member from a JSON object. */
    readonly tag: number
    /** Iterates over the members of a JSON array, or searches an index for one. */
    readonly set: number
    /** Adds up the cost (`SqlDialect.guard`). */
    readonly guard: number
    /** Runs a sub-query over all records that a policy may match. */
    readonly matched: number
  }
  /** The cost of sorting by one key, for each record. */
  readonly ofOrder: number
  /** The greatest cost of all tests of one record together. */
  readonly maxOfTests: number
  /** The greatest cost of a statement on the main thread. One that certainly costs less needs no guard. */
  readonly maxUnguarded: number
  /**
   * Whether so few of the records are members of a set that it is cheaper to start from the set's table than to walk the records
   * in order and test each.
   */
  isSelective(members: number, records: number, hint: RowCountHint): boolean
}

export interface SqlDialect {
  readonly costs: PlanningCosts
  /** The text of a statement, from what stands before, between and after its parameters. */
  joinPieces(pieces: readonly string[]): string
  /** `value` is one of `values`: one statement text for any number of them. */
  isOneOf(value: SqlText, values: readonly (string | number)[]): SqlText<SqlBool>
  /** The same for the elements of a JSON array, which is one parameter. */
  isElementOf(value: SqlText, json: string): SqlText<SqlBool>
  /** `needle` occurs in `text`, byte for byte. */
  contains(text: SqlText, needle: string): SqlText<SqlBool>
  /** `needle` occurs in `text` once both are in upper case. */
  containsIgnoringCase(text: SqlText, needle: string): SqlText<SqlBool>
  /**
   * A condition that is always true. It counts the cost of each record that a filter reads, so that a statement that costs too
   * much can be ended.
   */
  guard(cost: number): SqlText<SqlBool>
  /** A number as decimal text. */
  asText(value: SqlText): SqlText
  /** A table expression over the elements of a JSON array, each in a column `value`. */
  elements(json: SqlText): SqlText<{ value: string }>
  /** How many elements a JSON array has. */
  elementCount(json: SqlText): SqlText<number>
  /**
   * A table expression over the distinct values of a column, in order, found one by one, so that a few values cost little. It
   * begins at `start`, inclusive, if one is given.
   */
  distinctValues(table: string, column: string, isDescending: boolean, start?: string): SqlText<{ value: string }>
  /** A member of a JSON object as a plain value; booleans as 0 and 1. */
  member(json: SqlText, path: readonly string[]): SqlText
  /** The same member as text: `true`, `false`, a number's digits, a string's characters; null if the member is missing. */
  memberText(json: SqlText, path: readonly string[]): SqlText<string>
  /** The type of a member: `true`, `false`, `integer`, `real`, `text`, `null`; null if the member is missing. */
  memberType(json: SqlText, path: readonly string[]): SqlText<string>
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

// The store looks at the tree of a statement only if it changes data.
const NO_TREE = RawNode.createWithSql('')
const NO_QUERY_ID = { queryId: '' }

/** Compiles a statement that reads. */
// biome-ignore lint/suspicious/noExplicitAny: handles of any database type
export function compileSql<Row>(db: Kysely<any>, { pieces, parameters }: SqlText<Row>): CompiledQuery<Row> {
  return { query: NO_TREE, queryId: NO_QUERY_ID, sql: getSqlDialect(db).joinPieces(pieces), parameters }
}
