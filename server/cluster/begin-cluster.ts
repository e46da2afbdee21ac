// Makes a controller that is alone the first one of a cluster: its directory gets a key, and a database the log of what follows.
//
// The settings are written last. Until then the directory serves alone, and the same command goes on where it was interrupted.
import { newId } from '../../src/foundation/ids.ts'
import { quoteShellWord } from '../../src/foundation/shell-words.ts'
import { loadOrCreateKey } from '../../src/pki/files.ts'
import { readConfig } from '../../src/settings/config.ts'
import { DataDirectoryError, getDataPaths, runAsOwner } from '../../src/settings/data-directory.ts'
import { editConfigFile, requireEditable } from '../../src/settings/edit-config-file.ts'
import type { Config, Overrides } from '../../src/settings/settings.ts'
import { storeEqualSettings } from '../../src/storage/cluster/equal-settings.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { uploadSnapshot } from '../../src/storage/cluster/upload-snapshot.ts'
import { CLUSTER_KEY_BYTES, LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import { type LogConnection, withLogConnection } from '../../src/storage/postgres/log-connection.ts'
import {
  createLog,
  hasLog,
  requireClusterKey,
  requireLog,
  requireNetwork,
} from '../../src/storage/postgres/log-tables.ts'
import { readLogStart, setNetwork } from '../../src/storage/sqlite/log-start.ts'
import { type CommandSession, type DirectoryOptions, withController, withLockedDirectory } from './cluster-directory.ts'

export interface BeginOptions extends DirectoryOptions {
  /** The settings cluster.*, which are written to the file. */
  readonly settings: Overrides
}

/**
 * Returns the file of the cluster key, which the other controllers need.
 * @throws DirectoryLockedError while a controller runs, DataDirectoryError, ConfigError, LogConnectionError, LogDatabaseError
 */
export async function beginCluster(options: BeginOptions): Promise<{ readonly clusterKeyFile: string }> {
  const { directory, env, settings } = options
  const paths = getDataPaths(directory)
  return withLockedDirectory(directory, async () => {
    requireAlone(directory, readConfig(paths.config, env))
    requireEditable(paths.config)
    const config = readConfig(paths.config, env, settings)
    const clusterKeyFile = config['cluster.keyFile'] ?? paths.clusterKey
    runAsOwner(directory, () => loadOrCreateKey(clusterKeyFile, CLUSTER_KEY_BYTES))
    const place = findLogPlace(directory, config) as LogPlace
    const cipher = new LogCipher(place.clusterKey)
    await withLogConnection(place.database, async (connection) => {
      if (!(await hasLogOf(connection, cipher, paths.database))) {
        await removeFormerCluster(options)
        await beginLog(connection, cipher, paths.database)
      }
      await shareDirectory(options, config)
      await uploadSnapshot(connection, cipher, paths.database)
    })
    runAsOwner(directory, () => editConfigFile(paths.config, settings))
    return { clusterKeyFile }
  })
}

function requireAlone(directory: string, config: Config): void {
  if (config['cluster.database'] === undefined) return
  const remedy = `controller cluster leave --data-dir ${quoteShellWord(directory)}`
  throw new DataDirectoryError('IN_CLUSTER', `${directory} is that of a controller in a cluster`, remedy)
}

/** Whether the database has the log of this directory, from a run that was interrupted. */
async function hasLogOf(connection: LogConnection, cipher: LogCipher, databaseFile: string): Promise<boolean> {
  const { network } = readLogStart(databaseFile)
  return connection.run(async (client) => {
    if (network === '' || !(await hasLog(client))) return false
    const head = await requireLog(client)
    requireNetwork(head, network)
    requireClusterKey(head, cipher)
    return true
  })
}

/** Removes what a cluster left in the rows, also that of a run whose log is gone. */
async function removeFormerCluster(options: BeginOptions): Promise<void> {
  const config = readConfig(getDataPaths(options.directory).config, options.env)
  await withController(options, config, ({ controller: { contexts } }) =>
    contexts.create({ kind: 'system' }).write(async ({ db }) => {
      await db.deleteFrom('shared_files').execute()
      await db.deleteFrom('shared_settings').execute()
    }),
  )
}

async function beginLog(connection: LogConnection, cipher: LogCipher, databaseFile: string): Promise<void> {
  const network = newId()
  // First, so that a run after an interruption finds that the log is its own.
  setNetwork(databaseFile, network)
  try {
    await connection.run((client) => createLog(client, { ...readLogStart(databaseFile), network }, cipher))
  } catch (error) {
    setNetwork(databaseFile, '')
    throw error
  }
}

/** Commits the files and settings that the other controllers get. @throws DataDirectoryError if the directory has changed since the log began */
async function shareDirectory(options: BeginOptions, config: Config): Promise<void> {
  const share = async ({ controller, context, recordChange }: CommandSession) => {
    const { cluster, entities, membership } = controller
    if (!cluster) throw new Error('the settings name no database')
    await context.write(async (tx) => {
      await cluster.files.store(entities, tx, cluster.files.read())
      await storeEqualSettings(tx, config)
      await membership.claim(tx)
    })
    await recordChange('create', cluster.name)
  }
  // Rows that the log does not have are those of a network that went on alone.
  await withController(options, config, share, { isRebuilt: false }).catch((error: Error) => {
    if (error.name !== 'LogContradictionError') throw error
    throw new DataDirectoryError(
      'LOG_OUTDATED',
      `the database has a log of this network that ${options.directory} does not follow: it has served alone since`,
      'if no other controller uses that log, drop it with psql: drop schema controller cascade; then run this command again',
    )
  })
}
