// The last commit in a database that is not in use: a restored one continues after every position and time that was used.
//
// A restore raises its position to the greatest one known and the milliseconds of the clock, and its time alike. It begins another
// timeline: what followed from its former commits does not lead to its records any more.
import { createHash } from 'node:crypto'
import type { Instant } from '../../foundation/clock.ts'
import type { Commit } from '../transactions/changes.ts'
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'

/** The position and the time of the last commit. */
export type CommitPosition = Pick<Commit, 'position' | 'at'>

type StoredPosition = CommitPosition & { readonly timeline: string }

const TIMELINE_LENGTH = 32

const NOTHING: CommitPosition = { position: 0, at: 0 }

/** Returns those of a database; 0 if they cannot be read. */
export function readCommitPosition(file: string): CommitPosition {
  let connection: SqliteDatabase | undefined
  try {
    connection = openForReading(file)
    return connection.prepare('select position, at from commit_position').get() as CommitPosition
  } catch {
    return NOTHING
  } finally {
    connection?.close()
  }
}

/**
 * Makes a database continue after those of the database that it replaces, and after the clock. Its time becomes later than the one
 * before, because clients may have been told that one, and the records are others now.
 * @throws if the database cannot be written
 */
export function continueAfter(file: string, { position, at }: CommitPosition, now: Instant): void {
  const connection = openForWriting(file)
  try {
    const current = connection.prepare('select position, at, timeline from commit_position').get() as StoredPosition
    const next = {
      position: Math.max(current.position, position, now),
      at: Math.max(current.at + 1, at + 1, now),
    }
    // It follows from the times, so that a restore that is interrupted and completed ends like any other.
    const timeline = createHash('sha256')
      .update(`${current.timeline} ${next.at}`)
      .digest('hex')
      .slice(0, TIMELINE_LENGTH)
    connection
      .prepare("update commit_position set position = @position, at = @at, timeline = @timeline, chain = ''")
      .run({ ...next, timeline })
    connection.prepare('delete from model_changes').run()
  } finally {
    connection.close()
  }
}
