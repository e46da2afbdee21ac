// Rebuilds the database of a controller from the newest snapshot and the log, if the log does not lead on from its own rows.
//
// The new database is complete before it takes the place of the former one, which stays beside it: its rows may be the only ones that
// have what a failover of the database lost, or what is newer than a backup that was restored.
import { copyFileSync, existsSync, linkSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { syncDirectory, writePrivateFile } from '../../pki/files.ts'
import {
  createRebuildFolder,
  DATABASE_ENDINGS,
  getDataPaths,
  listRebuildFolders,
  REBUILD_FILE,
  runAsOwner,
  UNFINISHED_DATABASE,
} from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import type { LogCipher } from '../postgres/log-cipher.ts'
import type { LogConnection } from '../postgres/log-connection.ts'
import { findFaultAfter, LogContradictionError } from '../postgres/log-rows.ts'
import { LogDatabaseError } from '../postgres/log-tables.ts'
import { openForWriting } from '../sqlite/connection.ts'
import { discardDatabase } from '../sqlite/copy-database.ts'
import { readLogStart } from '../sqlite/log-start.ts'
import { type FollowParts, followLog } from './follow-log.ts'
import { findLostRecords, type LostRecords } from './lost-commits.ts'
import { describeRestoreSince, downloadSnapshot } from './snapshots.ts'

/** A rebuild, as it is described beside the former database. */
export interface Rebuild {
  readonly at: Instant
  /** One sentence without its period. */
  readonly reason: string
  /** The position of the rows before, and that of the rows since. */
  readonly before: number
  readonly after: number
  /** The audit records that the former rows had, and the log has not. */
  readonly lostRecords: LostRecords
  /** A backup was restored: what is not in the log is newer than that, and was not lost. */
  readonly isRestore?: boolean
}

/** The folder of the former database, with what was replaced. */
export interface KeptRebuild extends Rebuild {
  readonly folder: string
}

export interface RebuildParts extends FollowParts {
  /** The data directory. */
  readonly directory: string
  readonly cipher: LogCipher
  readonly connection: LogConnection
}

/** Has the next start rebuild the database. @param reason one sentence without its period */
export function requestRebuild(directory: string, reason: string): void {
  runAsOwner(directory, () => writePrivateFile(join(directory, REBUILD_FILE), JSON.stringify({ reason })))
}

/**
 * Rebuilds the database of a directory whose lock the caller holds, if an earlier process asked for it, or the log does not lead on from
 * its rows. Returns what was replaced; undefined if nothing had to be.
 * @throws LogDatabaseError if the log itself is damaged: then nothing has changed
 */
export async function rebuildIfNeeded(parts: RebuildParts): Promise<KeptRebuild | undefined> {
  const { directory, cipher, connection, commitLog } = parts
  const own = readLogStart(getDataPaths(directory).database)
  const fault = readRequest(directory) ?? (await connection.run((client) => findFaultAfter(client, cipher, own)))
  if (fault === undefined) return undefined
  const restore = await connection.run((client) => describeRestoreSince(client, cipher, own))
  const reason = restore ?? fault
  const after = await makeDatabase(parts, reason)
  await connection.run((client) => client.query('delete from controller.digests where node = $1', [commitLog.node]))
  const isRestore = restore !== undefined
  return replaceDatabase(parts, { reason, before: own.position, after: after.position, isRestore })
}

/** The rebuilds whose former databases are still there, the oldest first. */
export function listRebuilds(directory: string): KeptRebuild[] {
  return listRebuildFolders(directory).flatMap((folder) => {
    const file = join(folder, REBUILD_FILE)
    return existsSync(file) ? [{ ...(JSON.parse(readFileSync(file, 'utf8')) as Rebuild), folder }] : []
  })
}

/** Describes a rebuild in one sentence without its period. */
export function describeRebuild({ reason, before, after, lostRecords, isRestore, folder }: KeptRebuild): string {
  const { count, from, until } = lostRecords
  const records = `${count} audit records of ${toIsoTime(from ?? 0)} to ${toIsoTime(until ?? 0)}`
  const none = isRestore ? 'no audit record is newer than the backup' : 'no audit record is lost'
  const some = isRestore ? `${records} are newer than the backup` : `the log lacks ${records} that this controller had`
  const loss = count === 0 ? none : some
  return `the rows at position ${before} were replaced by those of the log at ${after}, because ${reason}; ${loss}; the former ones are in ${folder}`
}

function readRequest(directory: string): string | undefined {
  const file = join(directory, REBUILD_FILE)
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { reason: string }).reason : undefined
}

/** Makes the new database beside the former one. */
async function makeDatabase(parts: RebuildParts, reason: string): Promise<LogPosition> {
  const { directory, cipher, connection } = parts
  const file = join(directory, UNFINISHED_DATABASE)
  try {
    await connection.run((client) => downloadSnapshot(client, cipher, file))
    const rows = openForWriting(file)
    try {
      await followLog(rows, parts)
    } finally {
      rows.close()
    }
    return readLogStart(file)
  } catch (cause) {
    discardDatabase(file)
    if (!(cause instanceof LogContradictionError)) throw cause
    throw new LogDatabaseError(
      `the log of the cluster is damaged: ${cause.message}. It does not lead on from this controller either, because ${reason}. Restore the database of the log; or let a controller begin another one: controller cluster leave --database-lost, and then controller cluster init with an empty database`,
    )
  }
}

/** Puts the new database in the place of the former one by one rename, after a second name of that one is on disk. */
function replaceDatabase({ directory, clock }: RebuildParts, facts: Omit<Rebuild, 'at' | 'lostRecords'>): KeptRebuild {
  const { database } = getDataPaths(directory)
  const unfinished = join(directory, UNFINISHED_DATABASE)
  return runAsOwner(directory, () => {
    leaveWriteAheadLog(unfinished)
    const lostRecords = findLostRecords(database, unfinished)
    leaveWriteAheadLog(database)
    const at = clock.now()
    const folder = createRebuildFolder(directory, toIsoTime(at).replaceAll(':', '-'))
    writePrivateFile(join(folder, REBUILD_FILE), JSON.stringify({ at, ...facts, lostRecords } satisfies Rebuild))
    nameAgain(database, join(folder, basename(database)))
    syncDirectory(folder)
    for (const end of DATABASE_ENDINGS.slice(1)) rmSync(database + end, { force: true })
    renameSync(unfinished, database)
    rmSync(join(directory, REBUILD_FILE), { force: true })
    syncDirectory(dirname(database))
    return { at, ...facts, lostRecords, folder }
  })
}

/** Makes a database one file. */
function leaveWriteAheadLog(file: string): void {
  const connection = openForWriting(file)
  try {
    connection.pragma('journal_mode = delete')
  } finally {
    connection.close()
  }
}

/** Not every file system has links. */
function nameAgain(file: string, name: string): void {
  rmSync(name, { force: true })
  try {
    linkSync(file, name)
  } catch {
    copyFileSync(file, name)
  }
}
