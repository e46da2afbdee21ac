// Replaces the rows of all controllers of a cluster by those of a database that a backup held: as a new snapshot, and a head to which no
// commit of theirs leads.
//
// One transaction under the lock of the head does both. Until then no controller uses the snapshot. From then on none finds in the log what
// it has applied, so that it grants nothing, commits nothing, and rebuilds its rows from the snapshot at its next start.
import { dirname } from 'node:path'
import type { Client } from 'pg'
import type { Instant } from '../../foundation/clock.ts'
import { newId } from '../../foundation/ids.ts'
import { DataDirectoryError, runAsOwner } from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import type { LogCipher } from '../postgres/log-cipher.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import { findUnderLock, LIMIT_WAITING } from '../postgres/log-lock.ts'
import type { LogHead, LogStart } from '../postgres/log-tables.ts'
import { type CommitPosition, continueAfter } from '../sqlite/commit-position.ts'
import { readLogStart, setChain } from '../sqlite/log-start.ts'
import { completeSnapshot, type UploadedSnapshot, uploadParts } from './snapshots.ts'
import { withSnapshotCopy } from './upload-snapshot.ts'

// More than what controllers that run commit while the snapshot is stored.
const MAX_COMMITS_MEANWHILE = 1_000_000

const READ_LAST_TIME = 'select max(at) as at from controller.commits'

const READ_HEAD = 'select position, key_check as "keyCheck" from controller.head for update'

// The snapshot with which the chain begins, which is in use, also after others have committed since.
const FIND_START = 'select from controller.snapshots where chain = $1 and manifest is not null'

const REPLACE_HEAD = `
  update controller.head
  set position = $1, chain = $2, epoch = epoch + 1, migration = $3, schema_digest = $4, release = $5`

// The commits lead to the former head. With them there, a controller that has not applied them all would take them for what follows.
const DELETE_FORMER = [
  'delete from controller.commits',
  'delete from controller.digests',
  'delete from controller.snapshots where id <> $1',
]

export interface ReplaceRowsParts {
  /** Has a response time that is enough to delete all commits. */
  readonly connection: LogConnection
  readonly cipher: LogCipher
  /** The head, as it was found to be that of the network. */
  readonly head: LogHead
  /** The database whose rows all controllers get. No process has it open. Its position and chain are set, and its disk needs room for a copy. */
  readonly databaseFile: string
  /** When the backup was made, as it says itself. */
  readonly backupOf: string
  /** The last commit that is known to this controller. */
  readonly last: CommitPosition
  readonly now: Instant
}

/**
 * Returns the place of the rows in the log.
 * @throws DataDirectoryError `LOG_CHANGED` if the key or the place of the log is another one by then, `NOT_RESTORED` if the database did not
 * take the transaction, `OUTCOME_UNKNOWN` if nothing tells whether it did; what the connection throws before that
 */
export async function replaceRowsOfAll(parts: ReplaceRowsParts): Promise<LogPosition> {
  const { connection, cipher, databaseFile, backupOf } = parts
  await leadToNewPlace(parts)
  const start = readLogStart(databaseFile)
  await withSnapshotCopy(databaseFile, async (copy) => {
    const restore = { backupOf, position: start.position }
    const snapshot = await connection.run((client) => uploadParts(client, cipher, copy, restore))
    await connection.run(async (client) => {
      await prepare(client, parts.head, start, snapshot).catch((error: Error) => {
        throw error instanceof DataDirectoryError ? error : notRestoredError(error)
      })
      await client.query('commit').catch((error: Error) => settleOutcome(connection, start, error))
    })
  })
  const { position, chain } = start
  return { position, chain }
}

/** After every position and time that controllers and clients may have been told, and at the beginning of a chain of its own. */
async function leadToNewPlace({ connection, cipher, head, databaseFile, last, now }: ReplaceRowsParts): Promise<void> {
  const { rows } = await connection.run((client) => client.query<{ at: number | null }>(READ_LAST_TIME))
  const at = Math.max(last.at, rows[0]?.at ?? 0)
  const position = Math.max(last.position, head.position) + MAX_COMMITS_MEANWHILE
  runAsOwner(dirname(databaseFile), () => {
    continueAfter(databaseFile, { position, at }, now)
    const place = readLogStart(databaseFile)
    // It names the cluster key, so that commits under a former one do not follow.
    setChain(databaseFile, cipher.extend(place, cipher.encrypt(Buffer.from(newId()), 'the beginning of a chain')))
  })
}

/** Everything but the commit: if it fails, nothing has changed. */
async function prepare(client: Client, head: LogHead, start: LogStart, snapshot: UploadedSnapshot): Promise<void> {
  const { position, chain, schema } = start
  await client.query('begin')
  await client.query(LIMIT_WAITING)
  const { rows } = await client.query<Pick<LogHead, 'position' | 'keyCheck'>>(READ_HEAD)
  const [current] = rows
  if (!current?.keyCheck.equals(head.keyCheck) || current.position >= position) throw logChangedError()
  if (!(await completeSnapshot(client, snapshot))) throw logChangedError()
  await client.query(REPLACE_HEAD, [position, chain, schema.migration, schema.digest, schema.release])
  for (const statement of DELETE_FORMER) await client.query(statement, statement.includes('$1') ? [snapshot.id] : [])
}

/** Returns if the transaction was committed although its response says otherwise, or was lost. @throws DataDirectoryError */
async function settleOutcome(connection: LogConnection, { chain }: LogStart, cause: Error): Promise<void> {
  connection.end()
  let isTaken: boolean
  try {
    isTaken = await connection.run((client) => findUnderLock(client, FIND_START, [chain]))
  } catch {
    const message = `the database did not respond (${cause.message}), and nothing tells whether the backup was restored`
    throw new DataDirectoryError('OUTCOME_UNKNOWN', message, 'once it responds, run the command again', cause)
  }
  if (!isTaken) throw notRestoredError(cause)
}

function notRestoredError(cause: Error): DataDirectoryError {
  const message = `the database did not take the backup, and nothing was restored: ${cause.message}`
  return new DataDirectoryError('NOT_RESTORED', message, 'run the command again', cause)
}

function logChangedError(): DataDirectoryError {
  return new DataDirectoryError(
    'LOG_CHANGED',
    'the key or the snapshots of the cluster were replaced meanwhile, and nothing was restored',
    'run the command again',
  )
}
