// Makes a backup of a data directory, while a controller runs on it or not: one file with a consistent copy of the database, the
// keys, the certificates and the settings, which is read back before it gets its name.
//
// `VACUUM INTO` on a connection of its own copies one state of the database, and delays no writer. It runs in the command,
// or in a thread of the controller. The archive is `tar.gz`, encrypted in the format of age, so that an operator can open it without
// this program. No operation returns a backup, because its keys never leave the machine by the API.
import { createHash, randomBytes } from 'node:crypto'
import {
  closeSync,
  createReadStream,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { version } from '../../foundation/version.ts'
import { isUnfinished, syncDirectory } from '../../pki/files.ts'
import {
  getDataPaths,
  isExistingPath,
  isRestoreUnfinished,
  requireDatabase,
  runAsOwner,
} from '../../settings/data-directory.ts'
import { listAppliedMigrations } from '../../storage/migrate.ts'
import { type BackupWorkspace, createBackupWorkspace } from '../../storage/sqlite/backup-workspaces.ts'
import { readCommitPosition } from '../../storage/sqlite/commit-position.ts'
import { openForReading } from '../../storage/sqlite/connection.ts'
import { copyDatabaseInto } from '../../storage/sqlite/copy-database.ts'
import { findDefects } from '../integrity/check-database.ts'
import { encrypt } from './age.ts'
import { BackupError, toBackupError } from './backup-error.ts'
import { findMissingEssential, type MissingEssential } from './essential-files.ts'
import { type BackupFile, MANIFEST_NAME, type Manifest, renderManifest } from './manifest.ts'
import { type BackupOwner, readOwner } from './owner.ts'
import { readBackup } from './read-backup.ts'
import { removeOnExit } from './remove-on-exit.ts'
import { type PackedFile, pack } from './tar.ts'

export interface BackupOptions {
  /** The data directory. */
  readonly directory: string
  /** The file of the backup; one of that name is replaced once the backup is complete. */
  readonly file: string
  /** Encrypts it. */
  readonly passphrase?: string | undefined
  readonly now: Instant
  /** The backup belongs to the account that owns its folder, and not to the one that runs this process. */
  readonly isForOwner?: boolean
  /** The address of the controller that the backup names. Without it, that of the settings in the directory. */
  readonly address?: string
}

export interface BackupReport {
  readonly file: string
  readonly bytes: number
  readonly isEncrypted: boolean
  readonly createdAt: string
  readonly owner: BackupOwner
  /** The defects of the database: the backup has them, too. */
  readonly findings: readonly string[]
}

// A rotation of certificates, during which files change, takes less than a second.
const MAX_ATTEMPTS = 5
const MAX_FINDINGS = 100
// Text compresses well at any level, and the fastest one leaves the machine to others.
const GZIP_LEVEL = 1
const HASH_BYTES = 1024 * 1024

/**
 * Makes a backup.
 * @throws BackupError if the disk is full, a file required for a restore is missing, or the backup could not be read back;
 * DataDirectoryError `DATABASE_MISSING`. Nothing has changed then.
 */
export async function createBackup(options: BackupOptions): Promise<BackupReport> {
  const { directory, file, passphrase, now } = options
  requireDatabase(directory)
  const folder = dirname(file)
  const withRights: WithRights = (work) => (options.isForOwner ? runAsOwner(folder, work) : work())
  const unfinished = `${file}.${randomBytes(6).toString('hex')}.new`
  const workspace = openWorkspace(directory)
  const discard = removeOnExit(() => {
    workspace.remove()
    withRights(() => rmSync(unfinished, { force: true }))
  })
  try {
    const database = join(workspace.folder, 'controller.db')
    const files = await copyTogether(directory, database).catch((error) => {
      throw toBackupError(error, directory)
    })
    const owner = readOwner(directory, options.address)
    const manifest = await describeCopy({ directory, database, files, owner, now })
    const descriptor = withRights(() => openSync(unfinished, 'wx', 0o600))
    await writeArchive(descriptor, { database, files, manifest, passphrase, now })
    await requireReadable(unfinished, passphrase, manifest)
    withRights(() => renameSync(unfinished, file))
    syncDirectory(folder)
    const isEncrypted = passphrase !== undefined
    const { createdAt, findings } = manifest
    return { file, bytes: statSync(file).size, isEncrypted, createdAt, owner, findings }
  } catch (error) {
    throw toBackupError(error, folder)
  } finally {
    discard()
  }
}

/** @throws BackupError if the disk is full */
function openWorkspace(directory: string): BackupWorkspace {
  try {
    return createBackupWorkspace(directory)
  } catch (error) {
    throw toBackupError(error, directory)
  }
}

/** Runs work with the rights of the account that the backup belongs to. */
type WithRights = <T>(work: () => T) => T

/** By their path in the data directory. */
type SmallFiles = ReadonlyMap<string, Buffer>

/**
 * Copies the database, and reads the other files as they are before and after it: they belong together if they are the same.
 * @throws BackupError if they change all the time, or a controller could not start with them
 */
async function copyTogether(directory: string, copy: string): Promise<SmallFiles> {
  let files = readSmallFiles(directory)
  for (let attempt = 1; ; attempt++) {
    await copyDatabaseInto(getDataPaths(directory).database, copy)
    // Between the two, so that it was found in the files that are packed.
    const missing = findMissingEssential(directory)
    const filesAfter = readSmallFiles(directory)
    if (isSame(files, filesAfter)) {
      if (missing) throw incompleteError(directory, missing)
      return files
    }
    if (attempt === MAX_ATTEMPTS) {
      const message = `the keys or settings in ${directory} changed during each of ${MAX_ATTEMPTS} attempts`
      throw new BackupError('BACKUP_FAILED', message, 'run the command again')
    }
    files = filesAfter
  }
}

/** A backup that no restore accepts must not take the place of one that it accepts. */
function incompleteError(directory: string, { reason, cause }: MissingEssential): BackupError {
  const message = `a backup of ${directory} could not be restored: ${reason}`
  return new BackupError(
    'BACKUP_FAILED',
    message,
    'restore the file from an earlier backup; nothing was changed',
    cause,
  )
}

/**
 * Reads keys, certificates and settings at once, in one turn of the event loop.
 * @throws BackupError while a restore is not complete
 */
function readSmallFiles(directory: string): SmallFiles {
  const { config, tokenKey, auditKey, secretsKey, previousSecretsKey, pki } = getDataPaths(directory)
  return runAsOwner(directory, () => {
    const inPki = readdirSync(pki, { withFileTypes: true })
      .filter((entry) => entry.isFile() && !isUnfinished(entry.name))
      .map(({ name }) => join(pki, name))
    const paths = [config, tokenKey, auditKey, secretsKey, previousSecretsKey, ...inPki].filter(isExistingPath)
    const files = new Map(paths.map((path) => [path.slice(directory.length + 1), readFileSync(path)]))
    // Checked after they are read, because another process may begin a restore meanwhile.
    if (isRestoreUnfinished(directory)) {
      const message = `a restore of ${directory} is not complete, so that its files do not belong together`
      throw new BackupError('BACKUP_FAILED', message, 'run the command again')
    }
    return files
  })
}

function isSame(some: SmallFiles, others: SmallFiles): boolean {
  return some.size === others.size && [...some].every(([name, content]) => others.get(name)?.equals(content))
}

async function describeCopy(copy: {
  readonly directory: string
  readonly database: string
  readonly files: SmallFiles
  readonly owner: BackupOwner
  readonly now: Instant
}): Promise<Manifest> {
  const connection = openForReading(copy.database)
  try {
    const findings: string[] = []
    for (const { description } of findDefects(connection, getDataPaths(copy.directory))) {
      findings.push(description)
      if (findings.length === MAX_FINDINGS) break
    }
    const database = {
      name: 'controller.db',
      bytes: statSync(copy.database).size,
      sha256: await hashFile(copy.database),
    }
    const others = [...copy.files].map(([name, content]): BackupFile => {
      return { name, bytes: content.length, sha256: createHash('sha256').update(content).digest('hex') }
    })
    const migrations = listAppliedMigrations(connection)
    return {
      version: version.version,
      createdAt: toIsoTime(copy.now),
      owner: copy.owner,
      position: readCommitPosition(copy.database).position,
      migrations,
      files: [database, ...others],
      findings,
    }
  } finally {
    connection.close()
  }
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: HASH_BYTES })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

