// Opens SQLite files with the settings that this controller requires, and verifies that they took effect.
import { dirname } from 'node:path'
import type { Database as SqliteDatabase } from 'better-sqlite3'
import { ensurePrivateFile } from '../../pki/files.ts'
import { runAsOwner } from '../../settings/data-directory.ts'
import { openSqlite } from './sqlite-library.ts'

export type { SqliteDatabase }

// synchronous=2 is FULL: a commit is on disk before its response. It has to be set on every open, because SQLite is
// compiled here to fall back to NORMAL for files that are in WAL mode already. temp_store=2 is MEMORY: savepoints of a
// group would spill to temporary files past 64 KiB. journal_size_limit shrinks the log after a burst.
const SETTINGS: readonly (readonly [pragma: string, value: string, reads: unknown])[] = [
  ['journal_mode', 'WAL', 'wal'],
  ['synchronous', 'FULL', 2],
  ['foreign_keys', 'ON', 1],
  ['temp_store', 'MEMORY', 2],
  ['journal_size_limit', String(8 * 1024 * 1024), 8 * 1024 * 1024],
  ['busy_timeout', '0', 0],
]

/** Opens a file for reading and writing, creating it if it is missing. */
export function openForWriting(file: string): SqliteDatabase {
  return runAsOwner(dirname(file), () => {
    // SQLite creates the files beside a database with the mode of the database.
    ensurePrivateFile(file)
    const connection = openSqlite(file, { timeout: 0 })
    try {
      applySettings(connection, file)
      addFunctions(connection)
      return connection
    } catch (error) {
      connection.close()
      throw error
    }
  })
}

function applySettings(connection: SqliteDatabase, file: string): void {
  for (const [pragma, value, reads] of SETTINGS) {
    connection.pragma(`${pragma} = ${value}`)
    const actual = connection.pragma(pragma, { simple: true })
    if (actual !== reads) {
      throw new Error(`SQLite did not accept ${pragma} = ${value} for ${file}: it reads ${String(actual)}`)
    }
  }
}

/** Opens a second connection to the same file that can only read. */
export function openForReading(file: string): SqliteDatabase {
  return runAsOwner(dirname(file), () => openExistingForReading(file))
}

/** The same for a file that this process writes to, so that no file has to be created beside it. Also for threads. */
export function openExistingForReading(file: string): SqliteDatabase {
  const connection = openSqlite(file, { readonly: true, timeout: 0 })
  try {
    connection.pragma('temp_store = MEMORY')
    addFunctions(connection)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Functions that filters need and SQLite lacks: its own `upper` converts ASCII only. */
function addFunctions(connection: SqliteDatabase): void {
  connection.function('unicode_upper', { deterministic: true }, (text) =>
    typeof text === 'string' ? text.toUpperCase() : text,
  )
}

/** Opens an empty database in memory, which ends with the connection. */
export function openInMemory(): SqliteDatabase {
  const connection = openSqlite(':memory:')
  addFunctions(connection)
  return connection
}
