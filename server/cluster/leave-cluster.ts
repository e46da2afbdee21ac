// Takes a directory out of its cluster: its rows serve alone from then on, and the others do not expect it any more.
import { rmSync } from 'node:fs'
import { controllers } from '../../src/definitions/resources/controllers.ts'
import { DataDirectoryError, getDataPaths, runAsOwner } from '../../src/settings/data-directory.ts'
import { editConfigFile, requireEditable } from '../../src/settings/edit-config-file.ts'
import type { Config, SettingKey } from '../../src/settings/settings.ts'
import { findLogPlace, type LogPlace } from '../../src/storage/cluster/log-place.ts'
import { withLogConnection } from '../../src/storage/postgres/log-connection.ts'
import { dropLog } from '../../src/storage/postgres/log-tables.ts'
import { setNetwork } from '../../src/storage/sqlite/log-start.ts'
import type { Context } from '../../src/storage/transactions/context.ts'
import { type DirectoryOptions, readClusterConfig, withController, withLockedDirectory } from './cluster-directory.ts'

const CLUSTER_SETTINGS = [
  'cluster.database',
  'cluster.name',
  'cluster.passwordFile',
  'cluster.caFile',
  'cluster.tls',
  'cluster.keyFile',
  'cluster.lease',
] as const satisfies readonly SettingKey[]

export interface LeaveOptions extends DirectoryOptions {
  /** Also deletes the log, which no other controller may use any more. */
  readonly isLast: boolean
  /** Whether the database is lost: the rows are those of the last contact with it. */
  readonly isDatabaseLost: boolean
}

/** @throws DirectoryLockedError while it runs, DataDirectoryError, ConfigError, LogConnectionError, LogDatabaseError */
export async function leaveCluster(options: LeaveOptions): Promise<void> {
  const { directory, isLast, isDatabaseLost } = options
  const paths = getDataPaths(directory)
  await withLockedDirectory(directory, async () => {
    const config = readClusterConfig(options)
    for (const path of [paths.config, paths.clusterKey]) requireEditable(path)
    // Without the database, the key is not needed either: a backup does not hold it.
    const place = isDatabaseLost ? undefined : findLogPlace(directory, config)
    if (place) await takeLeave(options, config, place)
    runAsOwner(directory, () => {
      editConfigFile(paths.config, Object.fromEntries(CLUSTER_SETTINGS.map((key) => [key, undefined])))
      // The others go on using it.
      rmSync(paths.clusterKey, { force: true })
    })
    setNetwork(paths.database, '')
    if (isLast && place) await withLogConnection(place.database, (connection) => connection.run(dropLog))
  })
}

/** Requires that no other controller uses the log. @throws DataDirectoryError, and as `leaveCluster` does */
export async function requireLast(options: DirectoryOptions): Promise<void> {
  const { directory } = options
  await withLockedDirectory(directory, async () => {
    const config = readClusterConfig(options)
    const place = findLogPlace(directory, config)
    if (!place) return
    // The rows of the directory may be of a time before others joined or left.
    await withController(options, config, async ({ context }) =>
      requireNoOthers(listOthers(await listNodes(context), place.name)),
    )
  })
}

interface NodeRow {
  readonly id: string
  readonly node: string | null
}

function listNodes({ db }: Pick<Context, 'db'>): Promise<NodeRow[]> {
  return db.selectFrom('controllers').select(['id', 'node']).where('node', 'is not', null).execute()
}

const listOthers = (nodes: readonly NodeRow[], name: string) =>
  nodes.flatMap(({ node }) => (node === null || node === name ? [] : [node]))

/** @throws DataDirectoryError */
function requireNoOthers(others: readonly string[]): void {
  if (others.length === 0) return
  throw new DataDirectoryError(
    'OTHER_CONTROLLERS',
    `the log is in use by ${others.join(', ')}`,
    'let each of them leave first, and remove those that are gone for ever: controller node delete NAME; or leave without --drop-log',
  )
}

/** Follows the log to its end, and removes the record of this controller. */
function takeLeave(options: LeaveOptions, config: Config, { name }: LogPlace): Promise<void> {
  return withController(options, config, async ({ controller, context, recordChange }) => {
    const { cluster, entities } = controller
    const nodes = await listNodes(context)
    const others = listOthers(nodes, name)
    if (options.isLast) requireNoOthers(others)
    await recordChange('delete', name)
    cluster?.nodes.leave()
    if (others.length === 0) return
    const ownIds = nodes.flatMap(({ id, node }) => (node === name ? [id] : []))
    await context.write(async (tx) => {
      await entities.removeAllIn(tx, controllers, ownIds, 'none')
    })
  })
}
