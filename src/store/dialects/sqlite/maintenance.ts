// What is done to a database while no controller runs: looking whether it is whole, and bringing it to the newest schema.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../../../clock.ts'
import { type Sealed, seal } from '../../audit.ts'
import { migrate, pendingMigrations } from '../../migrate.ts'
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'
import { lockDirectory } from './directory-lock.ts'

/** What a look at a database found. */
export interface CheckReport {
  /** A sentence for each thing that is wrong; none where the database is whole. */
  readonly findings: readonly string[]
  readonly auditRecords: number
  readonly pendingMigrations: readonly string[]
}

// So many findings say enough; a broken file can hold any number.
const MOST_FINDINGS = 100

/**
 * Reads the whole database: its pages, its references, and whether its audit is one unbroken chain.
 * @throws DirectoryLocked
 */
export function checkDatabase(directory: string, file: string): CheckReport {
  const unlock = lockDirectory(directory)
  try {
    const connection = openForReading(file)
    try {
      const { findings, records } = brokenAudit(connection)
      return {
        findings: [...brokenPages(connection), ...danglingReferences(connection), ...findings],
        auditRecords: records,
        pendingMigrations: pendingMigrations(connection),
      }
    } finally {
      connection.close()
    }
  } finally {
    unlock()
  }
}

function brokenPages(connection: SqliteDatabase): string[] {
  const rows = connection.pragma(`integrity_check(${MOST_FINDINGS})`) as { integrity_check: string }[]
  return rows.map(({ integrity_check }) => integrity_check).filter((text) => text !== 'ok')
}

function danglingReferences(connection: SqliteDatabase): string[] {
  const rows = connection.pragma('foreign_key_check') as { table: string; rowid: number; parent: string }[]
  return rows
    .slice(0, MOST_FINDINGS)
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to a row of ${parent} that does not exist`)
}

/** Each record is sealed with the hash of the one before; the first may continue a chain that was cut off. */
function brokenAudit(connection: SqliteDatabase): { findings: string[]; records: number } {
  const rows = connection.prepare('select * from audit_records order by n').iterate() as Iterable<
    Sealed & { n: number; previousHash: string; hash: string }
  >
  const findings: string[] = []
  let records = 0
  let expected: string | undefined
  for (const row of rows) {
    records++
    const isLinked = expected === undefined || row.previousHash === expected
    if (!isLinked) findings.push(`the audit is broken before record ${row.n}: something was taken out, or put in`)
    if (seal(row.previousHash, row) !== row.hash)
      findings.push(`the audit record ${row.n} was changed after it was written`)
    if (findings.length >= MOST_FINDINGS) break
    expected = row.hash
  }
  return { findings, records }
}

/**
 * Runs what has not run yet, or with `isTrial` runs it on a copy that is thrown away.
 * @returns the names of the migrations
 * @throws DirectoryLocked, and what a migration says that fails
 */
export async function migrateDatabase(
  directory: string,
  file: string,
  clock: Clock,
  { isTrial }: { isTrial: boolean },
): Promise<readonly string[]> {
  const unlock = lockDirectory(directory)
  try {
    if (!isTrial) return await migrated(file, clock)
    const copy = join(directory, 'trial.db')
    try {
      const connection = openForReading(file)
      await connection.backup(copy).finally(() => connection.close())
      return await migrated(copy, clock)
    } finally {
      for (const end of ['', '-wal', '-shm', '-journal']) rmSync(copy + end, { force: true })
    }
  } finally {
    unlock()
  }
}

async function migrated(file: string, clock: Clock): Promise<readonly string[]> {
  const connection = openForWriting(file)
  try {
    return await migrate(connection, clock)
  } finally {
    connection.close()
  }
}
