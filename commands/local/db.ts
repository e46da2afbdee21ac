// `controller db …`: the database of a data directory, while no controller runs on it.
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/foundation/clock.ts'
import { assertInitialized, assertStopped, runMaintenance } from '../client/data-directory.ts'
import { readDirectoryOptions } from '../client/directory-options.ts'
import { databaseDirectoryFlag, findDataDirectory } from '../client/local-directory.ts'
import { EXIT } from '../foundation/exit-codes.ts'
import { PrintingCommand } from '../framework/base.ts'

export class DbCheck extends PrintingCommand {
  static override summary =
    'Checks the integrity of the database: its file, references, sets, certificates, and the hash chain of its audit.'
  static override flags = { 'data-dir': databaseDirectoryFlag }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(DbCheck)
    const { directory, file, auditKey } = await openDirectory(flags['data-dir'])
    const { checkDatabase } = await import('../../src/maintenance/integrity/check-database.ts')
    if (process.stderr.isTTY) this.notice(`Reading ${file}; a large database takes some time.`)
    const report = await runMaintenance(directory, () => checkDatabase(directory, { database: file, auditKey }))
    const { findings, auditRecords, pendingMigrations } = report
    const sentence =
      findings.length === 0
        ? `${file} is intact; its audit is an unbroken chain of ${auditRecords} records.`
        : [`${file} is damaged:`, ...findings.map((finding) => `  ${finding}`)].join('\n')
    const facts = { file, isWhole: findings.length === 0, findings, auditRecords, pendingMigrations }
    await this.print({ kind: 'done', sentence, facts }, flags.output)
    if (findings.length > 0) this.exit(EXIT.denied)
  }
}

export class DbMigrate extends PrintingCommand {
  static override summary =
    'Makes a backup, and migrates the database to the newest schema, as the start of a controller does.'
  static override flags = {
    'data-dir': databaseDirectoryFlag,
    'dry-run': Flags.boolean({
      description: 'Run the migrations on a copy, without any change. Exit code 3 if there are migrations to run.',
    }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data --dry-run']

  async run(): Promise<void> {
    const { flags } = await this.parse(DbMigrate)
    const isTrial = flags['dry-run'] === true
    const { directory, file } = await openDirectory(flags['data-dir'])
    const { migrateDirectory } = await import('../../src/maintenance/backup/migrate-directory.ts')
    const migrations = await runMaintenance(directory, () =>
      migrateDirectory({ directory, env: process.env, clock: systemClock, isTrial }),
    )
    const sentence = describeMigrations(file, migrations, isTrial)
    await this.print({ kind: 'done', sentence, facts: { file, isTrial, migrations } }, flags.output)
    if (isTrial && migrations.length > 0) this.exit(EXIT.denied)
  }
}

export class DbRotateKeys extends PrintingCommand {
  static override summary = 'Replaces the key that secrets are encrypted under, and encrypts every secret again.'
  static override description =
    'Works on the data directory while no controller runs on it. If it is interrupted, the next start of a controller encrypts every secret under the new key, and ends no sessions: run it again.'
  static override flags = {
    'data-dir': databaseDirectoryFlag,
    sessions: Flags.boolean({
      description: 'Also end all API sessions, and replace the key that session tokens are derived from.',
    }),
    yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(DbRotateKeys)
    const directory = await findDataDirectory(flags['data-dir'])
    await assertInitialized(directory)
    const hasSessions = flags.sessions === true
    await assertStopped(directory)
    if (hasSessions) await this.confirm(flags, 'This ends all API sessions: everyone must sign in again. Continue?')
    const { rotateKeys } = await import('../../src/rotate-keys.ts')
    const options = { ...readDirectoryOptions(directory), hasSessions }
    const endedSessions = await runMaintenance(directory, () => rotateKeys(options))
    const sessions = hasSessions ? ` ${endedSessions} API sessions ended; their tokens have a new key.` : ''
    const sentence = `Every secret in ${directory} is encrypted under a new key.${sessions}`
    await this.print({ kind: 'done', sentence, facts: { directory, hasSessions, endedSessions } }, flags.output)
  }
}

function describeMigrations(file: string, migrations: readonly string[], isTrial: boolean): string {
  if (migrations.length === 0) return `${file} has the newest schema.`
  return isTrial
    ? `${file} needs ${migrations.join(', ')}; they succeed on a copy.`
    : `${file} was migrated to the newest schema: ${migrations.join(', ')}.`
}

async function openDirectory(flag: string | undefined) {
  const directory = await findDataDirectory(flag)
  await assertInitialized(directory)
  const { getDataPaths } = await import('../../src/settings/data-directory.ts')
  const { database, auditKey } = getDataPaths(directory)
  return { directory, file: database, auditKey }
}
