// Verifies a backup by unpacking it, and restores it: what it replaces is kept beside it, and nothing is ever replaced in part.
//
// The backup is unpacked and verified beside the data, and one rename commits it. From then on whatever locks the
// directory completes the restore (`completeRestore` in `settings/data-directory.ts`). The directory itself stays, because it may
// be a mount point.
import { closeSync, existsSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Instant } from '../../foundation/clock.ts'
import { createPrivateDirectory, syncDirectory } from '../../pki/files.ts'
import {
  completeRestore,
  DataDirectoryError,
  getDataPaths,
  isRestoreUnfinished,
  removeUnpackedBackup,
  requireNothingElse,
  requireReplaceable,
  runAsOwner,
  stageRestore,
  UNPACKED_BACKUP,
} from '../../settings/data-directory.ts'
import { requireKnownMigrations } from '../../storage/migrate.ts'
import { continueAfter, readCommitPosition } from '../../storage/sqlite/commit-position.ts'
import { lockDirectory } from '../../storage/sqlite/directory-lock.ts'
import { checkDatabaseFile } from '../integrity/check-database.ts'
import { damagedError, toBackupError } from './backup-error.ts'
import { findMissingEssential } from './essential-files.ts'
import { toFileTime } from './file-names.ts'
import type { Manifest } from './manifest.ts'
import { type BackupSource, readBackup } from './read-backup.ts'
import { removeOnExit } from './remove-on-exit.ts'

/** The contents of a backup. */
export interface VerifiedBackup {
  readonly manifest: Manifest
  /** The defects of its database; empty if it is intact. */
  readonly findings: readonly string[]
}

/**
 * Unpacks a backup in a temporary folder, and checks everything in it.
 * @throws BackupError, and DataDirectoryError `NEWER_DATABASE` if a newer version made it
 */
export async function verifyBackup(source: BackupSource): Promise<VerifiedBackup> {
  const folder = mkdtempSync(join(tmpdir(), 'backup-'))
  const discard = removeOnExit(() => rmSync(folder, { recursive: true, force: true }))
  try {
    return await unpackBackup(source, folder)
  } catch (error) {
    throw toBackupError(error, folder)
  } finally {
    discard()
  }
}

export interface UnpackOptions extends BackupSource {
  /** The data directory. */
  readonly directory: string
  /** Also takes a database that has defects. */
  readonly isForced?: boolean
}

export interface RestoreOptions extends UnpackOptions {
  /** The data directory; it is created if it does not exist. */
  readonly directory: string
  readonly now: Instant
}

export interface RestoreReport extends VerifiedBackup {
  /** The folder with what the directory held before; undefined if it held nothing. */
  readonly replaced: string | undefined
}

/**
 * Replaces the content of the data directory of a controller that is alone by that of a backup, after it was verified.
 * @throws BackupError, DataDirectoryError, and DirectoryLockedError while a controller runs; nothing has changed then, unless the code is
 * `RESTORE_UNFINISHED`
 */
export async function restoreBackup({ now, ...options }: RestoreOptions): Promise<RestoreReport> {
  const { directory } = options
  requireNothingElse(directory)
  requireReplaceable(directory)
  const isNew = !existsSync(directory)
  createPrivateDirectory(directory)
  const unlock = lockDirectory(directory)
  let isRestored = false
  try {
    return await withUnpackedBackup(options, async (backup, folder) => {
      // A follower of the replaced database must not take later commits for commits that it has seen.
      const last = readCommitPosition(getDataPaths(directory).database)
      runAsOwner(directory, () => continueAfter(getDataPaths(folder).database, last, now))
      const replaced = replaceContent(directory, folder, backup.manifest, now)
      isRestored = true
      return { ...backup, replaced }
    })
  } finally {
    unlock()
    if (isNew && !isRestored && !isRestoreUnfinished(directory)) rmSync(directory, { recursive: true, force: true })
  }
}

/**
 * Unpacks a backup in a folder of a data directory whose lock the caller holds, verifies it, and removes what is left of the folder after
 * the work with it.
 * @throws BackupError, and DataDirectoryError `NEWER_DATABASE` if a newer version made it; what the work throws
 */
export async function withUnpackedBackup<T>(
  { directory, isForced, ...source }: UnpackOptions,
  work: (backup: VerifiedBackup, folder: string) => Promise<T>,
): Promise<T> {
  const folder = join(directory, UNPACKED_BACKUP)
  const removeFolder = () => removeUnpackedBackup(directory)
  const discard = removeOnExit(removeFolder)
  try {
    removeFolder()
    runAsOwner(directory, () => createPrivateDirectory(folder))
    const backup = await unpackBackup(source, folder)
    const [finding] = backup.findings
    if (finding !== undefined && !isForced) throw damagedError(source.file, `its database has defects: ${finding}`)
    return await work(backup, folder)
  } catch (error) {
    throw toBackupError(error, directory)
  } finally {
    discard()
  }
}

function replaceContent(directory: string, folder: string, manifest: Manifest, now: Instant): string | undefined {
  const names = new Set(manifest.files.map(({ name }) => name.split('/')[0] ?? name))
  return runAsOwner(directory, () => {
    stageRestore(directory, folder, toFileTime(now), [...names])
    try {
      return completeRestore(directory)
    } catch (error) {
      throw unfinishedError(directory, error)
    }
  })
}

/** The content is replaced in part, or not yet: the next process that locks the directory goes on. */
function unfinishedError(directory: string, error: unknown): DataDirectoryError {
  const message = `the restore of ${directory} has begun, and could not be completed: ${(error as Error).message}`
  const remedy =
    'free some space on the disk, or remove what else is in the way; the next start then completes the restore'
  return new DataDirectoryError('RESTORE_UNFINISHED', message, remedy, error)
}

/** Unpacks a backup into an empty folder, and checks the database, the keys and the certificates in it. */
async function unpackBackup(source: BackupSource, folder: string): Promise<VerifiedBackup> {
  const manifest = await readBackup(source, (name, content) => unpackFile(folder, name, content))
  requireKnownMigrations(manifest.migrations)
  const paths = getDataPaths(folder)
  const missing = findMissingEssential(folder)
  if (missing) throw damagedError(source.file, missing.reason, missing.cause)
  for (const each of [paths.pki, folder]) syncDirectory(each)
  return { manifest, findings: (await checkDatabaseFile(paths)).findings }
}

async function unpackFile(folder: string, name: string, content: AsyncIterable<Buffer>): Promise<void> {
  const path = join(folder, name)
  const descriptor = runAsOwner(folder, () => {
    createPrivateDirectory(dirname(path))
    return openSync(path, 'wx', 0o600)
  })
  try {
    for await (const chunk of content) {
      for (let at = 0; at < chunk.length; ) at += writeSync(descriptor, chunk, at, chunk.length - at)
    }
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
