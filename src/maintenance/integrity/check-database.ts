// Checks a whole database on one snapshot: its file, its references, its sets, its inventory of certificates and its audit.
//
// The checks derive from the registry which columns refer to which tables, which sets have tables and what the inventory
// mirrors. A repair is an ordinary audited change, and never admits more than before.
import { setImmediate } from 'node:timers/promises'
import { DataDirectoryError, requireDatabase } from '../../settings/data-directory.ts'
import { listAppliedMigrations, listPendingMigrations, MIGRATIONS, requireOwnSchema } from '../../storage/migrate.ts'
import { openForReading, type SqliteDatabase } from '../../storage/sqlite/connection.ts'
import { lockDirectory } from '../../storage/sqlite/directory-lock.ts'
import { checkAudit } from './check-audit.ts'
import { checkForeignKeys, checkJson, checkPages } from './check-file.ts'
import { checkInventory } from './check-inventory.ts'
import { checkReferences } from './check-references.ts'
import { checkSets } from './check-sets.ts'
import { type CheckedFiles, type Defect, withoutFailure } from './defects.ts'

type DatabaseCheck = () => Iterable<Defect>

/** The checks of a database that is open for reading, in their order. */
function listDatabaseChecks(
  connection: SqliteDatabase,
  files: Pick<CheckedFiles, 'auditKey'>,
): readonly [string, DatabaseCheck][] {
  return [
    ['the file', () => checkPages(connection)],
    ['the foreign keys', () => checkForeignKeys(connection)],
    ...listRecordChecks(connection),
    ['the audit', () => checkAudit(connection, files)],
  ]
}

function listRecordChecks(connection: SqliteDatabase): readonly [string, DatabaseCheck][] {
  // The definitions describe the newest schema: the records of another one are checked once they are migrated.
  const expectedNames = MIGRATIONS.map(({ name }) => name).join()
  const isNewest = () =>
    listAppliedMigrations(connection)
      .map(({ name }) => name)
      .join() === expectedNames
  const ofNewest = (check: DatabaseCheck) => (): Iterable<Defect> => (isNewest() ? check() : [])
  return [
    ['the JSON of records', ofNewest(() => checkJson(connection))],
    ['the references', ofNewest(() => checkReferences(connection))],
    ['the members of sets', ofNewest(() => checkSets(connection))],
    ['the inventory of certificates', ofNewest(() => checkInventory(connection))],
  ]
}

/** The defects of a database that is open for reading, as one snapshot of it has them. The connection keeps it until it is closed. */
export function* findDefects(connection: SqliteDatabase, files: Pick<CheckedFiles, 'auditKey'>): Generator<Defect> {
  connection.exec('begin')
  for (const [subject, check] of listDatabaseChecks(connection, files)) yield* withoutFailure(subject, check)
}

/** The same for a small database, with a turn of the event loop between the checks. */
export async function findDefectsInTurns(files: CheckedFiles, maxDefects: number): Promise<Defect[]> {
  const connection = openForReading(files.database)
  try {
    connection.exec('begin')
    const defects: Defect[] = []
    for (const [subject, check] of listDatabaseChecks(connection, files)) {
      await setImmediate()
      for (const defect of withoutFailure(subject, check)) if (defects.push(defect) >= maxDefects) return defects
    }
    return defects
  } finally {
    connection.close()
  }
}

/** The result of a check. */
export interface CheckReport {
  /** One sentence for each defect; empty if the database is intact. */
  readonly findings: readonly string[]
  readonly auditRecords: number
  readonly pendingMigrations: readonly string[]
}

// The report is bounded, because a damaged file can have any number of defects.
const MAX_FINDINGS = 100

/**
 * Checks the database of a data directory on which no controller runs.
 * @throws DirectoryLockedError, DataDirectoryError
 */
export async function checkDatabase(directory: string, files: CheckedFiles): Promise<CheckReport> {
  const unlock = lockDirectory(directory)
  try {
    requireDatabase(directory)
    return await checkDatabaseFile(files)
  } finally {
    unlock()
  }
}

/**
 * The same for the file of a database that no other process changes.
 * @throws DataDirectoryError `NEWER_DATABASE`, `OTHER_SCHEMA`
 */
export async function checkDatabaseFile(files: CheckedFiles): Promise<CheckReport> {
  const connection = openForReading(files.database)
  try {
    await requireReadableSchema(connection)
    const findings: string[] = []
    for (const { description } of findDefects(connection, files)) {
      findings.push(description)
      if (findings.length >= MAX_FINDINGS) break
    }
    return {
      findings,
      auditRecords: countAuditRecords(connection),
      pendingMigrations: listPendingMigrations(connection),
    }
  } finally {
    connection.close()
  }
}

/** The tables of a damaged file may be unreadable: its defects say so. */
async function requireReadableSchema(connection: SqliteDatabase): Promise<void> {
  try {
    await requireOwnSchema(connection)
  } catch (error) {
    if (error instanceof DataDirectoryError) throw error
  }
}

/** The number of audit records; 0 if the file is too damaged to count them. */
function countAuditRecords(connection: SqliteDatabase): number {
  try {
    return connection.prepare('select count(*) from audit_records').pluck().get() as number
  } catch {
    return 0
  }
}
