// `controller db backup`, `db verify` and `db restore`: backups of a data directory, on the machine that has it.
import { existsSync, lstatSync, realpathSync } from 'node:fs'
import { join, resolve, sep } from 'node:path'
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/foundation/clock.ts'
import type { BackupSource } from '../../src/maintenance/backup/read-backup.ts'
import type { RestoreReport } from '../../src/maintenance/backup/restore-backup.ts'
import {
  assertInitialized,
  assertStopped,
  explainOpenError,
  explainReadError,
  isDirectoryInitialized,
  runMaintenance,
} from '../client/data-directory.ts'
import { readDirectoryOptions } from '../client/directory-options.ts'
import { databaseDirectoryFlag, findDataDirectory } from '../client/local-directory.ts'
import { type FileTarget, findFileTarget, notWritableError } from '../client/reserved-file.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, makeUsageError } from '../foundation/exit-codes.ts'
import { isFileError } from '../foundation/file-errors.ts'
import { exitOnSignals } from '../foundation/interrupts.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import type { CommandResult } from '../terminal/formats.ts'

const passphraseFileFlag = Flags.string({
  description: 'File whose first line is the passphrase of the backup.',
  helpValue: 'FILE',
})
const fileArgument = requiredArgument({ description: 'The file of the backup.' })

export class DbBackup extends PrintingCommand {
  static override summary = 'Makes a verified backup of a data directory, also while a controller runs on it.'
  static override description =
    'The backup is one file with the database, the keys, the certificates and the settings: who has it has the network. With --passphrase-file it is encrypted, in the format of age; otherwise it is a tar.gz archive. Exit code 3 if the database has defects, which the backup then has, too.'
  static override args = { file: fileArgument }
  static override flags = {
    'data-dir': databaseDirectoryFlag,
    'passphrase-file': passphraseFileFlag,
    yes: Flags.boolean({
      char: 'y',
      description: 'Also replace a file that is not known to be a backup, or is one of another controller.',
    }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> /mnt/backups/controller.tar.gz.age --passphrase-file passphrase.txt',
  ]

  async run(): Promise<void> {
    const { args, flags } = await this.parse(DbBackup)
    const directory = await findDataDirectory(flags['data-dir'])
    await assertInitialized(directory)
    const { isRestoreUnfinished } = await import('../../src/settings/data-directory.ts')
    // Whatever locks the directory completes the restore.
    if (isRestoreUnfinished(directory)) await assertStopped(directory)
    const { path: file, status } = await findBackupTarget(resolve(args.file as string), directory)
    const passphrase = await readPassphraseFile(flags['passphrase-file'])
    const { readBackupManifest } = await import('../../src/maintenance/backup/read-backup.ts')
    const { describeOwner, isSameNetwork, readAddress, readOwner } = await import(
      '../../src/maintenance/backup/owner.ts'
    )
    if (status !== undefined) {
      const older = await readBackupManifest({ file, passphrase })
      if (!older) await this.confirm(flags, `${file} exists, and is not known to be a backup. Replace it?`)
      else if (older.owner && !isSameNetwork(older.owner, readOwner(directory))) {
        await this.confirm(
          flags,
          `${file} is a backup of another controller, ${describeOwner(older.owner)}. Replace it?`,
        )
      }
    }
    const { createBackup } = await import('../../src/maintenance/backup/create-backup.ts')
    const { findings, bytes, owner, ...facts } = await exitOnSignals(() =>
      createBackup({
        directory,
        file,
        passphrase,
        now: systemClock.now(),
        address: readAddress(directory, process.env),
      }),
    ).catch((error: Error) => {
      // The backup is written under a name that begins with its own.
      if (isFileError(error) && error.path?.startsWith(file)) throw notWritableError(file, error)
      return explainOpenError(directory)(error)
    })
    const encryption = passphrase === undefined ? 'It is not encrypted, and holds every key of the network.' : ''
    const sentence = [
      `Wrote ${file} (${bytes} bytes) from ${directory}, and verified it. ${encryption}`.trim(),
      `It is of ${describeOwner(owner)}.`,
      ...(findings.length === 0 ? [] : ['The database has defects, and so has its backup:', ...indent(findings)]),
    ].join('\n')
    await this.print(
      { kind: 'done', sentence, facts: { ...facts, ...owner, bytes, directory, findings } },
      flags.output,
    )
    if (findings.length > 0) this.exit(EXIT.denied)
  }
}

export class DbVerify extends PrintingCommand {
  static override summary = 'Verifies a backup: unpacks it into a temporary folder, and checks everything in it.'
  static override args = { file: fileArgument }
  static override flags = { 'passphrase-file': passphraseFileFlag }
  static override examples = ['<%= config.bin %> <%= command.id %> controller.tar.gz']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(DbVerify)
    const file = resolveExisting(args.file as string)
    const passphrase = await readPassphraseFile(flags['passphrase-file'])
    const { verifyBackup } = await import('../../src/maintenance/backup/restore-backup.ts')
    const { manifest, findings } = await exitOnSignals(() => verifyBackup({ file, passphrase })).catch(
      explainReadError(file),
    )
    const { version, createdAt, files, owner } = manifest
    const { describeOwner } = await import('../../src/maintenance/backup/owner.ts')
    const ownerText = owner ? `\nIt is of ${describeOwner(owner)}.` : ''
    const sentence =
      findings.length === 0
        ? `${file} is intact: version ${version} made it at ${createdAt}, of ${files.length} files.${ownerText}`
        : [`The database in ${file} has defects:`, ...indent(findings)].join('\n')
    const facts = { file, version, createdAt, ...owner, isWhole: findings.length === 0, findings, files: [...files] }
    await this.print({ kind: 'done', sentence, facts }, flags.output)
    if (findings.length > 0) this.exit(EXIT.denied)
  }
}

