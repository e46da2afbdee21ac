// The new data directory of an adoption, which is not a controller's until its settings are written.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createPrivateDirectory, writePrivateFile } from '../pki/files.ts'
import { DataDirectoryError, getDataPaths, LOCK_FILE, LOST_AND_FOUND } from '../settings/data-directory.ts'
import { renderConfigFile } from '../settings/render-config.ts'
import type { Overrides } from '../settings/settings.ts'
import { DirectoryLockedError, lockDirectory } from '../storage/sqlite/directory-lock.ts'

/** A directory that this process holds until it is a controller's, or deleted. */
export interface NewDirectory {
  /** Writes the settings, last of all. Returns their path. */
  complete(settings: Overrides): string
  /** Deletes everything that was put there. */
  discard(): void
}

/**
 * Takes a directory that does not exist, or is empty. One of an adoption that was interrupted is not taken over either.
 * @throws DataDirectoryError, DirectoryLockedError if another process holds it; what is there stays
 */
export function claimNewDirectory(path: string): NewDirectory {
  requireEmpty(path)
  const existed = existsSync(path)
  const unlock = lockNewDirectory(path, existed)
  return {
    complete(settings) {
      const { config } = getDataPaths(path)
      writePrivateFile(config, renderConfigFile(settings))
      unlock()
      return config
    },
    discard() {
      removeContents(path, existed)
      unlock()
    },
  }
}

function lockNewDirectory(path: string, existed: boolean): () => void {
  createPrivateDirectory(path)
  try {
    const unlock = lockDirectory(path)
    try {
      // Another process may have filled it since.
      requireEmpty(path)
      return unlock
    } catch (error) {
      unlock()
      throw error
    }
  } catch (error) {
    const isOfAnother = error instanceof DirectoryLockedError || holdsAnything(path)
    if (!isOfAnother) removeContents(path, existed)
    throw error
  }
}

function requireEmpty(path: string): void {
  if (!existsSync(path) || !holdsAnything(path)) return
  const remedy =
    'a new directory for --data-dir; delete this one first if it is that of an adoption that was interrupted'
  throw new DataDirectoryError('NOT_EMPTY', `${path} is not empty`, remedy)
}

function holdsAnything(path: string): boolean {
  return listContents(path).some((name) => name !== LOCK_FILE)
}

function listContents(path: string): string[] {
  return readdirSync(path).filter((name) => name !== LOST_AND_FOUND)
}

function removeContents(path: string, existed: boolean): void {
  if (!existed) rmSync(path, { recursive: true, force: true })
  else for (const name of listContents(path)) rmSync(join(path, name), { recursive: true })
}
