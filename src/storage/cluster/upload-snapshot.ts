// Copies the rows of this controller, and stores the copy as a snapshot for the others.
import { dirname, join } from 'node:path'
import { SNAPSHOT_COPY } from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import type { LogCipher } from '../postgres/log-cipher.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import { copyDatabaseInto, discardDatabase } from '../sqlite/copy-database.ts'
import { storeSnapshot } from './snapshots.ts'

/** The database may be in use. Returns the place to which the rows of the snapshot were led. */
export async function uploadSnapshot(
  connection: LogConnection,
  cipher: LogCipher,
  databaseFile: string,
): Promise<LogPosition> {
  return withSnapshotCopy(databaseFile, (copy) => connection.run((client) => storeSnapshot(client, cipher, copy)))
}

/** Works with a copy of the rows, which no process changes. The database may be in use. */
export async function withSnapshotCopy<T>(databaseFile: string, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = join(dirname(databaseFile), SNAPSHOT_COPY)
  try {
    await copyDatabaseInto(databaseFile, copy)
    return await work(copy)
  } finally {
    discardDatabase(copy)
  }
}
