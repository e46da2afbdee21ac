// `controller db …`: the database of a data directory, while no controller runs on it.
import { Flags } from '@oclif/core'
import { systemClock } from '../src/clock.ts'
import { PrintingCommand } from './base.ts'
import { assertInitialized, dataDirectoryFlag, explainOpenError, resolveDataDirectory } from './data-directory.ts'
import { EXIT } from './exit-codes.ts'

export class DbCheck extends PrintingCommand {
  static override summary = 'Looks whether a database is whole: its pages, its references, the chain of its audit.'
  static override flags = { 'data-dir': dataDirectoryFlag }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(DbCheck)
    const { directory, file, auditKey, maintenance } = await opened(flags['data-dir'])
    if (process.stderr.isTTY) this.notice(`Reading ${file}: this takes a while where it is large.`)
    const report = await attempt(directory, async () =>
      maintenance.checkDatabase(directory, { database: file, auditKey }),
    )
    const { findings, auditRecords, pendingMigrations } = report
    const sentence =
      findings.length === 0
        ? `${file} is whole; its audit is an unbroken chain of ${auditRecords} records.`
        : [`${file} is damaged:`, ...findings.map((finding) => `  ${finding}`)].join('\n')
    const facts = { file, isWhole: findings.length === 0, findings, auditRecords, pendingMigrations }
    await this.print({ kind: 'done', sentence, facts }, flags.output)
    if (findings.length > 0) this.exit(EXIT.denied)
  }
}

export class DbMigrate extends PrintingCommand {
  static override summary = 'Brings a database to the newest schema; starting the controller does the same.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    'dry-run': Flags.boolean({
      description: 'Try it on a copy, and change nothing. Exit code 3 where there is something to do.',
    }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data --dry-run']

  async run(): Promise<void> {
    const { flags } = await this.parse(DbMigrate)
    const isTrial = flags['dry-run'] === true
    const { directory, file, maintenance } = await opened(flags['data-dir'])
    const migrations = await attempt(directory, () =>
      maintenance.migrateDatabase(directory, file, systemClock, { isTrial }),
    )
    const sentence = sentenceFor(file, migrations, isTrial)
    await this.print({ kind: 'done', sentence, facts: { file, isTrial, migrations } }, flags.output)
    if (isTrial && migrations.length > 0) this.exit(EXIT.denied)
  }
}

function sentenceFor(file: string, migrations: readonly string[], isTrial: boolean): string {
  if (migrations.length === 0) return `${file} has the newest schema.`
  return isTrial
    ? `${file} needs ${migrations.join(', ')}; on a copy they ran without failure.`
    : `${file} now has the newest schema: ran ${migrations.join(', ')}.`
}

async function opened(given: string | undefined) {
  const directory = resolveDataDirectory(given)
  await assertInitialized(directory)
  const { getDataPaths } = await import('../src/data-directory.ts')
  const maintenance = await import('../src/store/dialects/sqlite/maintenance.ts')
  const { database, auditKey } = getDataPaths(directory)
  return { directory, file: database, auditKey, maintenance }
}

function attempt<T>(directory: string, work: () => Promise<T>): Promise<T> {
  return work().catch(explainOpenError(directory, 'stop it first'))
}
