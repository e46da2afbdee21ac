// Locks a file for one process, with an exclusive lock that the system releases when the process dies.
import { ensurePrivateFile } from '../../pki/files.ts'
import { isBusy } from './sqlite-errors.ts'
import { openSqlite } from './sqlite-library.ts'

/**
 * Locks a file, which is created if it does not exist. Returns the function that releases the lock; undefined if another process holds it.
 * @throws what the system or SQLite says if the lock cannot be taken for any other reason
 */
export function lockFile(path: string): (() => void) | undefined {
  ensurePrivateFile(path)
  const file = openSqlite(path, { timeout: 0 })
  try {
    // SQLite opens a file without write permission for reading, and then grants an exclusive transaction without any lock. A
    // change detects this. It stays in memory, and is rolled back at the end.
    file.pragma('journal_mode = memory')
    file.exec('begin exclusive; pragma user_version = 1')
    return () => void file.close()
  } catch (error) {
    file.close()
    if (isBusy(error)) return undefined
    throw error
  }
}
