// Tells what the rows of a controller had and the log has not: by the audit, whose records are chained.
import type { Instant } from '../../foundation/clock.ts'
import { openForReading, type SqliteDatabase } from '../sqlite/connection.ts'

/** The audit records that one database has and another one has not. */
export interface LostRecords {
  readonly count: number
  /** When the first and the last of them were made; absent if there is none. */
  readonly from?: Instant
  readonly until?: Instant
}

interface AuditEntry {
  readonly n: number
  readonly hash: string
  readonly at: Instant
}

/** Compares from the newest record back to the last one that both have. */
export function findLostRecords(formerFile: string, currentFile: string): LostRecords {
  const former = openForReading(formerFile)
  const current = openForReading(currentFile)
  try {
    return compare(former, current)
  } finally {
    former.close()
    current.close()
  }
}

function compare(former: SqliteDatabase, current: SqliteDatabase): LostRecords {
  const findHash = current.prepare('select hash from audit_records where n = ?').pluck()
  const newestFirst = former.prepare('select n, hash, at from audit_records order by n desc')
  // Older ones are not lost: they were pruned.
  const oldest = (current.prepare('select min(n) from audit_records').pluck().get() as number | null) ?? 0
  let range: Required<LostRecords> | undefined
  for (const { n, hash, at } of newestFirst.iterate() as Iterable<AuditEntry>) {
    if (n < oldest || findHash.get(n) === hash) break
    range = { count: (range?.count ?? 0) + 1, from: at, until: range?.until ?? at }
  }
  return range ?? { count: 0 }
}
