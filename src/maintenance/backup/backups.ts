// The backups that a controller makes by itself: by its schedule, on request, and before it changes the schema of its data.
import { mkdtempSync, readdirSync, rmdirSync, rmSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Log } from '../../foundation/log.ts'
import { describeSystemError } from '../../foundation/system-errors.ts'
import { createPrivateDirectory } from '../../pki/files.ts'
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import { BACKUPS_FOLDER, isOwnedByOther, runAsOwner } from '../../settings/data-directory.ts'
import type { Config } from '../../settings/settings.ts'
import { removeBackupWorkspaces } from '../../storage/sqlite/backup-workspaces.ts'
import { BackupError, type BackupErrorCode, toBackupError } from './backup-error.ts'
import type { BackupReply } from './backup-thread.ts'
import { type BackupOptions, type BackupReport, createBackup } from './create-backup.ts'
import { type BackupKind, isUnfinishedBackup, type NamedBackup, parseBackupName, toBackupName } from './file-names.ts'
import { readPassphrase } from './passphrase.ts'
import { findNewestScheduled, getIntervalStart } from './schedule.ts'

export interface BackupsOptions {
  /** The data directory. */
  readonly directory: string
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
}

// A snapshot on request costs as much as the data is large.
const MIN_SNAPSHOT_INTERVAL_MS = 60_000
const MS_PER_SECOND = 1000

// Tests run the sources, installations the compiled files.
const THREAD = new URL(`./backup-thread${extname(import.meta.url)}`, import.meta.url)

export class Backups {
  readonly #options: BackupsOptions
  /** The folder that backups are written to. */
  readonly folder: string
  /** The backup that is made at the moment: one after the other. */
  #running: Promise<unknown> = Promise.resolve()
  #worker: Worker | undefined
  #lastSnapshotAt: number | undefined

  constructor(options: BackupsOptions) {
    this.#options = options
    this.folder = options.config['backup.directory'] ?? join(options.directory, BACKUPS_FOLDER)
  }

  /**
   * Makes a backup, and deletes the oldest of its kind beyond the number that is kept.
   * @throws BackupError, and what the system says of the folder
   */
  create(kind: BackupKind): Promise<BackupReport> {
    const backup = this.#running.then(() => this.#create(kind))
    this.#running = backup.catch(() => {})
    return backup
  }

