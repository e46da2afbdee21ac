// Migrates a data directory on which no controller runs, after a backup.
import type { Clock } from '../../foundation/clock.ts'
import { silentLog } from '../../foundation/log.ts'
import { readConfig } from '../../settings/config.ts'
import { getDataPaths } from '../../settings/data-directory.ts'
import { migrateDatabase } from '../../storage/sqlite/maintenance.ts'
import { Backups } from './backups.ts'

export interface MigrateOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** Migrates a copy that is discarded. */
  readonly isTrial: boolean
}

/**
 * Runs the pending migrations, as the start of a controller does.
 * @returns their names
 * @throws DirectoryLockedError, DataDirectoryError, ConfigError, BackupError, MigrationError
 */
export async function migrateDirectory({ directory, env, clock, isTrial }: MigrateOptions): Promise<readonly string[]> {
  const { config: configFile, database } = getDataPaths(directory)
  const config = readConfig(configFile, env)
  const backups = new Backups({ directory, config, clock, log: silentLog })
  const beforeMigration = () => backups.create('migration')
  return migrateDatabase(directory, database, clock, { isTrial, beforeMigration })
}
