// The data directory: the paths of its parts, their owner, and their protection against other accounts.
import {
  chmodSync,
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { createPrivateDirectory, isUnfinished, syncDirectory, writePrivateFile } from '../pki/files.ts'
import { findMountPoint } from './mount-points.ts'

/** A data directory cannot be used: the problem, and what an operator can do about it. */
export class DataDirectoryError extends Error {
  /** For programs. */
  readonly code: string
  readonly remedy: string

  constructor(code: string, message: string, remedy: string, cause?: unknown) {
    super(message, { cause })
    this.name = 'DataDirectoryError'
    this.code = code
    this.remedy = remedy
  }
}

/** The paths of the parts of a data directory. */
export function getDataPaths(directory: string) {
  return {
    config: join(directory, 'config.yaml'),
    database: join(directory, 'controller.db'),
    tokenKey: join(directory, 'token.key'),
    auditKey: join(directory, 'audit.key'),
    secretsKey: join(directory, 'secrets.key'),
    // Only while a rotation is not finished.
    previousSecretsKey: join(directory, 'secrets.key.previous'),
    clusterKey: join(directory, 'cluster.key'),
    // Only while it replaces the one before.
    nextClusterKey: join(directory, 'cluster.key.next'),
    pki: join(directory, 'pki'),
  }
}

/** Below a data directory: the verified content of a backup, which replaces that of the directory; see `completeRestore`. */
const STAGED_RESTORE = 'restored'
const RESTORE_FILE = 'restore.json'
/** Below a data directory: the folder in which a backup is unpacked and verified. */
export const UNPACKED_BACKUP = 'restored.unfinished'
/** The beginning of the name of the folder, below a data directory, that holds what a restore replaced. */
const REPLACED_PREFIX = 'before-restore-'
/** Below a data directory: the default folder of the controller's own backups. */
export const BACKUPS_FOLDER = 'backups'

/** Below a data directory: the copy of the database while the controllers of a cluster get a snapshot of it. */
export const SNAPSHOT_COPY = 'snapshot.db'
/** Below a data directory: the database of a controller in a cluster while it is made from a snapshot and the log. */
export const UNFINISHED_DATABASE = 'rebuilt.db'
/** Below a data directory: says why the next start rebuilds the database from the log. */
export const REBUILD_FILE = 'rebuild.json'
/** The beginning of the name of the folder, below a data directory, that holds the database which a rebuild replaced. */
const REBUILT_PREFIX = 'before-rebuild-'

/** The beginning of the names of folders, below a data directory, in which processes make backups; a random end follows. */
export const WORKSPACE_PREFIX = '.backup-'

/** The file whose lock one process at a time holds. */
export const LOCK_FILE = 'lock.db'

/** A new file system may have this folder at its top. */
export const LOST_AND_FOUND = 'lost+found'

/** The suffixes of the files of a database: SQLite creates up to three beside it. */
export const DATABASE_ENDINGS = ['', '-wal', '-shm', '-journal']

/** Every path below a data directory that a controller makes, except what is inside folders. */
function listOwnPaths(directory: string): string[] {
  const databases = [LOCK_FILE, 'trial.db', SNAPSHOT_COPY, UNFINISHED_DATABASE].map((name) => join(directory, name))
  const others = [BACKUPS_FOLDER, STAGED_RESTORE, UNPACKED_BACKUP, REBUILD_FILE]
  const folders = others.map((name) => join(directory, name))
  return [...listContentPaths(directory), ...databases.flatMap(listDatabasePaths), ...folders]
}

/** The paths of what a restore replaces: everything that belongs to the network, and nothing that belongs to the directory. */
function listContentPaths(directory: string): string[] {
  const { database, ...others } = getDataPaths(directory)
  return [...Object.values(others), ...listDatabasePaths(database)]
}

function listDatabasePaths(path: string): string[] {
  return DATABASE_ENDINGS.map((end) => path + end)
}

/**
 * Requires that the directory holds nothing but what a controller makes, or does not exist: another one would be closed to the accounts that
 * share it.
 * @throws DataDirectoryError
 */
export function requireNothingElse(directory: string): void {
  if (!existsSync(directory)) return
  const own = new Set(listOwnPaths(directory))
  const isOwn = (name: string) =>
    own.has(join(directory, name)) ||
    isUnfinished(name) ||
    name.startsWith(REPLACED_PREFIX) ||
    name.startsWith(REBUILT_PREFIX) ||
    isBackupWorkspace(name) ||
    name === LOST_AND_FOUND
  if (readdirSync(directory).every(isOwn)) return
  throw new DataDirectoryError('NOT_EMPTY', `${directory} holds other files`, '--data-dir with a new directory')
}

/** Whether a name below a data directory is that of a folder in which a process makes a backup. Builds before 0.2.0 had the id of theirs in it. */
export function isBackupWorkspace(name: string): boolean {
  return /^\.backup-(?:\d{1,10}-)?\w{6}$/.test(name)
}

// ---- rebuilding a database from a log --------------------------------------------------------------------------------

/** Creates the folder for the database that a rebuild replaces. */
export function createRebuildFolder(directory: string, time: string): string {
  const folder = join(directory, REBUILT_PREFIX + time)
  createPrivateDirectory(folder)
  return folder
}

/** The folders with databases that rebuilds replaced, the oldest first. */
export function listRebuildFolders(directory: string): string[] {
  const names = readdirSync(directory).filter((name) => name.startsWith(REBUILT_PREFIX))
  return names.sort().map((name) => join(directory, name))
}

// ---- restoring a backup ----------------------------------------------------------------------------------------------

/** Whether a restore was interrupted after the point from which it is completed. */
export function isRestoreUnfinished(directory: string): boolean {
  return isExistingPath(join(directory, STAGED_RESTORE))
}

/**
 * Requires that a restore can move all that it replaces, before it begins: from then on every start would fail at what it cannot move.
 * Settings may be mounted, because they stay then.
 * @throws DataDirectoryError
 */
export function requireReplaceable(directory: string): void {
  const { config } = getDataPaths(directory)
  const mounted = findMountPoint(listContentPaths(directory).filter((path) => path !== config))
  if (mounted === undefined) return
  const remedy = `unmount ${mounted}, and run the command again; or restore to a new --data-dir, and copy its files to what is mounted`
  throw new DataDirectoryError('MOUNTED', `${mounted} is a mount point, which a restore cannot replace`, remedy)
}

/** Describes staged content: in a file of its own, in the folder with the content. */
export interface StagedRestore {
  /** The name of the folder, below the data directory, for the content before. */
  readonly replaced: string
  /** The names of the staged entries: files, and the folder `pki`. */
  readonly names: readonly string[]
}

/** Puts verified content beside that of the directory. From the rename on, the restore is completed, whatever interrupts it. */
export function stageRestore(directory: string, folder: string, time: string, names: readonly string[]): void {
  const restore: StagedRestore = { replaced: REPLACED_PREFIX + time, names }
  writePrivateFile(join(folder, RESTORE_FILE), JSON.stringify(restore))
  renameSync(folder, join(directory, STAGED_RESTORE))
  syncDirectory(directory)
}

/**
 * Moves the staged content of a backup to its place, and the content before it to a folder of its own. Each step is one rename,
 * and a step that was done is not done again, so that a start completes what a crash interrupted. The caller holds the lock of
 * the directory.
 * @returns the folder with the content before; undefined if nothing is staged, or there was no content
 */
export function completeRestore(directory: string): string | undefined {
  const staged = join(directory, STAGED_RESTORE)
  if (!isExistingPath(staged)) return undefined
  // It was complete before its folder was removed, and that was interrupted.
  if (!isExistingPath(join(staged, RESTORE_FILE))) {
    rmSync(staged, { recursive: true })
    return undefined
  }
  const { replaced, names } = JSON.parse(readFileSync(join(staged, RESTORE_FILE), 'utf8')) as StagedRestore
  const folder = join(directory, replaced)
  createPrivateDirectory(folder)
  for (const path of listContentPaths(directory)) {
    const name = path.slice(directory.length + 1)
    const stagedPath = join(staged, name)
    // An entry of the backup that is not staged any more is in its place already.
    if (names.includes(name) && !isExistingPath(stagedPath)) continue
    if (isExistingPath(path) && !moveAway(path, join(folder, name))) continue
    if (isExistingPath(stagedPath)) renameSync(stagedPath, path)
  }
  for (const path of [folder, directory]) syncDirectory(path)
  rmSync(staged, { recursive: true })
  const isEmpty = readdirSync(folder).length === 0
  if (isEmpty) rmdirSync(folder)
  syncDirectory(directory)
  return isEmpty ? undefined : folder
}

/** Returns whether the entry could be moved. Settings that are mounted from elsewhere cannot, and are not those of the directory. */
function moveAway(path: string, target: string): boolean {
  try {
    renameSync(path, target)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || path !== getDataPaths(dirname(path)).config) throw error
    return false
  }
}