  /**
   * Makes a backup on request, at most one a minute.
   * @throws RATE_LIMITED if the one before is more recent, STORAGE_UNAVAILABLE if the disk is full, BackupError
   */
  async createSnapshot(): Promise<BackupReport> {
    const { clock } = this.#options
    const earliest = (this.#lastSnapshotAt ?? Number.NEGATIVE_INFINITY) + MIN_SNAPSHOT_INTERVAL_MS
    const waitMs = earliest - clock.monotonic()
    if (waitMs > 0) throw errors.RATE_LIMITED(undefined, { retryAfterSeconds: Math.ceil(waitMs / MS_PER_SECOND) })
    const before = this.#lastSnapshotAt
    this.#lastSnapshotAt = clock.monotonic()
    try {
      return await this.create('snapshot')
    } catch (error) {
      this.#lastSnapshotAt = before
      throw toStorageError(error)
    }
  }

  /** Makes the scheduled backup if it is due. */
  async runIfDue(): Promise<void> {
    const { directory, config, clock, log } = this.#options
    const interval = config['backup.every']
    if (interval === undefined) return
    const now = clock.now()
    const newest = findNewestScheduled(this.list(), now)
    if (getIntervalStart(newest, directory, now) + interval > now) return
    const { file, bytes, findings } = await this.create('scheduled')
    log.info({ file, bytes }, 'made the scheduled backup')
    if (findings.length > 0) log.error({ file, findings }, 'the database has defects, and so has its backup')
  }

  /** The reason why the settings do not allow a backup; undefined if they do. */
  findObstacle(): string | undefined {
    const { 'backup.directory': folder, 'backup.passphraseFile': passphraseFile } = this.#options.config
    if (folder !== undefined && !statSync(folder, { throwIfNoEntry: false })?.isDirectory())
      return `backup.directory names ${folder}, which is not a folder`
    try {
      if (folder !== undefined) requireWritable(folder)
      if (passphraseFile !== undefined) readPassphrase(passphraseFile)
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  }

  /** The backups in the folder, the oldest first. */
  list(): NamedBackup[] {
    return listFileNames(this.folder).flatMap((name) => parseBackupName(name) ?? [])
  }

  /** Ends the backup that is made at the moment, which leaves no trace. */
  async close(): Promise<void> {
    if (!this.#worker) return
    await this.#worker.terminate()
    await this.#running
    this.#removeLeftovers()
  }

  async #create(kind: BackupKind): Promise<BackupReport> {
    const { directory, config, clock } = this.#options
    this.#prepareFolder()
    const passphraseFile = config['backup.passphraseFile']
    const passphrase = passphraseFile === undefined ? undefined : readPassphrase(passphraseFile)
    const now = clock.now()
    const file = join(this.folder, toBackupName(kind, now, passphrase !== undefined))
    const address = getAdvertisedAddress(config)
    const report = await this.#run({ directory, file, passphrase, now, address, isForOwner: true })
    this.#prune(kind, now)
    return report
  }

  #prepareFolder(): void {
    const { directory, config } = this.#options
    try {
      if (config['backup.directory'] === undefined) runAsOwner(directory, () => createPrivateDirectory(this.folder))
      this.#removeLeftovers()
    } catch (error) {
      throw toBackupError(error, this.folder)
    }
  }

  /** Removes what a backup of the controller left behind that was killed. Commands may write other files to the folder at the moment. */
  #removeLeftovers(): void {
    removeBackupWorkspaces(this.#options.directory)
    for (const name of listFileNames(this.folder).filter(isUnfinishedBackup))
      runAsOwner(this.folder, () => rmSync(join(this.folder, name), { recursive: true, force: true }))
  }

  #run(options: BackupOptions): Promise<BackupReport> {
    // A thread cannot take on the rights of another account.
    if (isOwnedByOther(options.directory) || isOwnedByOther(this.folder)) return createBackup(options)
    return new Promise((resolve, reject) => {
      const worker = new Worker(THREAD, { workerData: options })
      this.#worker = worker
      worker.on('message', (reply: BackupReply) => {
        if ('report' in reply) resolve(reply.report)
        else reject(toError(reply.failure))
      })
      worker.on('error', reject)
      worker.on('exit', () => {
        this.#worker = undefined
        reject(new BackupError('BACKUP_FAILED', 'the backup was interrupted', 'make another one'))
      })
    })
  }

  /** Deletes the oldest beyond the number that is kept. The one made now is the newest: any of a later time is from a wrong clock. */
  #prune(kind: BackupKind, now: Instant): void {
    const ofKind = this.list().filter((backup) => backup.kind === kind)
    const ahead = ofKind.filter(({ createdAt }) => createdAt > now)
    const byAge = [...ahead, ...ofKind.slice(0, ofKind.length - ahead.length)]
    const surplus = byAge.slice(0, Math.max(0, ofKind.length - this.#options.config['backup.keep']))
    runAsOwner(this.folder, () => {
      for (const { name } of surplus) rmSync(join(this.folder, name), { force: true })
    })
  }
}

function toError({ name, code, message }: Extract<BackupReply, { failure: unknown }>['failure']): Error {
  if (name === 'BackupError') return new BackupError(code as BackupErrorCode, message, '')
  return Object.assign(new Error(message), { code })
}

/** A full disk is not a fault of the controller: there may be room later. Returns any other error unchanged. */
function toStorageError(error: unknown): unknown {
  if (!(error instanceof BackupError && error.code === 'DISK_FULL')) return error
  return errors.STORAGE_UNAVAILABLE({ code: error.code, message: error.message }, { cause: error })
}

/** The names of the files in a folder, sorted; none if there is no such folder. */
function listFileNames(folder: string): string[] {
  try {
    return readdirSync(folder).sort()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw error
  }
}

/** @throws an error with the reason. Only an attempt shows that a file system is read-only for this process alone, as a service manager makes it. */
function requireWritable(folder: string): void {
  try {
    runAsOwner(folder, () => rmdirSync(mkdtempSync(join(folder, '.writable-'))))
  } catch (error) {
    throw new Error(`backup.directory names ${folder}, which cannot be written to: ${describeSystemError(error)}`, {
      cause: error,
    })
  }
}