export class DbRestore extends PrintingCommand {
  static override summary = 'Replaces the content of a data directory by that of a backup, once it is verified.'
  static override description =
    'Works while no controller runs on the directory, and keeps what it replaces in a folder inside of it. A backup of an older version is migrated by the next start of the controller. In a cluster, the records, keys and certificates of all controllers are replaced; the settings stay. The other controllers may run: they end, and have what the backup holds once they start again.'
  static override args = { file: fileArgument }
  static override flags = {
    'data-dir': databaseDirectoryFlag,
    'passphrase-file': passphraseFileFlag,
    force: Flags.boolean({ description: 'Also restore a database that has defects.' }),
    yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> controller.tar.gz --data-dir ./data --yes']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(DbRestore)
    const directory = await findDataDirectory(flags['data-dir'])
    const file = resolveExisting(args.file as string)
    const passphrase = await readPassphraseFile(flags['passphrase-file'])
    const source = { file, passphrase, directory, isForced: flags.force === true }
    if (await isDirectoryInitialized(directory)) {
      await assertStopped(directory)
      const other = await describeOtherNetwork(directory, { file, passphrase })
      if (other !== undefined) this.notice(other)
      const { isOfCluster } = await import('../../server/cluster/restore-cluster.ts')
      if (isOfCluster(directory, process.env)) return this.#restoreCluster(source, flags)
      await this.confirm(flags, `Replace the content of ${directory} by ${file}? What it holds now is kept beside it.`)
    }
    const { restoreBackup } = await import('../../src/maintenance/backup/restore-backup.ts')
    const { replaced, ...backup } = await runMaintenance(directory, () =>
      exitOnSignals(() => restoreBackup({ ...source, now: systemClock.now() })),
    )
    const result = await describeRestored(source, { ...backup, replaced }, [
      ...(replaced === undefined ? [] : [`What it held before is in ${replaced}; delete it once it is not needed.`]),
    ])
    await this.print(result, flags.output)
  }

