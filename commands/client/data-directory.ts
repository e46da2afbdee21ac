// Resolves the data directory of a command, and opens it while no controller runs on it.
import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve, sep } from 'node:path'
import { Flags } from '@oclif/core'
import type { Transport } from '../../src/client/transport.ts'
import type { AccessOptions } from '../../src/settings/data-directory.ts'
import type { SettingSource } from '../../src/settings/setting-types.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { describeFileError, isFileError } from '../foundation/file-errors.ts'
import { rememberDirectory } from './known-directories.ts'

export const dataDirectoryFlag = Flags.string({
  description:
    'Data directory of the controller. Default: CONTROLLER_DATA_DIR, else "controller" in the data home of the user.',
  env: 'CONTROLLER_DATA_DIR',
})

/** The directory of the flag, else the default directory of the user. */
export function resolveDataDirectory(flag: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  return resolve(flag ?? join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'controller'))
}

/**
 * Opens a data directory without a running controller. @throws CommandError if it is not a data directory, or another
 * process has it open
 */
export async function openOffline(directory: string, osUser: string, access: AccessOptions): Promise<Transport> {
  await assertInitialized(directory)
  const { openOfflineTransport } = await import('../../server/in-process.ts')
  const transport = await openOfflineTransport(directory, osUser, process.env, access).catch(
    explainOpenError(directory),
  )
  rememberDirectory(directory, process.env)
  return transport
}

/** Whether the directory is initialized. @throws CommandError if this account cannot read it */
export async function isDirectoryInitialized(directory: string): Promise<boolean> {
  const { isInitialized } = await import('../../src/initialize.ts')
  try {
    return isInitialized(directory)
  } catch (error) {
    return explainOpenError(directory)(error as Error)
  }
}

/** @throws CommandError with exit code 6 if the directory is initialized */
export async function assertUninitialized(directory: string): Promise<void> {
  const { requireUninitialized } = await import('../../src/initialize.ts')
  try {
    requireUninitialized(directory)
  } catch (error) {
    explainOpenError(directory)(error as Error)
  }
}

/** @throws CommandError with exit code 5 if the directory is not initialized */
export async function assertInitialized(directory: string): Promise<void> {
  if (await isDirectoryInitialized(directory)) return
  throw new CommandError(EXIT.notFound, 'NO_DATA_DIRECTORY', `${directory} is not the data directory of a controller`, {
    hint: `${OTHER_HINT}, or ${toCommandLine('init', ['--data-dir', directory])}`,
  })
}

const OWNER_HINT = 'run the command as the account that owns it'
const OTHER_HINT = '--data-dir with another directory'
const SPACE_HINT = 'free some space on the disk'

// A file that is larger than this process may write is like a full disk to it.
const FULL_DISK_CODES: ReadonlySet<string> = new Set(['ENOSPC', 'EDQUOT', 'EFBIG'])

const STORAGE_REASONS: Readonly<Record<string, readonly [reason: string, hint?: string]>> = {
  SQLITE_CANTOPEN: ['its file cannot be opened', OWNER_HINT],
  SQLITE_PERM: ['permission denied', OWNER_HINT],
  SQLITE_READONLY: ['its file or its file system is read-only', OWNER_HINT],
  SQLITE_FULL: ['the disk is full', SPACE_HINT],
  SQLITE_NOTADB: ['its file is not a database', 'restore it from a backup'],
  SQLITE_CORRUPT: ['it is damaged', 'restore it from a backup'],
  SQLITE_BUSY: ['another process has locked it'],
  // Also for a disk without any space left, on which the memory that processes share cannot be made.
  SQLITE_IOERR: ['the disk is full, or reports errors', `${SPACE_HINT}, or replace it if it is broken`],
}

type StorageFault = Error & { readonly code?: string }

/** Whether SQLite reported an error, by its name, because the server is bundled separately. */
export function isStorageFault(error: unknown): error is StorageFault {
  return error instanceof Error && error.name === 'SqliteError'
}

/** Explains why a database cannot be used, by the primary code of SQLite. */
function explainStorageFault({ code = '', message }: StorageFault): readonly [string, string?] {
  return STORAGE_REASONS[code.split('_').slice(0, 2).join('_')] ?? [message]
}

