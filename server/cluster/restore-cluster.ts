// Restores a backup in a cluster: its rows become those of all controllers, by way of the log, and of the directory first.
//
// An interruption before they are in the log leaves everything as it was. After it, every controller rebuilds its rows at its next start,
// the one of the directory, too.
import { silentLog } from '../../src/foundation/log.ts'
import { BackupError } from '../../src/maintenance/backup/backup-error.ts'
import type { BackupSource } from '../../src/maintenance/backup/read-backup.ts'
import { type RestoreReport, withUnpackedBackup } from '../../src/maintenance/backup/restore-backup.ts'
import { readConfig } from '../../src/settings/config.ts'
import { getDataPaths, runAsOwner } from '../../src/settings/data-directory.ts'
import { ClusterKeys } from '../../src/storage/cluster/cluster-keys.ts'
import { findDifferentSettings, storeEqualSettings } from '../../src/storage/cluster/equal-settings.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { requestRebuild } from '../../src/storage/cluster/rebuild.ts'
import { replaceRowsOfAll } from '../../src/storage/cluster/replace-rows.ts'
import { SharedFiles } from '../../src/storage/cluster/shared-files.ts'
import { withLogConnection } from '../../src/storage/postgres/log-connection.ts'
import { type LogHead, requireClusterKey, requireLog, requireNetwork } from '../../src/storage/postgres/log-tables.ts'
import { readCommitPosition } from '../../src/storage/sqlite/commit-position.ts'
import { readLogStart } from '../../src/storage/sqlite/log-start.ts'
import { type DirectoryOptions, readClusterConfig, withController, withLockedDirectory } from './cluster-directory.ts'

// All commits of days are deleted in one statement.
const RESPONSE_TIMEOUT_MS = 120_000

export interface RestoreClusterOptions extends DirectoryOptions, BackupSource {
  /** Also restores a database that has defects. */
  readonly isForced?: boolean
}

export interface RestoreClusterReport extends RestoreReport {
  /** The controllers that run, and have the restored rows once they were started again. */
  readonly running: readonly string[]
}

/** Whether a directory is that of a controller in a cluster; false if its settings cannot be read. */
export function isOfCluster(directory: string, env: NodeJS.ProcessEnv): boolean {
  try {
    return readConfig(getDataPaths(directory).config, env)['cluster.database'] !== undefined
  } catch {
    // They may be the reason for the restore.
    return false
  }
}

/**
 * The controller of the directory is stopped; the others may run.
 * @throws DirectoryLockedError while it runs, BackupError, DataDirectoryError, ConfigError, KeyFileError, LogConnectionError,
 * LogDatabaseError
 */
export function restoreCluster(options: RestoreClusterOptions): Promise<RestoreClusterReport> {
  const { directory, file, passphrase, isForced = false } = options
  return withLockedDirectory(directory, async () => {
    const place = findLogPlace(directory, readClusterConfig(options)) as LogPlace
    const backup = await withUnpackedBackup({ directory, file, passphrase, isForced }, async (unpacked, folder) => {
      await publishRows(options, place, folder, unpacked.manifest.createdAt)
      return unpacked
    })
    requestRebuild(directory, `the backup of ${backup.manifest.createdAt} was restored`)
    return { ...backup, ...(await takeRows(options, backup.manifest.createdAt)) }
  })
}

/** Makes the rows of an unpacked backup those of the log. */
async function publishRows(
  { directory, clock, file }: RestoreClusterOptions,
  { database, clusterKeyFile }: LogPlace,
  folder: string,
  backupOf: string,
): Promise<void> {
  const keys = new ClusterKeys({ directory, keyFile: clusterKeyFile, log: silentLog })
  const { cipher } = keys
  await withLogConnection({ ...database, responseTimeoutMs: RESPONSE_TIMEOUT_MS }, async (connection) => {
    const head = await connection.run(requireLog)
    requireClusterKey(head, cipher)
    const own = getDataPaths(directory).database
    requireNetwork(head, readLogStart(own).network)
    const { database: databaseFile } = getDataPaths(folder)
    requireBackupOf(head, file, readLogStart(databaseFile).network)
    runAsOwner(directory, () => new SharedFiles(folder, keys.current).replaceUnreadable(databaseFile))
    const last = readCommitPosition(own)
    await replaceRowsOfAll({ connection, cipher, head, databaseFile, backupOf, last, now: clock.now() })
  })
}

/** @throws BackupError unless a backup has the rows of a log */
function requireBackupOf({ network }: LogHead, file: string, networkOfBackup: string): void {
  if (networkOfBackup === network) return
  const reason =
    networkOfBackup === ''
      ? 'was made by a controller that was alone: it has nothing that controllers share'
      : `is of the cluster ${networkOfBackup}, and this directory of ${network}`
  throw new BackupError(
    'OTHER_NETWORK',
    `${file} ${reason}`,
    'restore a backup of this cluster; or begin another cluster with it: stop all controllers; then here controller cluster leave, controller db restore, and controller cluster init with an empty database; the others join that with new directories',
  )
}

/**
 * Has the directory rebuilt from the log, with an audit record of the operator. The settings on which the controllers agree stay those of today:
 * the file of each has them.
 */
function takeRows(
  options: RestoreClusterOptions,
  createdAt: string,
): Promise<Pick<RestoreClusterReport, 'replaced' | 'running'>> {
  const config = readClusterConfig(options)
  return withController(options, config, async ({ controller: { cluster, store }, context, recordChange }) => {
    const differences = await findDifferentSettings(store.db, config)
    if (differences.length > 0) await context.write((tx) => storeEqualSettings(tx, config))
    await recordChange('update', String(cluster?.name), {
      method: 'restore',
      reason: `the backup of ${createdAt} was restored for all controllers`,
    })
    const running = cluster?.listLiveNames().filter((name) => name !== cluster.name) ?? []
    return { replaced: cluster?.rebuild?.folder, running }
  })
}
