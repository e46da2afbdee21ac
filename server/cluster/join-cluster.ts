// Makes a new directory that of one more controller of a cluster: its rows come from a snapshot, and from the log since.
//
// The settings are written last: until then the directory is none, and the same command begins again.
import { existsSync } from 'node:fs'
import { requireUninitialized } from '../../src/initialize.ts'
import { createPrivateDirectory, writePrivateFile } from '../../src/pki/files.ts'
import { readConfig } from '../../src/settings/config.ts'
import {
  DataDirectoryError,
  getDataPaths,
  hasDatabase,
  requireNothingElse,
  runAsOwner,
} from '../../src/settings/data-directory.ts'
import { renderConfigFile } from '../../src/settings/render-config.ts'
import { getDefault, isSameSetting, type Overrides } from '../../src/settings/settings.ts'
import { loadClusterKey } from '../../src/storage/cluster/cluster-keys.ts'
import { readEqualSettings } from '../../src/storage/cluster/equal-settings.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { SharedFiles } from '../../src/storage/cluster/shared-files.ts'
import { downloadSnapshot } from '../../src/storage/cluster/snapshots.ts'
import { LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import { withLogConnection } from '../../src/storage/postgres/log-connection.ts'
import { requireClusterKey, requireKnownSchema, requireLog } from '../../src/storage/postgres/log-tables.ts'
import { readLogStart } from '../../src/storage/sqlite/log-start.ts'
import { type DirectoryOptions, withController, withLockedDirectory } from './cluster-directory.ts'

export interface JoinOptions extends DirectoryOptions {
  /** The settings of the new directory: cluster.*, and its addresses. */
  readonly settings: Overrides
  /** The file with the cluster key, of which the directory gets a copy. */
  readonly clusterKeyFile: string
}

/** @throws DirectoryLockedError, DataDirectoryError, ConfigError, KeyFileError, LogConnectionError, LogDatabaseError, NodeNameTakenError */
export async function joinCluster(options: JoinOptions): Promise<void> {
  const { directory, env, settings, clusterKeyFile } = options
  const paths = getDataPaths(directory)
  const clusterKey = loadClusterKey(clusterKeyFile)
  requireNothingElse(directory)
  createPrivateDirectory(directory)
  await withLockedDirectory(directory, async () => {
    // Another process may have made it since.
    requireUninitialized(directory)
    requireNoOtherDatabase(directory)
    runAsOwner(directory, () => writePrivateFile(paths.clusterKey, clusterKey))
    const config = readConfig(undefined, env, settings)
    const { database } = findLogPlace(directory, config) as LogPlace
    const cipher = new LogCipher(clusterKey)
    await withLogConnection(database, async (connection) => {
      const head = await connection.run(requireLog)
      requireClusterKey(head, cipher)
      await requireKnownSchema(head)
      await connection.run((client) => downloadSnapshot(client, cipher, paths.database))
    })
    new SharedFiles(directory, clusterKey).restore(paths.database)
    const shared = await announceJoin(options)
    runAsOwner(directory, () => writePrivateFile(paths.config, renderConfigFile({ ...settings, ...shared })))
  })
}

/** The rows of a join that was interrupted can be replaced, and no others. */
function requireNoOtherDatabase(directory: string): void {
  const { database } = getDataPaths(directory)
  if (!hasDatabase(directory) || (existsSync(database) && readLogStart(database).network !== '')) return
  throw new DataDirectoryError(
    'NOT_EMPTY',
    `${directory} holds the database of another controller`,
    '--data-dir with a new directory',
  )
}

/** Has the certificates name this controller. Returns the settings of the network that are not the defaults. */
async function announceJoin(options: JoinOptions): Promise<Overrides> {
  const config = readConfig(undefined, options.env, options.settings)
  return withController(options, config, async ({ controller: { certificates, store }, context, recordChange }) => {
    await certificates.own.renewDue(context)
    await recordChange('update', String(config['cluster.name']))
    const shared = [...(await readEqualSettings(store.db))]
    return Object.fromEntries(shared.filter(([key, value]) => !isSameSetting(key, value, getDefault(key))))
  })
}
