// `controller adopt`: continues the network of OpenZiti's controller in a new data directory.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { Flags } from '@oclif/core'
import type { AdoptionReport } from '../../src/adopt/adoption-report.ts'
import type { AdoptOptions } from '../../src/adopt.ts'
import { systemClock } from '../../src/foundation/clock.ts'
import { parseDuration } from '../../src/settings/setting-types.ts'
import { getUserName } from '../client/connection.ts'
import {
  assertInitialized,
  assertUninitialized,
  dataDirectoryFlag,
  explainOpenError,
  resolveDataDirectory,
} from '../client/data-directory.ts'
import { rememberDirectory } from '../client/known-directories.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import { readText } from '../foundation/flag-values.ts'
import { exitOnSignals } from '../foundation/interrupts.ts'
import { PrintingCommand } from '../framework/base.ts'
import { partFlags, readParts } from './adopt-parts.ts'

const WHEN_LOCKED = 'stop the controller first'

export class Adopt extends PrintingCommand {
  static override summary =
    "Continues the network of OpenZiti's controller, with its identities, certificates, passwords and policies."
  static override description =
    "Reads the configuration, the certificates and the database of OpenZiti's controller (releases 1.6 and 2.0), which it does not change, and makes a new data directory of them. Everything is imported and proven first: the rights of every identity are those that the former controller granted. Then the report is shown, and only after the confirmation the directory becomes that of a controller. OpenZiti's controller must be stopped, or --database must name a snapshot."
  static override flags = {
    'data-dir': dataDirectoryFlag,
    from: Flags.string({
      description:
        "The configuration file of OpenZiti's controller. Without it, state --database and the flags of its parts below.",
      helpValue: 'FILE',
    }),
    database: Flags.string({
      description:
        'Its database, if it is not where the configuration says: a snapshot, the ctrl-ha.db of a cluster, or the state.bin of one of its snapshots.',
      helpValue: 'FILE',
    }),
    ...partFlags,
    'root-key': Flags.string({
      description: 'The key of its root certificate, if it is not next to the certificate.',
      helpValue: 'FILE',
    }),
    'client-bundle': Flags.string({
      description:
        'The authorities that a client stored when it enrolled: its identity file, or a PEM file. The report says whether this client accepts the server certificate. Can be repeated.',
      helpValue: 'FILE',
      multiple: true,
      multipleNonGreedy: true,
    }),
    'env-file': Flags.string({
      description:
        'A file with the environment variables that the configuration names. Default: those of this command.',
      helpValue: 'FILE',
      dependsOn: ['from'],
    }),
    'path-prefix': Flags.string({
      description: 'How paths of the configuration begin, and how they begin on this machine. Can be repeated.',
      helpValue: 'OLD=NEW',
      multiple: true,
      multipleNonGreedy: true,
      dependsOn: ['from'],
    }),
    trial: Flags.string({
      description:
        "How long nothing is renewed that OpenZiti's controller would not know, such as 14d, so that it can take the network back: not the signing certificate, nor certificates of identities and routers, unless they end before.",
      helpValue: 'DURATION',
      exclusive: ['verify'],
    }),
    'dry-run': Flags.boolean({ description: 'Only show the report; no data directory is made.' }),
    verify: Flags.boolean({
      description: 'Prove again, on the data directory of an earlier adoption, that its rights are those of the files.',
      exclusive: ['dry-run'],
    }),
    yes: Flags.boolean({ char: 'y', description: 'Skip the confirmation.' }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> --from /etc/ziti/controller.yaml --data-dir ./data --dry-run',
    '<%= config.bin %> <%= command.id %> --from /etc/ziti/controller.yaml --data-dir ./data --yes',
    '<%= config.bin %> <%= command.id %> --database ctrl.db --signing-cert signer.pem --signing-key signer.key --ca cas.pem --server-cert server.pem --server-key server.key --control-cert client.pem --address ctrl.example.com:1280 --control-address ctrl.example.com:6262 --data-dir ./data',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(Adopt)
    const directory = resolveDataDirectory(flags['data-dir'])
    const options = {
      configuration: flags.from ?? readParts(flags),
      ...(flags.database === undefined ? {} : { database: flags.database }),
      clientBundles: flags['client-bundle'] ?? [],
      ...(flags['root-key'] === undefined ? {} : { rootKey: flags['root-key'] }),
      env:
        flags['env-file'] === undefined ? process.env : parseEnv(await readText('env-file', `@${flags['env-file']}`)),
      pathPrefixes: readPathPrefixes(flags['path-prefix'] ?? []),
      ...(flags.trial === undefined ? {} : { trialMs: readTrial(flags.trial) }),
      clock: systemClock,
      osUser: getUserName(),
    }
    if (flags.verify) await this.#verify({ ...options, directory }, flags.output)
    else if (flags['dry-run']) await this.#dryRun(options, flags.output)
    else await this.#adopt({ ...options, directory }, flags)
  }

  async #adopt(options: AdoptOptions, flags: { readonly yes?: boolean; readonly output?: unknown }): Promise<void> {
    const { directory } = options
    await assertUninitialized(directory)
    const { adoptNetwork } = await import('../../src/adopt.ts')
    const adoption = await adoptNetwork(options).catch(explainOpenError(directory, WHEN_LOCKED))
    try {
      if (!flags.yes) this.notice(describeReport(adoption.report))
      await this.confirm(flags, `Make ${directory} the data directory of the controller of this network?`)
      adoption.complete()
    } catch (error) {
      adoption.discard()
      explainOpenError(directory, WHEN_LOCKED)(error as Error)
    }
    rememberDirectory(directory, process.env)
    const sentence = [
      ...(flags.yes ? [describeReport(adoption.report), ''] : []),
      `Adopted the network in ${directory}.`,
      `Next: ${toCommandLine('serve', ['--data-dir', directory])}`,
    ].join('\n')
    await this.print({ kind: 'done', sentence, facts: { directory, ...adoption.report } }, flags.output)
  }

