// The start of the interval after which a scheduled backup is due: the controller makes it then, and the doctor notices if it is late.
//
// A clock that was ahead leaves files that are dated in the future. Such a time does not tell when a file was made, so it does
// not delay the next backup.
import { statSync } from 'node:fs'
import type { Instant } from '../../foundation/clock.ts'
import { getDataPaths } from '../../settings/data-directory.ts'
import type { NamedBackup } from './file-names.ts'

// A clock that is corrected by less causes no further backup.
const MAX_CORRECTION_MS = 10 * 60_000

/** Returns the newest scheduled backup that is not dated in the future. */
export function findNewestScheduled(backups: readonly NamedBackup[], now: Instant): NamedBackup | undefined {
  return backups.findLast(({ kind, createdAt }) => kind === 'scheduled' && hasPassed(createdAt, now))
}

/**
 * Returns the time that the interval of the schedule begins at: that of the newest backup. Without one it is the time of the
 * settings, which are written last when a data directory is created; if that is in the future, the next backup is due.
 */
export function getIntervalStart(newest: NamedBackup | undefined, directory: string, now: Instant): Instant {
  if (newest) return newest.createdAt
  const { mtimeMs } = statSync(getDataPaths(directory).config)
  return hasPassed(mtimeMs, now) ? mtimeMs : Number.NEGATIVE_INFINITY
}

function hasPassed(time: Instant, now: Instant): boolean {
  return time <= now + MAX_CORRECTION_MS
}
