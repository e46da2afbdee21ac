// Migrates a database while no controller runs on it.
import { join } from 'node:path'
import type { Clock } from '../../foundation/clock.ts'
import { requireDatabase } from '../../settings/data-directory.ts'
import { migrate, needsMigration, requireOwnSchema } from '../migrate.ts'
import { openForWriting } from './connection.ts'
import { copyDatabaseInto, discardDatabase } from './copy-database.ts'
import { lockDirectory } from './directory-lock.ts'

interface MigrationOptions {
  readonly isTrial: boolean
  /** Called before a database that has data is changed, and not in a trial. */
  beforeMigration(): Promise<unknown>
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
  { isTrial, beforeMigration }: MigrationOptions,
): Promise<readonly string[]> {
  const unlock = lockDirectory(directory)
  try {
    requireDatabase(directory)
    if (!isTrial) return await migrateFile(file, clock, beforeMigration)
    const copy = join(directory, 'trial.db')
    // A killed trial leaves its copy behind.
    discardDatabase(copy)
    try {
      await copyDatabaseInto(file, copy)
      return await migrateFile(copy, clock)
    } finally {
      discardDatabase(copy)
    }
  } finally {
    unlock()
  }
}

/**
 * Creates the database of a new data directory, or completes an interrupted creation. The caller holds the directory's lock.
 */
export async function createDatabase(file: string, clock: Clock): Promise<void> {
  await migrateFile(file, clock)
}

async function migrateFile(
  file: string,
  clock: Clock,
  beforeMigration: MigrationOptions['beforeMigration'] = async () => {},
): Promise<readonly string[]> {
  const connection = openForWriting(file)
  try {
    await requireOwnSchema(connection)
    if (needsMigration(connection)) await beforeMigration()
    return await migrate(connection, clock)
  } finally {
    connection.close()
  }
}
