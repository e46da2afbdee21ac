// The place of the log that controllers share, and the key and the name to use it: from settings and files.
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import { getDataPaths } from '../../settings/data-directory.ts'
import { readSettingFile } from '../../settings/setting-files.ts'
import { ConfigError } from '../../settings/setting-types.ts'
import type { Config } from '../../settings/settings.ts'
import type { LogDatabase } from '../postgres/log-connection.ts'
import { loadClusterKey } from './cluster-keys.ts'

/** The place of the log, and this controller among those that use it. */
export interface LogPlace {
  readonly database: LogDatabase
  /** The file of the key under which controllers encrypt what they share, and the key. */
  readonly clusterKeyFile: string
  readonly clusterKey: Buffer
  /** The name of this controller among those that use it. */
  readonly name: string
  /** The address of its APIs. */
  readonly address: string
  /** How long after its last contact it grants rights. */
  readonly leaseMs: number
}

/**
 * Returns the place that the settings name; undefined if this controller is alone.
 * @throws ConfigError if they are incomplete, or name a file that cannot be read; KeyFileError
 */
export function findLogPlace(directory: string, config: Config): LogPlace | undefined {
  const url = config['cluster.database']
  if (url === undefined) return undefined
  const name = config['cluster.name']
  if (name === undefined) throw new ConfigError('cluster.name', 'must be set, because cluster.database is')
  const clusterKeyFile = config['cluster.keyFile'] ?? getDataPaths(directory).clusterKey
  return {
    name,
    address: getAdvertisedAddress(config),
    leaseMs: config['cluster.lease'],
    clusterKeyFile,
    clusterKey: loadClusterKey(clusterKeyFile),
    database: {
      url,
      password: readSettingFile(config, 'cluster.passwordFile')?.trimEnd(),
      ca: readSettingFile(config, 'cluster.caFile'),
      isPlain: !config['cluster.tls'],
    },
  }
}
