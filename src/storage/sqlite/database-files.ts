// Detects that the files of an open database are no longer the files at their paths.
import { existsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { LOCK_FILE } from '../../settings/data-directory.ts'

// The write-ahead log matters as much as the database: until a checkpoint, a commit is only in the log.
const ENDINGS = ['', '-wal']

interface FileIdentity {
  readonly path: string
  readonly dev: number
  readonly ino: number
}

/** A file of an open database was deleted or replaced: everything that is written to it is lost with this process. */
export class DatabaseFileLostError extends Error {
  constructor(path: string) {
    super(`${path} was deleted or replaced while it was open: restore it, then restart the controller`)
    this.name = 'DatabaseFileLostError'
  }
}

export class DatabaseFiles {
  readonly #identities: readonly FileIdentity[]
  /** The lock of the directory, if it was taken before the database was opened. */
  readonly #lock: FileIdentity | undefined
  #error: DatabaseFileLostError | undefined

  /** @param file of a database that is open */
  constructor(file: string) {
    this.#identities = ENDINGS.map((end) => identifyFile(file + end))
    const lock = join(dirname(file), LOCK_FILE)
    this.#lock = existsSync(lock) ? identifyFile(lock) : undefined
  }

  /**
   * A file that is put back does not help: the commits in between are in the other file.
   * @throws DatabaseFileLostError if a file was deleted or replaced, at any time since it was opened
   */
  requirePresent(): void {
    if (this.#error === undefined) this.#require(this.#identities)
    if (this.#error) throw this.#error
  }

  /**
   * Must be called if another process has written: without the file of its lock, a directory can be locked twice.
   * @throws DatabaseFileLostError if that file was deleted or replaced
   */
  requireLock(): void {
    if (this.#lock) this.#require([this.#lock])
    if (this.#error) throw this.#error
  }

  #require(files: readonly FileIdentity[]): void {
    const missing = files.find((file) => !isSameFile(file))
    if (missing) this.#error = new DatabaseFileLostError(missing.path)
  }
}

function identifyFile(path: string): FileIdentity {
  const { dev, ino } = statSync(path)
  return { path, dev, ino }
}

function isSameFile({ path, dev, ino }: FileIdentity): boolean {
  try {
    const stats = statSync(path, { throwIfNoEntry: false })
    return stats?.ino === ino && stats.dev === dev
  } catch {
    return false
  }
}