  async #dryRun(options: Omit<AdoptOptions, 'directory'>, output: unknown): Promise<void> {
    const { adoptNetwork } = await import('../../src/adopt.ts')
    const { removeOnExit } = await import('../../src/maintenance/backup/remove-on-exit.ts')
    const directory = mkdtempSync(join(tmpdir(), 'adopt-'))
    // It holds the keys of the network.
    const discard = removeOnExit(() => rmSync(directory, { recursive: true, force: true }))
    try {
      const { report } = await exitOnSignals(() => adoptNetwork({ ...options, directory })).catch(
        explainOpenError(directory, WHEN_LOCKED),
      )
      // Before the report is printed, which may wait for a reader.
      discard()
      const sentence = `${describeReport(report)}\n\nNothing was changed.`
      await this.print({ kind: 'done', sentence, facts: { ...report } }, output)
    } finally {
      discard()
    }
  }

  async #verify(options: AdoptOptions, output: unknown): Promise<void> {
    await assertInitialized(options.directory)
    const { verifyAdoption } = await import('../../src/adopt.ts')
    const { rights, clientBundles, notes } = await verifyAdoption(options).catch(
      explainOpenError(options.directory, WHEN_LOCKED),
    )
    const sentence = [
      `${describeRights(rights)}.`,
      ...clientBundles.map(describeBundle),
      ...notes.map((note) => `  ${describeNote(note)}`),
    ].join('\n')
    const { directory } = options
    await this.print({ kind: 'done', sentence, facts: { directory, rights, clientBundles, notes } }, output)
  }
}

function readPathPrefixes(entries: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    entries.map((entry) => {
      const at = entry.indexOf('=')
      if (at > 0) return [entry.slice(0, at), entry.slice(at + 1)]
      throw makeUsageError(`--path-prefix ${entry} is not of the form OLD=NEW`)
    }),
  )
}

function readTrial(text: string): number {
  const milliseconds = parseDuration(text)
  if (milliseconds === undefined) throw makeUsageError(`--trial ${text} is not a duration such as 14d or 12h`)
  return milliseconds
}

function describeRights({ dial, bind, routers, serviceRouters }: AdoptionReport['rights']): string {
  return `The rights are those of the former network: ${dial} to dial, ${bind} to bind, ${routers} of identities and ${serviceRouters} of services to use a router`
}

function describeBundle({ path, certificates, objection }: AdoptionReport['clientBundles'][number]): string {
  const verdict = objection === null ? 'accepts' : 'does not accept'
  return `A client with the ${certificates} certificates of ${path} ${verdict} the server certificate${objection === null ? '' : `: ${objection}`}.`
}

function describeNote({ kind, name, id, problem }: AdoptionReport['notes'][number]): string {
  return `${[kind, name || id].filter((part) => part !== '').join(' ')}: ${problem}`
}

/** The report, as an operator reads it before the switch. */
function describeReport(report: AdoptionReport): string {
  const { source, controllerId, counts, listeners, advertise, tunnelers, notes, noteCount } = report
  const records = Object.entries(counts)
    .filter(([, { found }]) => found > 0)
    .map(([kind, { found, adopted }]) => `  ${kind}: ${adopted === found ? found : `${adopted} of ${found}`}`)
  return [
    `The database ${source.database} (schema ${source.schema}) of the controller ${controllerId}:`,
    ...records,
    `${describeRights(report.rights)}.`,
    ...report.clientBundles.map(describeBundle),
    `Clients and routers know these addresses, which must stay: ${advertise.join(', ')}`,
    ...listeners.map(({ address, apis }) => `It will listen on ${address}: ${apis.join(', ')}`),
    ...(report.hasRootKey
      ? []
      : ['The key of the root is not here: pki/root.key is required to replace the signing certificate.']),
    `The root ends ${report.rootEnds}.`,
    ...(report.trialEnds === null
      ? []
      : [`On trial until ${report.trialEnds}: no certificate is renewed before, unless it ends within the trial.`]),
    ...(tunnelers.length === 0
      ? []
      : [
          `Restart these routers once after the switch if they are older than release 2.0, because they tunnel themselves: ${tunnelers.join(', ')}`,
        ]),
    ...(noteCount === 0
      ? ['Everything is adopted as it is.']
      : ['Different afterwards:', ...notes.map((note) => `  ${describeNote(note)}`)]),
    ...(noteCount > notes.length ? [`  and ${noteCount - notes.length} more`] : []),
  ].join('\n')
}
