// The statistics of SQLite's planner: without them, a list in an indexed order may be sorted again.
import { setImmediate } from 'node:timers/promises'
import type { SqliteDatabase } from './connection.ts'

// Tables of this many rows are sampled, because reading whole indexes would block all other work. A sample contains how many
// rows share a value; a whole index also gives the distribution of values, by which ranges (above all of dates) are planned.
const MAX_ANALYZED_ROWS = 200_000
const SAMPLE = 1_000

// By far the longest table, and one whose lists follow its own order.
const SAMPLED = 'audit_records'

// From so many rows a value on, samples can tell frequent values from rare ones.
const MIN_SAMPLED_ROWS = 100

// Samples of values have SQLite prepare a statement again each time that a parameter which is compared with an indexed column changes. For
// an index whose values are all rare they tell nothing; a column of times keeps them for its ranges, and no other indexed column has numbers.
const dropSamplesOfRareValues = `
  delete from sqlite_stat4 where idx in (
    select idx from sqlite_stat1
    where cast(substr(stat, instr(stat, ' ') + 1) as integer) < ${MIN_SAMPLED_ROWS}
    and (
      select lower(c.type) from pragma_index_info(idx) i join pragma_table_info(tbl) c on c.cid = i.cid where i.seqno = 0
    ) <> 'integer'
  )`

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
  connection.exec(dropSamplesOfRareValues)
  // Makes the change known to the planner.
  connection.exec('analyze sqlite_schema')
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
