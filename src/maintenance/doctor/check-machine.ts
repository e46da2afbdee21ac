// Checks the machine of a controller: its clock, its disk, the rights to its files, and its backups.
import { statfsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import { quoteShellWord } from '../../foundation/shell-words.ts'
import type { Authority } from '../../pki/authority.ts'
import { readNotBefore } from '../../pki/certificates.ts'
import {
  DataDirectoryError,
  getDataPaths,
  listSharedPaths,
  restrictAccess,
  runAsOwner,
} from '../../settings/data-directory.ts'
import type { Config } from '../../settings/settings.ts'
import type { NamedBackup } from '../backup/file-names.ts'
import { findNewestScheduled, getIntervalStart } from '../backup/schedule.ts'
import type { Diagnosis, Fix } from './diagnosis.ts'

/** The facts that the checks of the machine read. */
export interface Machine {
  /** The data directory. */
  readonly directory: string
  /** Whether a controller runs on it; otherwise the check is an offline command. */
  readonly isServed: boolean
  readonly config: Config
  readonly now: Instant
  readonly authority: Authority
  /** The backups of the controller, the oldest first. */
  readonly backups: readonly NamedBackup[]
  readonly backupsFolder: string
  /** The reason why the settings do not allow a backup. */
  readonly backupObstacle: string | undefined
  /** When the newest audit record was written. */
  readonly lastChangeAt: Instant | undefined
}

// A backup, a migration and a restore each need a copy of the database beside it.
const MIN_FREE_COPIES = 3
const MIN_FREE_BYTES = 512 * 1024 * 1024
const MAX_CLOCK_ERROR_MS = 10 * 60_000
const MIB = 1024 * 1024

export function checkFiles({ directory, isServed }: Machine): Diagnosis[] {
  const fix = isServed
    ? 'controller doctor --fix'
    : `controller doctor --offline --data-dir ${quoteShellWord(directory)} --fix`
  return listSharedPaths(directory).map((path) => ({
    check: 'files',
    subject: path,
    message: 'other accounts have rights to this file, or it belongs to another account',
    remedy: `${fix}, or: chmod go= ${quoteShellWord(path)}; chown it if it belongs to another account`,
  }))
}

/** Takes the rights of other accounts off the files of this account. Those that remain shared are diagnoses. */
export function fixFiles(directory: string): Fix[] {
  const fixes: Fix[] = []
  const message = 'other accounts had rights to it, and have none now'
  const onShared = (subject: string) => fixes.push({ check: 'files', subject, message })
  try {
    runAsOwner(directory, () => restrictAccess(directory, { onShared }))
  } catch (error) {
    if (!(error instanceof DataDirectoryError)) throw error
  }
  return fixes
}

export function checkDisk({ directory, backupsFolder, backups }: Machine): Diagnosis[] {
  const needed = Math.max(MIN_FREE_BYTES, MIN_FREE_COPIES * statSync(getDataPaths(directory).database).size)
  // The folder of backups is created with the first one.
  const folders = backups.length > 0 ? [directory, backupsFolder] : [directory]
  return folders.flatMap((folder) => {
    const { bavail, bsize } = statfsSync(folder)
    const free = bavail * bsize
    if (free >= needed) return []
    const message = `${Math.floor(free / MIB)} MiB are free, and ${Math.ceil(needed / MIB)} MiB should be`
    return { check: 'disk', subject: folder, message, remedy: 'make space, or move old backups to another disk' }
  })
}

export function checkClock({ now, authority, lastChangeAt }: Machine): Diagnosis[] {
  const begin = readNotBefore(authority.server.certificate)
  const latest = Math.max(begin, lastChangeAt ?? begin)
  if (now + MAX_CLOCK_ERROR_MS >= latest) return []
  const message = `it reads ${toIsoTime(now)}, but ${toIsoTime(latest)} has passed already`
  return [{ check: 'clock', subject: 'system clock', message, remedy: 'set the clock, and synchronize it (NTP)' }]
}

export function checkBackups({ config, backups, backupsFolder, backupObstacle, now, directory }: Machine): Diagnosis[] {
  const interval = config['backup.every']
  const diagnose = (message: string, remedy: string): Diagnosis => ({
    check: 'backups',
    subject: backupsFolder,
    message,
    remedy,
  })
  if (interval === undefined) {
    return [diagnose('the controller makes no backups by itself', 'set backup.every in config.yaml')]
  }
  if (backupObstacle !== undefined) {
    const remedy =
      'create it for the account of the service, and name a folder in ReadWritePaths of its systemd unit; or change backup.directory or backup.passphraseFile in config.yaml'
    return [diagnose(backupObstacle, remedy)]
  }
  const newest = findNewestScheduled(backups, now)
  // One that is late has failed, or no controller runs.
  if (getIntervalStart(newest, directory, now) + 2 * interval >= now) return []
  const remedy = `controller db backup ${quoteShellWord(join(backupsFolder, 'by-hand.tar.gz'))}; the log says why none was made`
  const hasScheduled = backups.some(({ kind }) => kind === 'scheduled')
  const problem = hasScheduled ? 'every scheduled backup is dated in the future' : 'there is no backup'
  return [diagnose(newest ? `the newest backup is of ${toIsoTime(newest.createdAt)}` : problem, remedy)]
}

export function checkSettings({ config }: Machine, signerCount: number): Diagnosis[] {
  const withoutEffect: string[] = []
  if (signerCount === 0) {
    if (config['signers.allowHttp']) withoutEffect.push('signers.allowHttp')
    if (config['signers.caFile'] !== undefined) withoutEffect.push('signers.caFile')
  }
  const diagnoses = withoutEffect.map((subject) => ({
    check: 'settings',
    subject,
    message: 'the setting has no effect, because there is no external JWT signer',
    remedy: 'remove it from config.yaml, or: controller external-jwt-signer create --help',
  }))
  const isServed = config.listeners.some(({ apis }) => apis.includes('oidc'))
  if (config['oidc.announce'] !== 'always' || isServed) return diagnoses
  const message = 'sign-in by OpenID Connect is not announced, because no listener carries it'
  return [
    ...diagnoses,
    { check: 'settings', subject: 'oidc.announce', message, remedy: 'add oidc to apis in config.yaml' },
  ]
}
