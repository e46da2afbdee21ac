// Compares the settings of a stopped controller with those on which its network agrees, and makes its own those of the network.
import { openController } from '../../src/controller.ts'
import type { Clock } from '../../src/foundation/clock.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { readConfig } from '../../src/settings/config.ts'
import { DataDirectoryError, getDataPaths } from '../../src/settings/data-directory.ts'
import { CLUSTER_CHANGE } from '../../src/storage/audit/audit.ts'
import {
  findDifferentSettings,
  readEqualSettings,
  type SettingDifference,
  storeEqualSettings,
} from '../../src/storage/cluster/equal-settings.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'

export interface ReviewOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly osUser: string
  /** Whether the network gets those of this controller. */
  readonly isAccepted: boolean
}

/** @throws DirectoryLockedError while it runs, DataDirectoryError, ConfigError, LogConnectionError, LogDatabaseError */
export async function reviewSettings({ directory, env, clock, osUser, isAccepted }: ReviewOptions): Promise<{
  readonly settings: Readonly<Record<string, unknown>>
  readonly differences: readonly SettingDifference[]
}> {
  const unlock = lockDirectory(directory)
  try {
    const config = readConfig(getDataPaths(directory).config, env)
    if (config['cluster.database'] === undefined)
      throw new DataDirectoryError('NO_CLUSTER', `${directory} is of no cluster`, 'controller cluster init')
    const controller = await openController({ ...{ directory, config, clock, log: silentLog }, hasOtherSettings: true })
    try {
      const { contexts, store } = controller
      const differences = await findDifferentSettings(store.db, config)
      if (isAccepted && differences.length > 0) {
        const context = contexts.create({ kind: 'local-operator', osUser })
        await context.write((tx) => storeEqualSettings(tx, config))
        const event = { ...CLUSTER_CHANGE, operation: 'update', id: 'settings' } as const
        await contexts.recordEvent(context.caller, context.origin, event)
      }
      return { settings: Object.fromEntries(await readEqualSettings(store.db)), differences }
    } finally {
      await controller.close()
    }
  } finally {
    unlock()
  }
}
