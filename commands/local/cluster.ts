// `controller cluster …`: makes a directory that of one of several controllers, or of one that is alone again.
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { Flags } from '@oclif/core'
import type { Overrides } from '../../src/settings/settings.ts'
import {
  assertInitialized,
  assertStopped,
  assertUninitialized,
  dataDirectoryFlag,
  explainOpenError,
  resolveDataDirectory,
  runMaintenance,
} from '../client/data-directory.ts'
import { readDirectoryOptions } from '../client/directory-options.ts'
import { rememberDirectory } from '../client/known-directories.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { PrintingCommand } from '../framework/base.ts'
import { networkFlags, readNetworkSettings } from './init.ts'

const databaseFlags = {
  database: Flags.string({
    description: 'The PostgreSQL database, as postgres://user@host/name, without a password.',
    helpValue: 'URL',
    required: true,
  }),
  name: Flags.string({
    description: 'The name of this controller among the others. Default: the name of this machine.',
    helpValue: 'NAME',
  }),
  'password-file': Flags.string({
    description: 'File with the password for the database. Default: the environment variable PGPASSWORD.',
    helpValue: 'FILE',
  }),
  'ca-file': Flags.string({
    description: 'File with the certificates (PEM) of the authorities that the certificate of the database is from.',
    helpValue: 'FILE',
  }),
  tls: Flags.boolean({
    description: 'Whether to encrypt connections to the database, and to verify its certificate.',
    allowNo: true,
    default: true,
  }),
}

interface DatabaseFlags {
  readonly database: string
  readonly name?: string | undefined
  readonly 'password-file'?: string | undefined
  readonly 'ca-file'?: string | undefined
  readonly tls: boolean
}

/** Paths become absolute, because a controller may be started elsewhere. */
function readClusterSettings(flags: DatabaseFlags): Overrides {
  const files = { passwordFile: flags['password-file'], caFile: flags['ca-file'] }
  return {
    'cluster.database': flags.database,
    'cluster.name': flags.name ?? hostname().split('.')[0],
    ...(files.passwordFile === undefined ? {} : { 'cluster.passwordFile': resolve(files.passwordFile) }),
    ...(files.caFile === undefined ? {} : { 'cluster.caFile': resolve(files.caFile) }),
    ...(flags.tls ? {} : { 'cluster.tls': false }),
  }
}

/** The flags for the same connection on another machine, whose files have paths of their own. */
function listProofFlags(flags: DatabaseFlags): string[] {
  return [
    ...(flags.tls ? [] : ['--no-tls']),
    ...(flags['ca-file'] === undefined ? [] : ['--ca-file', 'FILE']),
    ...(flags['password-file'] === undefined ? [] : ['--password-file', 'FILE']),
  ]
}

/** @throws CommandError if the directory is not that of a controller */
async function findDirectory(flag: string | undefined) {
  const directory = resolveDataDirectory(flag)
  await assertInitialized(directory)
  return readDirectoryOptions(directory)
}

export class ClusterInit extends PrintingCommand {
  static override summary = 'Makes a controller the first of several: its network gets a log in a PostgreSQL database.'
  static override description =
    'Works on the data directory while no controller runs on it. If it is interrupted, the directory serves alone as before, and the same command completes it.'
  static override flags = { 'data-dir': dataDirectoryFlag, ...databaseFlags }
  static override examples = [
    '<%= config.bin %> <%= command.id %> --data-dir ./data --database postgres://controller@db.example.com/controller --name one',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterInit)
    const options = await findDirectory(flags['data-dir'])
    const { directory } = options
    const settings = readClusterSettings(flags)
    const { beginCluster } = await import('../../server/cluster/begin-cluster.ts')
    const { clusterKeyFile } = await runMaintenance(directory, () => beginCluster({ ...options, settings }))
    const name = String(settings['cluster.name'])
    const sentence = [
      `${directory} is now that of ${name}, the first controller of a cluster.`,
      '',
      `Next: ${toCommandLine('serve', ['--data-dir', directory])}`,
      `For each other controller, copy ${clusterKeyFile} to its machine by a safe way, and there:`,
      `  ${toCommandLine('cluster join', ['--database', flags.database, ...listProofFlags(flags), '--key', 'cluster.key', '--name', 'NAME', '--advertise', 'HOST:PORT'])}`,
      'Keep a copy of that key elsewhere: without it, the database and its backups are of no use.',
    ].join('\n')
    await this.print({ kind: 'done', sentence, facts: { directory, name, clusterKeyFile } }, flags.output)
  }
}

export class ClusterJoin extends PrintingCommand {
  static override summary = 'Creates the data directory of one more controller of a network.'
  static override description =
    'Its records, keys and certificates come from the database that the others use. If it is interrupted, the same command begins again.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    ...databaseFlags,
    key: Flags.string({
      description: 'File with the cluster key: cluster.key in the data directory of another controller.',
      helpValue: 'FILE',
      required: true,
    }),
    ...networkFlags,
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> --data-dir ./data --database postgres://controller@db.example.com/controller --key cluster.key --name two --advertise two.example.com:1280',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterJoin)
    const directory = resolveDataDirectory(flags['data-dir'])
    await assertUninitialized(directory)
    const settings = { ...readClusterSettings(flags), ...readNetworkSettings(flags) }
    const { joinCluster } = await import('../../server/cluster/join-cluster.ts')
    await joinCluster({ ...readDirectoryOptions(directory), settings, clusterKeyFile: resolve(flags.key) }).catch(
      explainOpenError(directory, 'wait until it has finished'),
    )
    rememberDirectory(directory, process.env)
    const name = String(settings['cluster.name'])
    const sentence = [
      `Created ${directory} for ${name}, one more controller of the network.`,
      '',
      `Next: ${toCommandLine('serve', ['--data-dir', directory])}`,
    ].join('\n')
    await this.print({ kind: 'done', sentence, facts: { directory, name } }, flags.output)
  }
}

