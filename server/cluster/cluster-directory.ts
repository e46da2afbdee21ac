// The data directory of a controller of a cluster, on which the commands for clusters work while its controller is stopped.
import type { Controller } from '../../src/controller/controller.ts'
import { openController } from '../../src/controller/open-controller.ts'
import type { OpenOptions } from '../../src/controller/open-options.ts'
import type { Clock } from '../../src/foundation/clock.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { readConfig } from '../../src/settings/config.ts'
import { DataDirectoryError, getDataPaths } from '../../src/settings/data-directory.ts'
import type { Config } from '../../src/settings/settings.ts'
import { CLUSTER_CHANGE } from '../../src/storage/audit/audit.ts'
import type { Migration } from '../../src/storage/migrate.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import type { AuditEvent } from '../../src/storage/transactions/changes.ts'
import type { Context } from '../../src/storage/transactions/context.ts'

export interface DirectoryOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** The account of the operator, for the audit. */
  readonly osUser: string
  /** The migrations of the store, for tests. Defaults to the migrations of this program. */
  readonly migrations?: readonly Migration[]
}

/** Runs work while no controller runs on a directory. @throws DirectoryLockedError if one does */
export async function withLockedDirectory<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const unlock = lockDirectory(directory)
  try {
    return await work()
  } finally {
    unlock()
  }
}

/** The settings of the directory. @throws DataDirectoryError if it is in no cluster, ConfigError */
export function readClusterConfig({ directory, env }: Pick<DirectoryOptions, 'directory' | 'env'>): Config {
  const config = readConfig(getDataPaths(directory).config, env)
  if (config['cluster.database'] !== undefined) return config
  throw new DataDirectoryError(
    'NO_CLUSTER',
    `${directory} is in no cluster: its controller is alone`,
    'controller cluster init',
  )
}

type ChangeDetails = Pick<AuditEvent, 'method' | 'reason'>

/** A controller that is opened for one command, with the operator as the one who changes something. */
export interface CommandSession {
  readonly controller: Controller
  readonly context: Context
  /** Records that the cluster has changed. */
  recordChange(operation: AuditEvent['operation'], id: string, details?: ChangeDetails): Promise<void>
}

/** Opens the controller of a directory, which may have other settings than its network, for the work of one command. */
export async function withController<T>(
  { directory, clock, osUser, migrations }: DirectoryOptions,
  config: Config,
  work: (session: CommandSession) => Promise<T>,
  more: Pick<OpenOptions, 'isRebuilt'> = {},
): Promise<T> {
  const controller = await openController({
    ...{ directory, config, clock, log: silentLog, hasOtherSettings: true },
    ...(migrations ? { migrations } : {}),
    ...more,
  })
  try {
    const { contexts } = controller
    const context = contexts.create({ kind: 'local-operator', osUser })
    const recordChange: CommandSession['recordChange'] = (operation, id, details) =>
      contexts.recordEvent(context.caller, context.origin, { ...CLUSTER_CHANGE, operation, id, ...details })
    return await work({ controller, context, recordChange })
  } finally {
    await controller.close()
  }
}
