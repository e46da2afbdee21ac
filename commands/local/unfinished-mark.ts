// Marks a directory of a quickstart that has not printed everything yet: only its output has the password of the administrator.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivateFile } from '../../src/pki/files.ts'

/** The mark of a quickstart, beside its data. */
export class UnfinishedMark {
  readonly #path: string

  constructor(home: string) {
    this.#path = join(home, 'unfinished')
  }

  exists(): boolean {
    return existsSync(this.#path)
  }

  /** Sets the mark while `initialize` makes the data, and after it. If that fails, nothing of this process is there to be marked. */
  async set(initialize: () => Promise<unknown>): Promise<void> {
    const isSetBefore = this.exists()
    if (!isSetBefore) writePrivateFile(this.#path, '')
    try {
      await initialize()
    } catch (error) {
      if (!isSetBefore) this.remove()
      throw error
    }
  }

  remove(): void {
    rmSync(this.#path, { force: true })
  }
}

/**
 * Gives a data directory another name: it is not deleted, because it may have been recovered. Returns the new path.
 * @throws DirectoryLockedError if another process works on it
 */
export async function setAside(directory: string, now: number): Promise<string> {
  const { lockDirectory } = await import('../../src/storage/sqlite/directory-lock.ts')
  const path = `${directory}-unfinished-${now}`
  const unlock = lockDirectory(directory)
  try {
    renameSync(directory, path)
    return path
  } finally {
    unlock()
  }
}
