// The thread that checks a database, so that no request waits for it.
import { parentPort, workerData } from 'node:worker_threads'
import { openExistingForReading } from '../../storage/sqlite/connection.ts'
import { findDefects } from './check-database.ts'
import type { CheckedFiles, Defect } from './defects.ts'

/** The request that the thread is started with. */
export interface CheckRequest extends CheckedFiles {
  /** The check ends after this number of defects. */
  readonly maxDefects: number
}

// How many defects one message holds.
const BATCH = 100

const { maxDefects, ...files } = workerData as CheckRequest
const connection = openExistingForReading(files.database)
let batch: Defect[] = []
let count = 0
for (const defect of findDefects(connection, files)) {
  batch.push(defect)
  if (++count === maxDefects) break
  if (batch.length < BATCH) continue
  parentPort?.postMessage(batch)
  batch = []
}
parentPort?.postMessage(batch)
connection.close()
