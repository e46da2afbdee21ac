// The thread that digests the rows of a snapshot, so that no request waits for it.
import { parentPort, workerData } from 'node:worker_threads'
import { openExistingForReading } from '../sqlite/connection.ts'
import { digestRows, type RowDigests } from '../sqlite/row-digest.ts'

/** First the position of the rows that it holds, then their digests. */
export type DigestReply = { readonly position: number } | { readonly digests: RowDigests }

const reply = (message: DigestReply) => parentPort?.postMessage(message)

const connection = openExistingForReading(workerData as string)
connection.exec('begin')
reply({ position: connection.prepare('select position from commit_position').pluck().get() as number })
reply({ digests: digestRows(connection) })
connection.exec('commit')
connection.close()
