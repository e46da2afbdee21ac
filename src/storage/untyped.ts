// Kysely without table types, for code that works on any resource.
import type { Kysely, SqlBool } from 'kysely'
import type { Database } from './database.ts'
import { type SqlText, sqlText } from './lists/sql-text.ts'
import { getSqlDialect } from './sql-dialect.ts'

export type UntypedRow = Record<string, string | number | null>
export type UntypedDatabase = Record<string, UntypedRow>

/** The same handle for tables that are only known at run time. */
export function untyped(db: Kysely<Database>): Kysely<UntypedDatabase> {
  return db as unknown as Kysely<UntypedDatabase>
}

/** `column` is one of `values`: one statement text for any number of values. */
export function isOneOf(db: Kysely<Database>, column: string, values: readonly (string | number)[]): SqlText<SqlBool> {
  return getSqlDialect(db).isOneOf(sqlText.ref(column), values)
}

/** The same for the elements of a JSON array, for prepared queries: the array is one parameter. */
export function isElementOf<DB>(db: Kysely<DB>, column: string, json: string): SqlText<SqlBool> {
  return getSqlDialect(db as unknown as Kysely<Database>).isElementOf(sqlText.ref(column), json)
}