/** The flags that set what a new directory has no file for yet, by setting. */
const SETTING_FLAGS: Readonly<Record<string, string>> = {
  advertise: '--advertise NAME:PORT, such as --advertise controller.example.com:1280',
  'cluster.database':
    '--database postgres://user@host/name, and --password-file, or the environment variable PGPASSWORD',
  'cluster.name': '--name NAME',
  listeners: '--listen HOST:PORT, such as --listen 0.0.0.0:1280',
}

function findSettingHint({ key, source, others = [] }: InvalidSetting, directory: string): string {
  if (others.length > 0) return 'change each of them at its place'
  if (source?.kind === 'file') return `edit line ${source.line} of ${source.path}`
  if (source?.kind === 'variable') return `change or unset ${source.name}`
  const flag = SETTING_FLAGS[key ?? '']
  if (flag !== undefined && (source !== undefined || !existsSync(join(directory, 'config.yaml')))) return flag
  return `edit config.yaml in ${directory}`
}

/** A ConfigError, as the bundle of the server throws it. */
interface InvalidSetting extends Error {
  readonly key?: string
  readonly source?: SettingSource
  readonly others?: readonly Error[]
}

type Failure = ConstructorParameters<typeof CommandError>

/** The log of a cluster, by the name of an error: most of their messages say what to do. */
const LOG_FAULTS: Readonly<Record<string, (message: string) => Failure>> = {
  LogConnectionError: (message) => [
    EXIT.tryLater,
    'LOG_UNREACHABLE',
    `the database of the cluster cannot be used: ${message}`,
    {
      hint: 'check cluster.database, the password in cluster.passwordFile or PGPASSWORD, cluster.caFile and cluster.tls',
    },
  ],
  LogDatabaseError: (message) => [EXIT.failed, 'LOG_UNUSABLE', message],
  LogPayloadError: (message) => [
    EXIT.failed,
    'LOG_UNREADABLE',
    message,
    { hint: 'copy cluster.key from another controller of the network' },
  ],
  LogContradictionError: (message) => [
    EXIT.failed,
    'LOG_CONTRADICTED',
    `the directory does not follow the log of its cluster: ${message}`,
    { hint: 'keep the directory aside, and controller cluster join with a new one' },
  ],
  NodeNameTakenError: (message) => [EXIT.conflict, 'NODE_NAME_TAKEN', message],
}

const LOCKED_HINT = 'omit --offline to use the running controller, or stop it first'

/** Exit codes by the code of a DataDirectoryError, a BackupError or a SourceError. */
const DIRECTORY_EXITS: Readonly<Record<string, number>> = {
  ALREADY_INITIALISED: EXIT.conflict,
  NOT_EMPTY: EXIT.conflict,
  NOT_PRIVATE: EXIT.notPermitted,
  FOREIGN_OWNER: EXIT.notPermitted,
  LOCK_FAILED: EXIT.notPermitted,
  DATABASE_MISSING: EXIT.notFound,
  NOT_A_BACKUP: EXIT.usage,
  OTHER_NETWORK: EXIT.conflict,
  LOG_CHANGED: EXIT.tryLater,
  NOT_RESTORED: EXIT.tryLater,
  OUTCOME_UNKNOWN: EXIT.tryLater,
  PASSPHRASE_REQUIRED: EXIT.usage,
  WRONG_PASSPHRASE: EXIT.usage,
  NOT_ENCRYPTED: EXIT.usage,
  NOT_A_DATABASE: EXIT.usage,
  NOT_A_CONFIGURATION: EXIT.usage,
  NO_DATABASE: EXIT.notFound,
  DATABASE_IN_USE: EXIT.tryLater,
  RIGHTS_DIFFER: EXIT.denied,
  CHAIN_REJECTED: EXIT.denied,
}

/**
 * Requires that no controller runs on a directory, before a command asks anything.
 * @throws CommandError as `explainOpenError` does, with exit code 8 if another process holds the directory
 */
export async function assertStopped(directory: string): Promise<void> {
  const { lockDirectory } = await import('../../src/storage/sqlite/directory-lock.ts')
  await runMaintenance(directory, async () => lockDirectory(directory)())
}