/** Removes the folder in which a backup was unpacked: it contains keys. The caller holds the lock of the directory. */
export function removeUnpackedBackup(directory: string): void {
  runAsOwner(directory, () => rmSync(join(directory, UNPACKED_BACKUP), { recursive: true, force: true }))
}

/** Whether the directory has a database; an empty file does not count. */
export function hasDatabase(directory: string): boolean {
  return (statSync(getDataPaths(directory).database, { throwIfNoEntry: false })?.size ?? 0) > 0
}

/** @throws DataDirectoryError if the directory has no database: it must not be replaced by an empty one unasked */
export function requireDatabase(directory: string): void {
  if (hasDatabase(directory)) return
  const message = `${directory} has the keys of a controller, but its database ${getDataPaths(directory).database} is missing`
  const remedy = 'restore the database from a backup, or begin anew with another --data-dir'
  throw new DataDirectoryError('DATABASE_MISSING', message, remedy)
}

/** Whether `path` exists. @throws DataDirectoryError if this account cannot enter the directory */
export function isExistingPath(path: string): boolean {
  return readStatus(path) !== undefined
}

/**
 * Runs `work` with the rights of the account that owns `directory`, if this process is root's and the directory is not.
 * Files that root creates then belong to the account that the service runs under, and root follows no link for that account.
 * @param work must be synchronous: the whole process has those rights meanwhile
 * @throws DataDirectoryError if root may not do that here
 */
