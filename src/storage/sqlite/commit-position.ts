// The position of the last commit in a database that is not in use: a restored one continues after every position that was used.
//
// A restore raises it to the greatest position known and the milliseconds of the clock.
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'

/** Returns the position of a database; 0 if it cannot be read. */
export function readCommitPosition(file: string): number {
  let connection: SqliteDatabase | undefined
  try {
    connection = openForReading(file)
    return connection.prepare('select position from commit_position').pluck().get() as number
  } catch {
    return 0
  } finally {
    connection?.close()
  }
}

/** Raises the position of a database, unless it is higher already. @throws if the database cannot be written */
export function raiseCommitPosition(file: string, position: number): void {
  const connection = openForWriting(file)
  try {
    connection.prepare('update commit_position set position = max(position, ?)').run(position)
  } finally {
    connection.close()
  }
}
