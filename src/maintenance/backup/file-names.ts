// The names of the backups that a controller makes by itself.
import { type Instant, toIsoTime } from '../../foundation/clock.ts'

/** The reason for which the controller made a backup: its schedule, a request, or a change of the data that came next. */
export type BackupKind = 'scheduled' | 'snapshot' | 'migration'

const NAME = /^controller-(\d{8}-\d{9})-(scheduled|snapshot|migration)\.tar\.gz(?:\.age)?$/

/** A time in names of files, in UTC: `20261122-123456789`. Names sort by it. */
export function toFileTime(now: Instant): string {
  return toIsoTime(now)
    .replace(/[-:.Z]/g, '')
    .replace('T', '-')
}

export function toBackupName(kind: BackupKind, now: Instant, isEncrypted: boolean): string {
  return `controller-${toFileTime(now)}-${kind}.tar.gz${isEncrypted ? '.age' : ''}`
}

/** A backup of the controller in its folder. */
export interface NamedBackup {
  readonly name: string
  readonly kind: BackupKind
  readonly createdAt: Instant
}

/** Parses the name of a backup; undefined if it is not a name that controllers give. */
export function parseBackupName(name: string): NamedBackup | undefined {
  const [, time = '', kind] = NAME.exec(name) ?? []
  const [, year, month, day, hours, minutes, seconds, milliseconds] =
    /^(\d{4})(\d\d)(\d\d)-(\d\d)(\d\d)(\d\d)(\d{3})$/.exec(time) ?? []
  if (kind === undefined) return undefined
  const createdAt = Date.UTC(
    Number(year),
    Number(month) - 1,
    Number(day),
    Number(hours),
    Number(minutes),
    Number(seconds),
    Number(milliseconds),
  )
  return { name, kind: kind as BackupKind, createdAt }
}

/** Whether a name is the one that a backup of the controller has until it is complete. */
export function isUnfinishedBackup(name: string): boolean {
  const [, complete = ''] = /^(.*)\.[0-9a-f]{12}\.new$/.exec(name) ?? []
  return parseBackupName(complete) !== undefined
}
