// Locks a data directory for one process, with an exclusive lock that the system releases when the process dies.
import { join } from 'node:path'
import {
  type AccessOptions,
  completeRestore,
  DataDirectoryError,
  LOCK_FILE,
  removeUnpackedBackup,
  restrictAccess,
  runAsOwner,
} from '../../settings/data-directory.ts'
import { removeBackupWorkspaces } from './backup-workspaces.ts'
import { lockFile } from './file-lock.ts'

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
    const unlock = takeLock(directory)
    try {
      completeRestore(directory)
      removeUnpackedBackup(directory)
      removeBackupWorkspaces(directory)
    } catch (error) {
      unlock()
      throw error
    }
    return unlock
  })
}

function takeLock(directory: string): () => void {
  const path = join(directory, LOCK_FILE)
  try {
    const unlock = lockFile(path)
    if (unlock) return unlock
  } catch (error) {
    if (error instanceof DataDirectoryError) throw error
    const message = `the lock of ${directory} cannot be taken: ${(error as Error).message}`
    const remedy = `make ${path} readable and writable for this account; its file system must not be read-only or full`
    throw new DataDirectoryError('LOCK_FAILED', message, remedy, error)
  }
  throw new DirectoryLockedError(directory)
}