interface Archive {
  readonly database: string
  readonly files: SmallFiles
  readonly manifest: Manifest
  readonly passphrase: string | undefined
  readonly now: Instant
}

async function writeArchive(
  descriptor: number,
  { database, files, manifest, passphrase, now }: Archive,
): Promise<void> {
  const head = renderManifest(manifest)
  const packed = manifest.files.map(({ name, bytes }): PackedFile => {
    const content = files.get(name)
    return { name, bytes, content: content ? [content] : createReadStream(database, { highWaterMark: HASH_BYTES }) }
  })
  const archive = pack([{ name: MANIFEST_NAME, bytes: head.length, content: [head] }, ...packed], now)
  const write = async (chunks: AsyncIterable<Uint8Array>) => {
    for await (const chunk of chunks) writeAll(descriptor, chunk)
    fsyncSync(descriptor)
  }
  try {
    const gzip = createGzip({ level: GZIP_LEVEL })
    await pipeline(archive, gzip, async (compressed: AsyncIterable<Uint8Array>) =>
      write(passphrase === undefined ? compressed : encrypt(compressed, passphrase)),
    )
  } finally {
    closeSync(descriptor)
  }
}

function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at, bytes.length - at)
}

/** Reads the written file as a restore does. @throws BackupError if it does not hold what was packed */
async function requireReadable(path: string, passphrase: string | undefined, manifest: Manifest): Promise<void> {
  const readManifest = await readBackup({ file: path, passphrase }, async (_name, content) => {
    for await (const _chunk of content);
  })
  if (JSON.stringify(readManifest.files) === JSON.stringify(manifest.files)) return
  const message = `the backup ${path} could not be read back as it was written`
  throw new BackupError('BACKUP_FAILED', message, 'check the disk, and run the command again')
}
