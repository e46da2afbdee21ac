// Makes a snapshot of the rows once a day, or sooner after many commits, and deletes from the log what no controller needs any more.
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Log } from '../../foundation/log.ts'
import { getDataPaths, isOwnedByOther } from '../../settings/data-directory.ts'
import { LogCipher, LogPayloadError } from '../postgres/log-cipher.ts'
import { type LogDatabase, withLogConnection } from '../postgres/log-connection.ts'
import type { Context } from '../transactions/context.ts'
import { compactLog } from './compact-log.ts'
import type { RowComparison } from './row-comparison.ts'
import type { SnapshotReply, SnapshotRequest } from './snapshot-thread.ts'
import { readSnapshots } from './snapshots.ts'
import { uploadSnapshot } from './upload-snapshot.ts'

const MAX_AGE_SECONDS = 24 * 60 * 60
// A controller that begins with a snapshot applies some 6,000 a second.
const MAX_COMMITS = 100_000

// Tests run the sources, installations the compiled files.
const THREAD = new URL(`./snapshot-thread${extname(import.meta.url)}`, import.meta.url)

const READ_NEWEST = `
  select newest.age, head.position - newest.position as commits
  from controller.head left join lateral (
    select position, extract(epoch from clock_timestamp() - touched_at)::float8 as age
    from controller.snapshots where manifest is not null order by position desc limit 1
  ) as newest on true`

export interface SnapshotUpkeepParts {
  /** The data directory. */
  readonly directory: string
  readonly database: LogDatabase
  /** The newest first. */
  readonly listClusterKeys: () => readonly Buffer[]
  readonly comparison: RowComparison
  readonly log: Log
}

export class SnapshotUpkeep {
  readonly #parts: SnapshotUpkeepParts
  #worker: Worker | undefined

  constructor(parts: SnapshotUpkeepParts) {
    this.#parts = parts
  }

  /** For the controller that does the work by the clock. */
  async runIfDue(context: Context): Promise<void> {
    if (await this.#isDue()) await this.make(context)
  }

  /** Makes a snapshot, unless the rows of this controller turn out to be wrong, and compacts the log. */
  async make(context: Context): Promise<void> {
    const { comparison, log } = this.#parts
    await comparison.request(context)
    if (!(await comparison.compare())) return
    const position = await this.#upload()
    const commits = await withLogConnection(this.#parts.database, (connection) => connection.run(compactLog))
    log.info({ position, commits }, 'made a snapshot of the network for its controllers, and deleted older commits')
  }

  /** Makes a snapshot, and deletes all others, which another cluster key or another history may have made. */
  async replaceAll(): Promise<void> {
    const position = await this.#upload()
    const statement = 'delete from controller.snapshots where manifest is null or position < $1'
    await withLogConnection(this.#parts.database, (connection) =>
      connection.run((client) => client.query(statement, [position])),
    )
  }

  /** Whether there is a snapshot, and all are encrypted under the newest cluster key. */
  async haveNewestKey(): Promise<boolean> {
    const [newest] = this.#parts.listClusterKeys()
    try {
      const cipher = new LogCipher(newest as Buffer)
      const snapshots = await withLogConnection(this.#parts.database, (connection) =>
        connection.run((client) => readSnapshots(client, cipher)),
      )
      return snapshots.length > 0
    } catch (error) {
      if (error instanceof LogPayloadError) return false
      throw error
    }
  }

  /** Ends the snapshot that is made at the moment: one that is not whole is not used. */
  async close(): Promise<void> {
    await this.#worker?.terminate()
  }

  async #isDue(): Promise<boolean> {
    const { rows } = await withLogConnection(this.#parts.database, (connection) =>
      connection.run((client) => client.query<{ age: number | null; commits: number | null }>(READ_NEWEST)),
    )
    const { age = null, commits = null } = rows[0] ?? {}
    if (age === null || commits === null) return true
    return commits > 0 && (age >= MAX_AGE_SECONDS || commits >= MAX_COMMITS)
  }

  #upload(): Promise<number> {
    const { directory, database, listClusterKeys } = this.#parts
    const databaseFile = getDataPaths(directory).database
    const clusterKeys = listClusterKeys()
    // A thread cannot take on the rights of another account.
    if (isOwnedByOther(directory))
      return withLogConnection(
        database,
        async (connection) => (await uploadSnapshot(connection, new LogCipher(...clusterKeys), databaseFile)).position,
      )
    return new Promise((resolve, reject) => {
      const workerData: SnapshotRequest = { databaseFile, database, clusterKeys }
      const worker = new Worker(THREAD, { workerData })
      this.#worker = worker
      worker.on('message', (reply: SnapshotReply) => {
        if ('position' in reply) resolve(reply.position)
        else reject(new Error(reply.failure))
      })
      worker.on('error', reject)
      worker.on('exit', () => {
        this.#worker = undefined
        reject(new Error('the snapshot was interrupted'))
      })
    })
  }
}
