// Maintenance of a database while no controller runs: integrity checks and migrations.
import { rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Clock } from '../../../clock.ts'
import { DATABASE_ENDINGS, requireDatabase, runAsOwner } from '../../../data-directory.ts'
import { ensurePrivateFile, KeyFileError, loadKey } from '../../../pki/files.ts'
import { type ChainedRecord, type ChainReport, ChainVerifier } from '../../audit-chain.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from '../../audit-seal.ts'
import { migrate, pendingMigrations } from '../../migrate.ts'
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'
import { lockDirectory } from './directory-lock.ts'

/** The result of a check. */
export interface CheckReport {
  /** One sentence for each defect; empty if the database is intact. */
  readonly findings: readonly string[]
  readonly auditRecords: number
  readonly pendingMigrations: readonly string[]
}

// The report is bounded, because a damaged file can have any number of defects.
const MAX_FINDINGS = 100

/** The paths of the files that a check reads. */
export interface CheckedFiles {
  readonly database: string
  readonly auditKey: string
}

/**
 * Checks the whole database: its pages, its references, and the chain of its audit.
 * @throws DirectoryLockedError, DataDirectoryError
 */
export function checkDatabase(directory: string, files: CheckedFiles): CheckReport {
  const unlock = lockDirectory(directory)
  try {
    requireDatabase(directory)
    const connection = openForReading(files.database)
    try {
      const { findings, records } = checkAudit(connection, files.auditKey)
      return {
        findings: [...findBrokenPages(connection), ...findDanglingReferences(connection), ...findings],
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

function findBrokenPages(connection: SqliteDatabase): string[] {
  const rows = connection.pragma(`integrity_check(${MAX_FINDINGS})`) as { integrity_check: string }[]
  return rows.map(({ integrity_check }) => integrity_check).filter((text) => text !== 'ok')
}

function findDanglingReferences(connection: SqliteDatabase): string[] {
  const rows = connection.pragma('foreign_key_check') as { table: string; rowid: number; parent: string }[]
  return rows
    .slice(0, MAX_FINDINGS)
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to a row of ${parent} that does not exist`)
}

/** Verifies the audit. Without its key it cannot be verified, which is a defect, too. */
function checkAudit(connection: SqliteDatabase, keyFile: string): Pick<ChainReport, 'findings' | 'records'> {
  try {
    return verifyAuditChain(connection, new AuditSealer(loadKey(keyFile, AUDIT_KEY_BYTES)))
  } catch (error) {
    if (!(error instanceof KeyFileError)) throw error
    const records = connection.prepare('select count(*) from audit_records').pluck().get() as number
    return { findings: [`the audit cannot be verified: ${error.message}`], records }
  }
}

function verifyAuditChain(connection: SqliteDatabase, sealer: AuditSealer): ChainReport {
  const verifier = new ChainVerifier(sealer)
  const rows = connection.prepare('select * from audit_records order by n').iterate() as Iterable<ChainedRecord>
  for (const record of rows) verifier.add(record)
  return verifier.report()
}

/**
 * Runs the pending migrations, or with `isTrial` runs them on a copy that is discarded.
 * @returns the names of the migrations
 * @throws DirectoryLockedError, DataDirectoryError, and the error of a migration that fails
 */
export async function migrateDatabase(
  directory: string,
  file: string,
  clock: Clock,
  { isTrial }: { isTrial: boolean },
): Promise<readonly string[]> {
  const unlock = lockDirectory(directory)
  try {
    requireDatabase(directory)
    if (!isTrial) return await migrateFile(file, clock)
    const copy = join(directory, 'trial.db')
    // A killed trial leaves its copy behind.
    discardDatabase(copy)
    try {
      await copyDatabase(file, copy)
      return await migrateFile(copy, clock)
    } finally {
      discardDatabase(copy)
    }
  } finally {
    unlock()
  }
}

function discardDatabase(file: string): void {
  runAsOwner(dirname(file), () => {
    for (const end of DATABASE_ENDINGS) rmSync(file + end, { force: true })
  })
}

async function copyDatabase(file: string, copy: string): Promise<void> {
  runAsOwner(dirname(copy), () => ensurePrivateFile(copy))
  const connection = openForReading(file)
  await connection.backup(copy).finally(() => connection.close())
}

/**
 * Creates the database of a new data directory, or completes an interrupted creation. The caller holds the directory's lock.
 */
export async function createDatabase(file: string, clock: Clock): Promise<void> {
  await migrateFile(file, clock)
}

async function migrateFile(file: string, clock: Clock): Promise<readonly string[]> {
  const connection = openForWriting(file)
  try {
    return await migrate(connection, clock)
  } finally {
    connection.close()
  }
}
