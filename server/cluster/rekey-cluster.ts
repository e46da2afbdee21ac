// Replaces the cluster key, while the controllers run that have the next one beside it: no other way than the operator's leads there.
import { existsSync } from 'node:fs'
import { type Controller, openController } from '../../src/controller.ts'
import type { Clock } from '../../src/foundation/clock.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { loadOrCreateKey } from '../../src/pki/files.ts'
import { readConfig } from '../../src/settings/config.ts'
import { DataDirectoryError, getDataPaths, runAsOwner } from '../../src/settings/data-directory.ts'
import { CLUSTER_CHANGE } from '../../src/storage/audit/audit.ts'
import type { Cluster } from '../../src/storage/cluster/cluster.ts'
import { nameNextKey } from '../../src/storage/cluster/cluster-keys.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { CLUSTER_KEY_BYTES } from '../../src/storage/postgres/log-cipher.ts'
import { lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { readLogStart } from '../../src/storage/sqlite/log-start.ts'

export interface RekeyOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  readonly osUser: string
}

/**
 * Makes the next key, unless it was made before. Returns its file, which each other controller needs beside its own key. The controller of
 * the directory may run.
 * @throws DataDirectoryError, ConfigError, KeyFileError
 */
export function prepareRekey({ directory, env }: RekeyOptions): { readonly nextKeyFile: string } {
  const nextKeyFile = nameNextKey(requirePlace(directory, env).clusterKeyFile)
  runAsOwner(directory, () => loadOrCreateKey(nextKeyFile, CLUSTER_KEY_BYTES))
  return { nextKeyFile }
}

/**
 * Encrypts what the controllers share under the next key. A run after an interruption completes it. Returns the controllers that do not run,
 * and need the key before they start.
 * @throws DirectoryLockedError while the controller of the directory runs, DataDirectoryError if another one runs that lacks the next key
 */
export async function completeRekey(options: RekeyOptions): Promise<{ readonly stopped: readonly string[] }> {
  const { directory, env, clock, osUser } = options
  const unlock = lockDirectory(directory)
  try {
    const { clusterKeyFile } = requirePlace(directory, env)
    const hasNext = existsSync(nameNextKey(clusterKeyFile))
    const config = readConfig(getDataPaths(directory).config, env)
    const controller = await openController({ ...{ directory, config, clock, log: silentLog }, hasOtherSettings: true })
    try {
      const cluster = controller.cluster as Cluster
      // Otherwise the key was taken by an earlier run, or by the start of this one.
      if (cluster.keys.nextId !== undefined) await replaceKey(controller, cluster, osUser)
      else if (!hasNext && (await cluster.snapshots.isReadable()))
        throw new DataDirectoryError('NO_NEXT_KEY', 'there is no next cluster key', 'controller cluster rekey')
      await cluster.snapshots.replaceAll()
      const others = cluster.nodes.list().filter(({ name, isLive }) => name !== cluster.name && !isLive)
      return { stopped: others.map(({ name }) => name) }
    } finally {
      await controller.close()
    }
  } finally {
    unlock()
  }
}

async function replaceKey(
  { contexts, entities, directory }: Controller,
  cluster: Cluster,
  osUser: string,
): Promise<void> {
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
  const context = contexts.create({ kind: 'local-operator', osUser })
  keys.useNext()
  commitLog.proveKey(readLogStart(getDataPaths(directory).database).network)
  await context.write((tx) => files.encryptAgain(entities, tx))
  const event = { ...CLUSTER_CHANGE, operation: 'update', id: 'key' } as const
  await contexts.recordEvent(context.caller, context.origin, event)
}

function requirePlace(directory: string, env: NodeJS.ProcessEnv): LogPlace {
  const place = findLogPlace(directory, readConfig(getDataPaths(directory).config, env))
  if (place) return place
  throw new DataDirectoryError('NO_CLUSTER', `${directory} is of no cluster`, 'controller cluster init')
}
