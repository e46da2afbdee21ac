// The statistics of SQLite's planner: without them, a list in an indexed order may be sorted again.
import { setImmediate } from 'node:timers/promises'
import type { SqliteDatabase } from './connection.ts'

// Tables of this many rows are sampled, because reading whole indexes would block all other work. A sample contains how many
// rows share a value; a whole index also gives the distribution of values, by which ranges (above all of dates) are planned.
const MAX_ANALYZED_ROWS = 200_000
const SAMPLE = 1_000

// By far the longest table, and one whose lists follow its own order.
const SAMPLED = 'audit_records'

/** Refreshes the statistics, one table at a time. Returns false if the store was closed before the end. */
export async function analyzeTables(connection: SqliteDatabase, isClosed: () => boolean): Promise<boolean> {
  for (const table of listTables(connection)) {
    await setImmediate()
    if (isClosed()) return false
    const limitedCount = `select count(*) from (select 1 from "${table}" limit ${MAX_ANALYZED_ROWS + 1})`
    const isLarge = table === SAMPLED || (connection.prepare(limitedCount).pluck().get() as number) > MAX_ANALYZED_ROWS
    connection.pragma(`analysis_limit = ${isLarge ? SAMPLE : 0}`)
    connection.exec(`analyze "${table}"`)
  }
  return true
}

/** Whether the tables were ever analyzed. */
export function hasStatistics(connection: SqliteDatabase): boolean {
  return connection.prepare("select 1 from sqlite_schema where name = 'sqlite_stat1'").get() !== undefined
}

function listTables(connection: SqliteDatabase): string[] {
  const all = "select name from sqlite_schema where type = 'table' and name not like 'sqlite_%'"
  return connection.prepare(all).pluck().all() as string[]
}