  async #restoreCluster(source: RestoreSource, flags: RestoreFlags): Promise<void> {
    const { directory, file } = source
    await this.confirm(
      flags,
      `Replace the data of all controllers of the cluster of ${directory} by ${file}? Those that run stop, and have it once they start again. Each keeps its former database beside the new one.`,
    )
    const { restoreCluster } = await import('../../server/cluster/restore-cluster.ts')
    const options = { ...readDirectoryOptions(directory), ...source }
    const { replaced, running, ...backup } = await runMaintenance(directory, () =>
      exitOnSignals(() => restoreCluster(options)),
    )
    const result = await describeRestored(source, { ...backup, replaced }, [
      'So does the log of the cluster, and each of its controllers once it starts again.',
      ...(running.length === 0 ? [] : [`These run, and end now: ${running.join(', ')}. See that they start again.`]),
      ...(replaced === undefined ? [] : [`The database before is in ${replaced}; delete it once it is not needed.`]),
    ])
    await this.print(result, flags.output)
  }
}

interface RestoreFlags {
  readonly yes?: boolean
  readonly output?: string | undefined
}

type RestoreSource = BackupSource & { readonly directory: string }

/** @param lines what follows from it */
async function describeRestored(
  { directory, file }: RestoreSource,
  { manifest, findings, replaced }: RestoreReport,
  lines: readonly string[],
): Promise<CommandResult> {
  const { version, createdAt, owner } = manifest
  const { describeOwner } = await import('../../src/maintenance/backup/owner.ts')
  const sentence = [
    `${directory} holds the data of ${createdAt}, which version ${version} backed up.`,
    ...(owner ? [`They are of ${describeOwner(owner)}.`] : []),
    ...lines,
    `Next: ${toCommandLine('serve', ['--data-dir', directory])}`,
  ].join('\n')
  const facts = { directory, file, version, createdAt, ...owner, findings, replaced: replaced ?? null }
  return { kind: 'done', sentence, facts }
}

/**
 * The networks of a data directory and of a backup, if they differ.
 * @throws CommandError if the file is not a backup, or the passphrase does not open it
 */
async function describeOtherNetwork(directory: string, source: BackupSource): Promise<string | undefined> {
  const { openBackupManifest } = await import('../../src/maintenance/backup/read-backup.ts')
  const { describeOwner, isSameNetwork, readAddress, readOwner } = await import('../../src/maintenance/backup/owner.ts')
  const { owner: backup } = await openBackupManifest(source).catch(explainReadError(source.file))
  const current = readOwner(directory, readAddress(directory, process.env))
  if (!backup || isSameNetwork(backup, current)) return undefined
  return `${directory} is of ${describeOwner(current)}, and ${source.file} is of another network: ${describeOwner(backup)}.`
}

/**
 * Finds the file that a backup is written to.
 * @throws CommandError with exit code 2 if it is a link, is not a regular file, or is among the data of the controller
 */
async function findBackupTarget(path: string, directory: string): Promise<FileTarget> {
  const target = findFileTarget(path)
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw makeUsageError(`${path} is a symbolic link`, { hint: 'name the file that the backup is written to' })
  }
  const { BACKUPS_FOLDER } = await import('../../src/settings/data-directory.ts')
  const data = realpathSync(directory)
  if (target.path.startsWith(data + sep) && !target.path.startsWith(join(data, BACKUPS_FOLDER) + sep)) {
    const hint = `name a file in ${join(data, BACKUPS_FOLDER)}, or better on another disk`
    throw makeUsageError(`${path} is inside the data directory ${data}`, { hint })
  }
  return target
}

async function readPassphraseFile(path: string | undefined): Promise<string | undefined> {
  if (path === undefined) return undefined
  const { readPassphrase } = await import('../../src/maintenance/backup/passphrase.ts')
  try {
    return readPassphrase(path)
  } catch (error) {
    return explainReadError(path)(error as Error)
  }
}

/** @throws CommandError with exit code 5 if there is no such file */
function resolveExisting(file: string): string {
  const path = resolve(file)
  if (existsSync(path)) return path
  throw new CommandError(EXIT.notFound, 'NOT_FOUND', `there is no file ${path}`, { hint: 'name the file of a backup' })
}

function indent(lines: readonly string[]): string[] {
  return lines.map((line) => `  ${line}`)
}
