// The columns of the shared tables, as the database has them.
import { SHARED_TABLES } from '../shared-tables.ts'
import type { SqliteDatabase } from './connection.ts'

export interface TableColumns {
  readonly table: string
  /** In their order. */
  readonly columns: readonly string[]
  /** The columns of the primary key. */
  readonly key: readonly string[]
}

export function listSharedTables(connection: SqliteDatabase): TableColumns[] {
  return SHARED_TABLES.map((table) => {
    const columns = connection.pragma(`table_info(${quoteName(table)})`) as { name: string; pk: number }[]
    const key = columns.filter(({ pk }) => pk > 0)
    if (key.length === 0) throw new Error(`the table ${table} has no primary key, so its rows cannot be told apart`)
    return { table, columns: columns.map(({ name }) => name), key: key.map(({ name }) => name) }
  })
}

export function quoteName(name: string): string {
  return `"${name}"`
}
