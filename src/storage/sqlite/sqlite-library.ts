// Loads the version of better-sqlite3 that this version of Node.js can run.
import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'
import { nativeLibraryError, SQLITE_LIBRARY } from '../../settings/native-libraries.ts'

export function loadSqlite(): typeof BetterSqlite3 {
  return createRequire(import.meta.url)(SQLITE_LIBRARY)
}

/** Opens a file as the library does. @throws DataDirectoryError if the library does not load */
export function openSqlite(file: string, options: BetterSqlite3.Options = {}): BetterSqlite3.Database {
  try {
    const Sqlite = loadSqlite()
    return new Sqlite(file, options)
  } catch (error) {
    throw isNativeModuleFailure(error) ? nativeLibraryError(SQLITE_LIBRARY, error) : error
  }
}

/** Whether the library, or its native code, could not be loaded. */
function isNativeModuleFailure(error: unknown): boolean {
  const { code, message = '' } = error as Partial<NodeJS.ErrnoException>
  const isMissing = code === 'ERR_DLOPEN_FAILED' || code === 'MODULE_NOT_FOUND'
  return isMissing || message.startsWith('Could not locate the bindings file')
}
