// The folders in which backups are made. Each is locked by the process that made it, so that no other one removes it meanwhile. The id of the
// process would not tell whether it runs: containers that share a data directory do not see the processes of each other.
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { isBackupWorkspace, LOCK_FILE, runAsOwner, WORKSPACE_PREFIX } from '../../settings/data-directory.ts'
import { lockFile } from './file-lock.ts'

export interface BackupWorkspace {
  readonly folder: string
  /** Removes the folder with its content. */
  remove(): void
}

/**
 * Creates the folder in which a backup is made, after it removed those of processes that were killed. It is inside the data
 * directory because it holds a copy of the database that is never encrypted.
 */
export function createBackupWorkspace(directory: string): BackupWorkspace {
  removeBackupWorkspaces(directory)
  return runAsOwner(directory, () => {
    for (;;) {
      const folder = mkdtempSync(join(directory, WORKSPACE_PREFIX))
      const unlock = lockWorkspace(folder)
      // Another process may have removed the folder before it was locked.
      if (unlock) return { folder, remove: () => runAsOwner(directory, () => removeLocked(folder, unlock)) }
    }
  })
}

/** Removes the folders in which backups were made, except those of processes that still run. */
export function removeBackupWorkspaces(directory: string): void {
  const names = readdirSync(directory).filter(isBackupWorkspace)
  runAsOwner(directory, () => {
    for (const folder of names.map((name) => join(directory, name))) {
      const unlock = lockWorkspace(folder)
      if (unlock) removeLocked(folder, unlock)
    }
  })
}

/** Returns the function that releases the lock; undefined if another process holds it, or has removed the folder. */
function lockWorkspace(folder: string): (() => void) | undefined {
  const path = join(folder, LOCK_FILE)
  try {
    const unlock = lockFile(path)
    if (existsSync(path)) return unlock
    unlock?.()
  } catch (error) {
    if (existsSync(folder)) throw error
  }
  return undefined
}

function removeLocked(folder: string, unlock: () => void): void {
  try {
    // Some file systems remove no file that is open.
    for (const name of readdirSync(folder))
      if (!name.startsWith(LOCK_FILE)) rmSync(join(folder, name), { recursive: true, force: true })
  } finally {
    unlock()
  }
  rmSync(folder, { recursive: true, force: true })
}
