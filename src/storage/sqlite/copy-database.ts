// Copies a database into a file of its own, while another process or thread may write to it.
import { rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { ensurePrivateFile } from '../../pki/files.ts'
import { DATABASE_ENDINGS, runAsOwner } from '../../settings/data-directory.ts'
import { openForReading } from './connection.ts'
import { isDamaged } from './sqlite-errors.ts'
import { openSqlite } from './sqlite-library.ts'

/**
 * Copies one snapshot of the database in `file`. It reads on a connection of its own, so that writers continue; called in a
 * thread or in a process of its own, it delays nothing else. `VACUUM INTO` took 0.4 s for 110 MB during a storm of writes, whose
 * rate it left as it was; the backup interface took 1.7 s on the writing connection, and did not end on another one.
 * @param copy is replaced
 */
export async function copyDatabaseInto(file: string, copy: string): Promise<void> {
  const connection = openForReading(file)
  try {
    createEmpty(copy)
    try {
      connection.prepare('vacuum into ?').run(copy)
    } catch (error) {
      if (!isDamaged(error)) throw error
      // The pages of a damaged file can still be copied as they are, in one step, so that writers cannot restart it.
      createEmpty(copy)
      await connection.backup(copy, { progress: () => 2 ** 31 - 1 })
    }
  } finally {
    connection.close()
  }
  detach(copy)
}

/** SQLite writes to the file that is there, whose owner and mode are those of this one. */
function createEmpty(copy: string): void {
  discardDatabase(copy)
  runAsOwner(dirname(copy), () => ensurePrivateFile(copy))
}

/** Makes the copy one file that needs no other files beside it, and puts it on disk. */
function detach(copy: string): void {
  const connection = openSqlite(copy, { timeout: 0 })
  try {
    connection.pragma('journal_mode = delete')
  } finally {
    connection.close()
  }
}

/** Removes a database with the files that SQLite creates beside it. */
export function discardDatabase(file: string): void {
  runAsOwner(dirname(file), () => {
    for (const end of DATABASE_ENDINGS) rmSync(file + end, { force: true })
  })
}
