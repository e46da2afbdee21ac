// The data directory: the paths of its parts, their owner, and their protection against other accounts.
import { chmodSync, existsSync, lstatSync, readdirSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isUnfinished } from './pki/files.ts'

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
    pki: join(directory, 'pki'),
  }
}

/** The file whose lock one process at a time holds. */
export const LOCK_FILE = 'lock.db'

/** The suffixes of the files of a database: SQLite creates up to three beside it. */
export const DATABASE_ENDINGS = ['', '-wal', '-shm', '-journal']

/** Every path below a data directory that a controller makes, except what is inside `pki`. */
function listOwnPaths(directory: string): string[] {
  const { database, ...others } = getDataPaths(directory)
  const databases = [database, join(directory, LOCK_FILE), join(directory, 'trial.db')]
  return [...Object.values(others), ...databases.flatMap((path) => DATABASE_ENDINGS.map((end) => path + end))]
}

/** Whether the directory holds nothing but what a controller makes, or does not exist. */
export function hasOnlyOwnFiles(directory: string): boolean {
  if (!existsSync(directory)) return true
  const own = new Set(listOwnPaths(directory))
  return readdirSync(directory).every((name) => own.has(join(directory, name)) || isUnfinished(name))
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
 * What root makes then belongs to the account that the service runs under, and root follows no link for that account.
 * @param work must be synchronous: the whole process has those rights meanwhile
 * @throws DataDirectoryError if root may not do that here
 */
export function runAsOwner<T>(directory: string, work: () => T): T {
  const { uid, gid } = statSync(directory)
  if (process.geteuid?.() !== 0 || uid === 0) return work()
  const ownGroup = process.getegid?.() ?? 0
  try {
    becomeOwner(directory, uid, gid)
    return work()
  } finally {
    process.seteuid?.(0)
    process.setegid?.(ownGroup)
  }
}

function becomeOwner(directory: string, uid: number, gid: number): void {
  try {
    process.setegid?.(gid)
    process.seteuid?.(uid)
  } catch {
    throw foreignOwnerError(directory, uid)
  }
}

/**
 * Takes the rights of other accounts off the files of a data directory that belong to this account.
 * @returns the paths that other accounts had rights to
 * @throws DataDirectoryError if a file belongs to another account, or its rights cannot be changed
 */
export function restrictAccess(directory: string): string[] {
  // Windows has no such owners and modes.
  if (process.geteuid === undefined) return []
  const root = realpathSync(directory)
  // The directory comes first: from then on no other account can put a file into it.
  const restrictedPaths = [root].filter(restrictPath)
  const { pki } = getDataPaths(root)
  const inPki = isExistingPath(pki) ? readdirSync(pki).map((name) => join(pki, name)) : []
  return [...restrictedPaths, ...[...listOwnPaths(root), ...inPki].filter(restrictPath)]
}

/** Returns whether other accounts had rights to a file or directory. */
function restrictPath(path: string): boolean {
  const status = readStatus(path)
  if (!status) return false
  const isLink = status.isSymbolicLink()
  const { uid, mode } = isLink ? statSync(path) : status
  if (isManagedByRoot(path, uid, mode)) return false
  if (uid !== process.geteuid?.()) throw foreignOwnerError(path, uid)
  if ((mode & OTHERS) === 0) return false
  // A link may lead out of the directory, and a sticky directory is one that many accounts share.
  if (isLink || mode & STICKY) throw notPrivateError(path, `chmod go= ${path}, or use another --data-dir`)
  chmodSync(path, mode & 0o700)
  if (statSync(path).mode & OTHERS) throw notPrivateError(path, 'use a --data-dir on a file system that keeps modes')
  return true
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
  return new DataDirectoryError('FOREIGN_OWNER', message, `run it as ${whose}, or chown -R ${self} ${path}`)
}
