// Digests the rows of all shared tables, so that two databases can be compared without a copy of one beside the other.
//
// It is computed on demand: to follow it with each commit would need the rows before each change. It reads a snapshot, on whichever
// connection the caller has.
import { createHash } from 'node:crypto'
import type { SqliteDatabase } from './connection.ts'
import { listSharedTables, quoteName } from './table-columns.ts'

/** Table → SHA-256 of its rows in the order of their keys, lower-case hex. */
export type RowDigests = Readonly<Record<string, string>>

/** Digests what all processes that follow the same commits have alike, also the keys that SQLite will give next. */
export function digestRows(connection: SqliteDatabase): RowDigests {
  const digests: Record<string, string> = {}
  const digest = (table: string, columns: readonly string[], order: readonly string[]) => {
    const hash = createHash('sha256')
    const values = `json_array(${columns.map(quoteName).join()})`
    const text = `select ${values} from ${quoteName(table)} order by ${order.map(quoteName).join()}`
    for (const row of connection.prepare(text).pluck().iterate() as Iterable<string>) hash.update(row).update('\n')
    digests[table] = hash.digest('hex')
  }
  const readAll = connection.transaction(() => {
    for (const { table, columns, key } of listSharedTables(connection)) digest(table, columns, key)
    digest('sqlite_sequence', ['name', 'seq'], ['name'])
  })
  readAll.deferred()
  return digests
}

/** The tables whose rows differ. */
export function listDifferentTables(first: RowDigests, second: RowDigests): string[] {
  return [...new Set([...Object.keys(first), ...Object.keys(second)])].filter((table) => first[table] !== second[table])
}