export class ClusterLeave extends PrintingCommand {
  static override summary = 'Takes a controller out of its cluster: its data directory serves alone from then on.'
  static override description =
    'Works on the data directory while no controller runs on it. The others go on without it; what it changes from then on is its own.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    'drop-log': Flags.boolean({
      description: 'Also delete the log from the database, if no other controller uses it any more.',
    }),
    'database-lost': Flags.boolean({
      description: 'Leave without the database, because it is lost: with the records of the last contact.',
      exclusive: ['drop-log'],
    }),
    yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data']

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterLeave)
    const options = await findDirectory(flags['data-dir'])
    const { directory } = options
    const { readClusterConfig } = await import('../../server/cluster/cluster-directory.ts')
    await assertStopped(directory)
    await runMaintenance(directory, async () => readClusterConfig(options))
    const { leaveCluster, requireLast } = await import('../../server/cluster/leave-cluster.ts')
    const [isLast, isDatabaseLost] = [flags['drop-log'] === true, flags['database-lost'] === true]
    if (isLast) await runMaintenance(directory, () => requireLast(options)).catch(explainUnreachable)
    await this.confirm(
      flags,
      `Take ${directory} out of its cluster? If the others go on, two networks with the same certificates exist.`,
    )
    await runMaintenance(directory, () => leaveCluster({ ...options, isLast, isDatabaseLost })).catch(
      explainUnreachable,
    )
    const sentence = `${directory} serves alone now.\n\nNext: ${toCommandLine('serve', ['--data-dir', directory])}`
    await this.print({ kind: 'done', sentence, facts: { directory } }, flags.output)
  }
}

function explainUnreachable(error: unknown): never {
  if (!(error instanceof CommandError) || error.code !== 'LOG_UNREACHABLE') throw error
  throw new CommandError(error.exitCode, error.code, error.message, {
    hint: 'run the command again once the database is back; if it does not come back: --database-lost',
  })
}

export class ClusterRekey extends PrintingCommand {
  static override summary = 'Replaces the cluster key, under which controllers encrypt what they share.'
  static override description =
    'First it makes the next key, which you copy to the data directory of each controller; all may run. With --complete, on one whose controller is stopped, it encrypts what they share under that key; those that run take it at once.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    complete: Flags.boolean({ description: 'Use the next key, once every controller has it.' }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> --data-dir ./data',
    '<%= config.bin %> <%= command.id %> --data-dir ./data --complete',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterRekey)
    const options = await findDirectory(flags['data-dir'])
    const { directory } = options
    const { completeRekey, prepareRekey } = await import('../../server/cluster/rekey-cluster.ts')
    if (flags.complete === true) {
      const { stopped } = await runMaintenance(directory, () => completeRekey(options))
      const sentence = [
        'The controllers share everything under the new cluster key.',
        ...(stopped.length > 0
          ? [`Before they start, copy cluster.key of ${directory} into the data directories of: ${stopped.join(', ')}`]
          : []),
        'Keep a copy of it elsewhere in place of the former one.',
      ].join('\n')
      await this.print({ kind: 'done', sentence, facts: { directory, stopped: [...stopped] } }, flags.output)
      return
    }
    const { nextKeyFile } = await runMaintenance(directory, async () => prepareRekey(options))
    const sentence = [
      `The next cluster key is in ${nextKeyFile}.`,
      'Next:',
      '  copy it by a safe way into the data directory of each other controller, as cluster.key.next with mode 0600; they may run',
      `  then stop the controller of ${directory}: ${toCommandLine('cluster rekey', ['--complete', '--data-dir', directory])}`,
    ].join('\n')
    await this.print({ kind: 'done', sentence, facts: { directory, nextKeyFile } }, flags.output)
  }
}

export class ClusterSettings extends PrintingCommand {
  static override summary = 'Shows the settings on which the controllers of a network agree, and changes them.'
  static override description =
    'Works on the data directory while no controller runs on it. To change such a setting, change it in the settings of one controller that is stopped, accept it there, start it, and then change and restart the others one after another.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    accept: Flags.boolean({ description: 'Make those of this controller the ones of the network.' }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data --accept']

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterSettings)
    const options = await findDirectory(flags['data-dir'])
    const { reviewSettings } = await import('../../server/cluster/cluster-settings.ts')
    const isAccepted = flags.accept === true
    const { settings, differences } = await runMaintenance(options.directory, () =>
      reviewSettings({ ...options, isAccepted }),
    )
    const lines = differences.map(({ key, own, shared }) => `  ${key}: ${shared}, here ${own}`)
    const sentence =
      lines.length === 0
        ? 'This controller has the settings of the network.'
        : [isAccepted ? 'Changed for the network:' : 'The network has other settings:', ...lines].join('\n')
    await this.print({ kind: 'done', sentence, facts: { settings, differences } }, flags.output)
    if (lines.length > 0 && !isAccepted) this.exit(EXIT.denied)
  }
}
