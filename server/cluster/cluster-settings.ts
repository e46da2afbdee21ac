// Compares the settings of a stopped controller with those on which its network agrees, and makes its own those of the network.
import {
  findDifferentSettings,
  readEqualSettings,
  type SettingDifference,
  storeEqualSettings,
} from '../../src/storage/cluster/equal-settings.ts'
import { type DirectoryOptions, readClusterConfig, withController, withLockedDirectory } from './cluster-directory.ts'

export interface SettingsReview {
  /** The settings of the network. */
  readonly settings: Readonly<Record<string, unknown>>
  readonly differences: readonly SettingDifference[]
}

/**
 * @param options.isAccepted whether the network gets those of this controller
 * @throws DirectoryLockedError while it runs, DataDirectoryError, ConfigError, LogConnectionError, LogDatabaseError
 */
export async function reviewSettings(
  options: DirectoryOptions & { readonly isAccepted: boolean },
): Promise<SettingsReview> {
  return withLockedDirectory(options.directory, async () => {
    const config = readClusterConfig(options)
    return withController(options, config, async ({ controller: { store }, context, recordChange }) => {
      const differences = await findDifferentSettings(store.db, config)
      if (options.isAccepted && differences.length > 0) {
        await context.write((tx) => storeEqualSettings(tx, config))
        await recordChange('update', 'settings')
      }
      return { settings: Object.fromEntries(await readEqualSettings(store.db)), differences }
    })
  })
}
