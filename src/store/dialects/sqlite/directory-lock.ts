// One process at a time works on a data directory: an exclusive lock that the system lets go of when the process dies.
import { join } from 'node:path'
import Sqlite from 'better-sqlite3'
import { isBusy } from './faults.ts'

/** Another process holds the directory. */
export class DirectoryLocked extends Error {
  constructor(directory: string) {
    super(`another controller, or an offline command, works on ${directory}`)
    this.name = 'DirectoryLocked'
  }
}

/** Takes the lock of a directory; the result lets go of it. @throws DirectoryLocked */
export function lockDirectory(directory: string): () => void {
  const file = new Sqlite(join(directory, 'lock.db'), { timeout: 0 })
  try {
    file.exec('begin exclusive')
  } catch (error) {
    file.close()
    throw isBusy(error) ? new DirectoryLocked(directory) : error
  }
  return () => file.close()
}
