// Notices that the files of an open database are no longer the ones that their names lead to.
import { statSync } from 'node:fs'

// The log counts as much as the database: a commit is in it alone until a checkpoint.
const ENDINGS = ['', '-wal']

interface FileIdentity {
  readonly path: string
  readonly dev: number
  readonly ino: number
}

/** A file of an open database was deleted or replaced: what is written to it from then on is lost with this process. */
export class DatabaseFileLost extends Error {
  constructor(path: string) {
    super(`${path} was deleted or replaced while it was open: restore it, then restart the controller`)
    this.name = 'DatabaseFileLost'
  }
}

export class DatabaseFiles {
  readonly #known: readonly FileIdentity[]
  #lost: DatabaseFileLost | undefined

  /** @param file of a database that is open */
  constructor(file: string) {
    this.#known = ENDINGS.map((end) => {
      const { dev, ino } = statSync(file + end)
      return { path: file + end, dev, ino }
    })
  }

  /**
   * A file that comes back does not help: what was committed meanwhile is in the other one.
   * @throws DatabaseFileLost if a file was deleted or replaced, at any time since it was opened
   */
  requirePresent(): void {
    const lost = this.#lost === undefined && this.#known.find((known) => !isPresent(known))
    if (lost) this.#lost = new DatabaseFileLost(lost.path)
    if (this.#lost) throw this.#lost
  }
}

function isPresent({ path, dev, ino }: FileIdentity): boolean {
  try {
    const found = statSync(path, { throwIfNoEntry: false })
    return found?.ino === ino && found.dev === dev
  } catch {
    return false
  }
}