export function runAsOwner<T>(directory: string, work: () => T): T {
  if (!isOwnedByOther(directory)) return work()
  const { uid, gid } = statSync(directory)
  const ownGroup = process.getegid?.() ?? 0
  try {
    becomeOwner(directory, uid, gid)
    return work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(ownGroup)
  }
}

/** Whether `runAsOwner` takes on the rights of another account. Threads cannot. */
export function isOwnedByOther(directory: string): boolean {
  return process.geteuid?.() === 0 && statSync(directory).uid !== 0
}

function becomeOwner(directory: string, uid: number, gid: number): void {
  try {
    process.setegid?.(gid)
    process.seteuid?.(uid)
  } catch {
    throw foreignOwnerError(directory, uid)
  }
}

/** How files are treated that other accounts have rights to. */
export interface AccessOptions {
  /** Whether they stay as they are. Default: other accounts lose their rights. */
  readonly isUnchanged?: boolean
  /** Receives the path of each, after its rights changed. */
  readonly onShared?: (path: string) => void
}

/**
 * Takes the rights of other accounts off the files of a data directory that belong to this account.
 * @throws DataDirectoryError if a file belongs to another account, or its rights cannot be changed
 */
export function restrictAccess(
  directory: string,
  { isUnchanged = false, onShared = () => {} }: AccessOptions = {},
): void {
  // Windows has no such owners and modes.
  if (process.geteuid === undefined) return
  const root = realpathSync(directory)
  const { pki } = getDataPaths(root)
  const restrict = (path: string) => {
    if (!isShared(path)) return
    if (!isUnchanged) makePrivate(path)
    onShared(path)
  }
  // The directory comes first: from then on no other account can put a file into it.
  restrict(root)
  for (const path of listOwnPaths(root)) restrict(path)
  if (isExistingPath(pki)) for (const name of readdirSync(pki)) restrict(join(pki, name))
}

/** The files of a data directory that other accounts have rights to, or that belong to another account than the directory. */
export function listSharedPaths(directory: string): string[] {
  const { pki } = getDataPaths(directory)
  const { uid: owner } = statSync(directory)
  const paths = [directory, ...listOwnPaths(directory), ...readdirSync(pki).map((name) => join(pki, name))]
  return paths.filter((path) => {
    const status = statSync(path, { throwIfNoEntry: false })
    if (!status || isManagedByRoot(path, status.uid, status.mode)) return false
    return (status.mode & OTHERS) !== 0 || status.uid !== owner
  })
}

/**
 * Whether other accounts have rights to a file or directory of this account.
 * @throws DataDirectoryError if it belongs to another account, or is a link or a directory that cannot become private
 */
function isShared(path: string): boolean {
  const status = readStatus(path)
  if (!status) return false
  const isLink = status.isSymbolicLink()
  const { uid, mode } = isLink ? statSync(path) : status
  if (isManagedByRoot(path, uid, mode)) return false
  if (uid !== process.geteuid?.()) throw foreignOwnerError(path, uid)
  if ((mode & OTHERS) === 0) return false
  // A link may lead out of the directory, and a sticky directory is one that many accounts share.
  if (isLink || mode & STICKY) throw notPrivateError(path, `chmod go= ${path}, or use another --data-dir`)
  return true
}

function makePrivate(path: string): void {
  chmodSync(path, statSync(path).mode & 0o700)
  if (statSync(path).mode & OTHERS) throw notPrivateError(path, 'use a --data-dir on a file system that keeps modes')
}

const OTHERS = 0o077
const STICKY = 0o1000

/** The settings hold no secrets, and root may provide them: it is enough that no other account can change them. */
function isManagedByRoot(path: string, uid: number, mode: number): boolean {
  return path === getDataPaths(dirname(path)).config && uid === 0 && process.geteuid?.() !== 0 && (mode & 0o022) === 0
}

function readStatus(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EACCES') throw error
    throw foreignOwnerError(dirname(path), undefined)
  }
}

function notPrivateError(path: string, remedy: string): DataDirectoryError {
  return new DataDirectoryError('NOT_PRIVATE', `other accounts have rights to ${path}`, remedy)
}

function foreignOwnerError(path: string, owner: number | undefined): DataDirectoryError {
  const self = process.geteuid?.()
  const whose = owner === undefined ? 'another account' : `the account ${owner}`
  const message = `${path} belongs to ${whose}, and this command runs as the account ${self}`
  const remedy = `run it as ${owner === 0 ? 'root' : whose}; if no controller of ${whose} uses it any more: chown -R ${self} ${path}`
  return new DataDirectoryError('FOREIGN_OWNER', message, remedy)
}
