// Replaces the cluster key while the controllers run. The operator copies the next key into the data directory of each beforehand.
import { existsSync } from 'node:fs'
import { loadOrCreateKey } from '../../src/pki/files.ts'
import { DataDirectoryError, getDataPaths, runAsOwner } from '../../src/settings/data-directory.ts'
import type { Config } from '../../src/settings/settings.ts'
import type { Cluster } from '../../src/storage/cluster/cluster.ts'
import { discardTakenKey, nameNextKey } from '../../src/storage/cluster/cluster-keys.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { CLUSTER_KEY_BYTES } from '../../src/storage/postgres/log-cipher.ts'
import { readLogStart } from '../../src/storage/sqlite/log-start.ts'
import {
  type CommandSession,
  type DirectoryOptions,
  readClusterConfig,
  withController,
  withLockedDirectory,
} from './cluster-directory.ts'

/**
 * Creates the next key if it does not exist yet, and returns its file, which the operator copies into the data directory of every other controller.
 * The controller of the directory may run.
 * @throws DataDirectoryError, ConfigError, KeyFileError
 */
export function prepareRekey(options: DirectoryOptions): { readonly nextKeyFile: string } {
  const { directory } = options
  const nextKeyFile = findNextKeyFile(directory, readClusterConfig(options))
  runAsOwner(directory, () => loadOrCreateKey(nextKeyFile, CLUSTER_KEY_BYTES))
  return { nextKeyFile }
}

/**
 * Encrypts what the controllers share under the next key. A run after an interruption completes it. Returns the controllers that do not run,
 * and need the key before they start.
 * @throws DirectoryLockedError while the controller of the directory runs, DataDirectoryError if another one runs that lacks the next key
 */
export async function completeRekey(options: DirectoryOptions): Promise<{ readonly stopped: readonly string[] }> {
  const { directory } = options
  return withLockedDirectory(directory, async () => {
    const config = readClusterConfig(options)
    const hasNext = existsSync(findNextKeyFile(directory, config))
    return withController(options, config, async (session) => {
      const cluster = session.controller.cluster as Cluster
      // Otherwise the key was taken by an earlier run, or by the start of this one.
      if (cluster.keys.nextId !== undefined) await replaceKey(session, cluster)
      else if (!hasNext && (await cluster.snapshots.haveNewestKey()))
        throw new DataDirectoryError('NO_NEXT_KEY', 'there is no next cluster key', 'controller cluster rekey')
      await cluster.snapshots.replaceAll()
      const others = cluster.nodes.list().filter(({ name, isLive }) => name !== cluster.name && !isLive)
      return { stopped: others.map(({ name }) => name) }
    })
  })
}

async function replaceKey({ controller, context, recordChange }: CommandSession, cluster: Cluster): Promise<void> {
  const { directory, entities } = controller
  const { keys, files, nodes, commitLog } = cluster
  const lacking = nodes
    .list()
    .filter(({ name, isLive, details }) => isLive && name !== cluster.name && details.nextKey !== keys.nextId)
  if (lacking.length > 0)
    throw new DataDirectoryError(
      'KEY_NOT_COPIED',
      `${lacking.map(({ name }) => name).join(', ')} would not be able to read the log under the next cluster key`,
      'copy cluster.key.next into the data directories of these controllers, by a safe way and for their accounts only, or stop them',
    )
  keys.useNext()
  commitLog.proveKey(readLogStart(getDataPaths(directory).database).network)
  await context.write((tx) => files.encryptAgain(entities, tx))
  await recordChange('update', 'key')
}

/** The file of the next key, which does not exist unless that is another one than the current. @throws KeyFileError if the directory has no cluster key to be replaced */
function findNextKeyFile(directory: string, config: Config): string {
  const { clusterKeyFile } = findLogPlace(directory, config) as LogPlace
  discardTakenKey(directory, clusterKeyFile)
  return nameNextKey(clusterKeyFile)
}
