// Locks a data directory for one process, with an exclusive lock that the system releases when the process dies.
import { join } from 'node:path'
import type { Database as SqliteDatabase } from 'better-sqlite3'
import { ensurePrivateFile } from '../../pki/files.ts'
import {
  type AccessOptions,
  completeRestore,
  DataDirectoryError,
  LOCK_FILE,
  removeBackupWorkspaces,
  removeUnpackedBackup,
  restrictAccess,
  runAsOwner,
} from '../../settings/data-directory.ts'
import { isBusy } from './sqlite-errors.ts'
import { openSqlite } from './sqlite-library.ts'

/** Another process holds the directory. */
export class DirectoryLockedError extends Error {
  constructor(directory: string) {
    super(`another controller, or an offline command, works on ${directory}`)
    this.name = 'DirectoryLockedError'
  }
}

/**
 * Locks a directory, removes the rights of other accounts to its files, completes a restore that was
 * interrupted, and removes what an interrupted backup or its unpacking left. Returns the function that releases the lock.
 * @throws DirectoryLockedError if another process holds it, DataDirectoryError if it cannot be taken for any other reason
 */
export function lockDirectory(directory: string, access: AccessOptions = {}): () => void {
  return runAsOwner(directory, () => {
    restrictAccess(directory, access)
    const file = lockFile(directory)
    try {
      completeRestore(directory)
      removeUnpackedBackup(directory)
      removeBackupWorkspaces(directory)
    } catch (error) {
      file.close()
      throw error
    }
    return () => file.close()
  })
}

function lockFile(directory: string): SqliteDatabase {
  const path = join(directory, LOCK_FILE)
  let file: SqliteDatabase | undefined
  try {
    ensurePrivateFile(path)
    file = openSqlite(path, { timeout: 0 })
    // SQLite opens a file without write permission for reading, and then grants an exclusive transaction without any lock. A
    // change detects this. It stays in memory, and is rolled back at the end.
    file.pragma('journal_mode = memory')
    file.exec('begin exclusive; pragma user_version = 1')
    return file
  } catch (error) {
    file?.close()
    if (isBusy(error)) throw new DirectoryLockedError(directory)
    if (error instanceof DataDirectoryError) throw error
    const message = `the lock of ${directory} cannot be taken: ${(error as Error).message}`
    throw new DataDirectoryError('LOCK_FAILED', message, `make ${path} readable and writable for this account`, error)
  }
}