/** Returns a handler for commands that read one file, and no data directory. @throws CommandError as `explainOpenError` does */
export function explainReadError(file: string) {
  return (error: Error): never => {
    if (isFileError(error) && (error.path ?? file) === file) throw unusableFileError(error, file)
    return explainOpenError(file)(error)
  }
}

function unusableFileError(error: NodeJS.ErrnoException, path: string): CommandError {
  const exitCodes: Readonly<Record<string, number>> = { ENOENT: EXIT.notFound, EACCES: EXIT.notPermitted }
  const message = `${path} cannot be used: ${describeFileError(error, path)}`
  return new CommandError(exitCodes[error.code ?? ''] ?? EXIT.failed, 'FILE_UNUSABLE', message, {
    hint: 'name a file that this account can read',
  })
}

/** Whether a path is a directory, in it, or above it. */
function isInside(path: string, directory: string): boolean {
  const [inner, outer] = [resolve(path), resolve(directory)]
  return `${inner}${sep}`.startsWith(`${outer}${sep}`) || `${outer}${sep}`.startsWith(`${inner}${sep}`)
}

/** Works on a data directory whose controller has to be stopped. @throws CommandError as `explainOpenError` does */
export function runMaintenance<T>(directory: string, work: () => Promise<T>): Promise<T> {
  return work().catch(explainOpenError(directory, 'stop it first'))
}

/** Returns the error of a command that cannot use the database of a directory, with the reason and a hint. */
export function unusableDatabaseError(directory: string, fault: StorageFault, exitCode: number): CommandError {
  const [reason, hint] = explainStorageFault(fault)
  const message = `the database of ${directory} cannot be used: ${reason}`
  return new CommandError(exitCode, 'STORAGE_UNAVAILABLE', message, {
    hint: hint ?? `make sure that its disk works, then: ${toCommandLine('db check', ['--data-dir', directory])}`,
  })
}

/**
 * Returns a handler that reports why a directory could not be opened. @throws CommandError with the reason and a hint
 */
export function explainOpenError(directory: string, whenLocked = LOCKED_HINT) {
  return (error: Error): never => {
    // By name, because the server is bundled separately: its classes are not those of the command line.
    if (error.name === 'DirectoryLockedError') {
      throw new CommandError(EXIT.tryLater, 'DIRECTORY_LOCKED', error.message, {
        hint: whenLocked,
      })
    }
    if (error.name === 'KeyFileError') throw new CommandError(EXIT.failed, 'KEY_FILE_UNUSABLE', error.message)
    if (error.name === 'MigrationError') {
      const [, hint] = isStorageFault(error.cause) ? explainStorageFault(error.cause) : []
      throw new CommandError(EXIT.failed, 'MIGRATION_FAILED', error.message, hint === undefined ? {} : { hint })
    }
    if (['DataDirectoryError', 'BackupError', 'SourceError'].includes(error.name)) {
      const { code, remedy } = error as Error & { code: string; remedy: string }
      throw new CommandError(DIRECTORY_EXITS[code] ?? EXIT.failed, code, error.message, { hint: remedy })
    }
    const ofLog = LOG_FAULTS[error.name]
    if (ofLog) throw new CommandError(...ofLog(error.message))
    const isUnavailable = (error as { code?: unknown }).code === 'STORAGE_UNAVAILABLE'
    if (isUnavailable || isStorageFault(error)) {
      throw unusableDatabaseError(directory, (isUnavailable ? error.cause : error) as StorageFault, EXIT.failed)
    }
    if (isFileError(error)) {
      const path = error.path ?? directory
      const isDenied = error.code === 'EACCES' || error.code === 'EPERM'
      const message = `${path} cannot be used: ${describeFileError(error, path)}`
      if (!isInside(path, directory)) throw unusableFileError(error, path)
      const remedy = FULL_DISK_CODES.has(error.code ?? '') ? SPACE_HINT : OTHER_HINT
      const hint = isDenied ? `${OWNER_HINT}, or ${remedy}` : remedy
      throw new CommandError(isDenied ? EXIT.notPermitted : EXIT.failed, 'DIRECTORY_UNUSABLE', message, { hint })
    }
    if (error.name === 'ConfigError') {
      throw new CommandError(EXIT.usage, 'INVALID_SETTING', error.message, { hint: findSettingHint(error, directory) })
    }
    throw error
  }
}
