// The thread that stores a snapshot, so that no request waits for it.
import { parentPort, workerData } from 'node:worker_threads'
import { LogCipher } from '../postgres/log-cipher.ts'
import { type LogDatabase, withLogConnection } from '../postgres/log-connection.ts'
import { uploadSnapshot } from './upload-snapshot.ts'

/** The request that the thread is started with. */
export interface SnapshotRequest {
  readonly databaseFile: string
  readonly database: LogDatabase
  /** The newest first. */
  readonly clusterKeys: readonly Uint8Array[]
}

/** The reply of the thread, before it ends. */
export type SnapshotReply = { readonly position: number } | { readonly failure: string }

const { databaseFile, database, clusterKeys } = workerData as SnapshotRequest
try {
  const cipher = new LogCipher(...clusterKeys.map((key) => Buffer.from(key)))
  const { position } = await withLogConnection(database, (connection) =>
    uploadSnapshot(connection, cipher, databaseFile),
  )
  parentPort?.postMessage({ position } satisfies SnapshotReply)
} catch (error) {
  parentPort?.postMessage({ failure: (error as Error).message } satisfies SnapshotReply)
}
