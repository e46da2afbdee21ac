// Opens the controller of a data directory: its log, its database with the schema that the program needs, its keys and certificates.
import { ApiSessionTokens } from '../authentication/api-sessions/api-session-tokens.ts'
import type { Log } from '../foundation/log.ts'
import { Backups } from '../maintenance/backup/backups.ts'
import { Authority } from '../pki/authority.ts'
import { loadKey } from '../pki/files.ts'
import { getDataPaths, requireDatabase, runAsOwner } from '../settings/data-directory.ts'
import { CLUSTER_CHANGE } from '../storage/audit/audit.ts'
import { AUDIT_KEY_BYTES, AuditSealer } from '../storage/audit/audit-seal.ts'
import { Cluster } from '../storage/cluster/cluster.ts'
import { requireEqualSettings } from '../storage/cluster/equal-settings.ts'
import { findLogPlace } from '../storage/cluster/log-place.ts'
import { describeRebuild, type KeptRebuild } from '../storage/cluster/rebuild.ts'
import { ROTATION_END } from '../storage/cluster/shared-files.ts'
import { MIGRATIONS } from '../storage/migrate.ts'
import { finishRotation, isRotationUnfinished, loadSecretCipher } from '../storage/secrets/key-files.ts'
import { reencryptSecrets, requireSecretsKey } from '../storage/secrets/stored-secrets.ts'
import { crash, openSqliteStore } from '../storage/sqlite/sqlite-store.ts'
import { assembleController } from './assemble-controller.ts'
import type { Controller } from './controller.ts'
import type { OpenOptions } from './open-options.ts'

// Of the time in which a request has to be responded to: how long its change may wait for its turn.
const MAX_QUEUE_SHARE = 0.5

/**
 * Opens the controller of a data directory that was initialized. The caller holds the directory's lock.
 * @throws DataDirectoryError, KeyFileError, and STORAGE_UNAVAILABLE if the database cannot be used; then nothing stays open
 */
export async function openController(options: OpenOptions): Promise<Controller> {
  const { directory, config, log, fail, followsDatabaseTime = true } = options
  const paths = getDataPaths(directory)
  requireDatabase(directory)
  const auditSealer = runAsOwner(directory, () => new AuditSealer(loadKey(paths.auditKey, AUDIT_KEY_BYTES)))
  const place = findLogPlace(directory, config)
  const { migrations = MIGRATIONS, isRebuilt = true } = options
  const clusterParts = {
    ...{ directory, clock: options.clock, followsDatabaseTime, log, fail: fail ?? crash, migrations },
    isRebuilt,
  }
  const cluster = place && (await Cluster.connect(place, clusterParts))
  const clock = cluster?.clock ?? options.clock
  const startedAt = clock.now()
  const backups = new Backups({ directory, config, clock, log })
  const beforeMigration = () => backUpBeforeMigration(backups, log)
  await cluster
    ?.upgradeSchema({ migrations, isWaiting: options.waitsForOlder ?? false, beforeMigration })
    .catch(async (error: unknown) => {
      await cluster.close()
      throw error
    })
  const commitLog = options.commitLog ?? cluster?.commitLog
  const store = await openSqliteStore(paths.database, clock, {
    auditSealer,
    reportError: (error) => log.error({ err: error }, 'the store met a problem'),
    ...(cluster ? { fail: (error) => cluster.fail(error) } : fail ? { fail } : {}),
    maxQueueLength: config['limits.writeQueue'],
    maxQueueMs: config['limits.answerTime'] * MAX_QUEUE_SHARE,
    beforeMigration,
    ...(commitLog ? { log: commitLog } : {}),
    migrations,
    ...(cluster ? { observer: cluster.comparison } : {}),
  })
  try {
    // Before anything is read into memory, and before the keys and certificates that the controllers share are.
    await cluster?.join(store)
    await cluster?.files.rebuild(store.db)
    if (cluster && !options.hasOtherSettings) await requireEqualSettings(store.db, config)
    const { authority, tokens, secretCipher } = runAsOwner(directory, () => ({
      authority: Authority.load(paths.pki, (work) => runAsOwner(directory, work)),
      tokens: ApiSessionTokens.open(paths.tokenKey),
      secretCipher: loadSecretCipher(paths),
    }))
    cluster?.files.onChange((names) => followSharedFiles(names, authority, fail ?? crash))
    await requireSecretsKey(store.db, secretCipher, paths.secretsKey)
    const controller = await assembleController(
      { ...options, clock },
      {
        ...{ startedAt, authority, tokens, store, cluster, secretCipher, backups },
        isShared: commitLog?.isDeciding === true,
      },
    )
    if (isRotationUnfinished(paths)) {
      const context = controller.contexts.create({ kind: 'system' })
      await reencryptSecrets(context, secretCipher)
      if (cluster) await context.write((tx) => cluster.files.store(controller.entities, tx, ROTATION_END))
      else runAsOwner(directory, () => finishRotation(paths))
    }
    if (cluster?.rebuild) await reportRebuild(controller, cluster.rebuild)
    cluster?.follow(store)
    return controller
  } catch (error) {
    await store.close()
    await cluster?.close()
    throw error
  }
}

/** The operator finds it in the log, and everyone in the audit. */
async function reportRebuild({ contexts, cluster, log }: Controller, rebuild: KeptRebuild): Promise<void> {
  const { folder, isRestore, lostRecords } = rebuild
  const reason = describeRebuild(rebuild)
  if (lostRecords.count > 0 && !isRestore) log.error({ folder, lostRecords }, reason)
  else log.warn({ folder }, reason)
  const { caller, origin } = contexts.create({ kind: 'system' })
  const event = {
    ...CLUSTER_CHANGE,
    operation: 'update',
    id: String(cluster?.name),
    method: 'rebuild',
    reason,
  } as const
  await contexts.recordEvent(caller, origin, {
    ...event,
    ...(lostRecords.count > 0 ? { count: lostRecords.count } : {}),
  })
}

/** Reads files again that another controller, or this one, has changed for all. */
function followSharedFiles(names: readonly string[], authority: Authority, fail: (error: Error) => void): void {
  if (names.some((name) => name.startsWith('pki/'))) authority.reload()
  if (names.some((name) => !name.startsWith('pki/')))
    fail(new Error('the keys of the network were replaced, and are read only at the start'))
}

/** A migration cannot be undone, but the data before it can be restored. */
async function backUpBeforeMigration(backups: Backups, log: Log): Promise<void> {
  const { file } = await backups.create('migration')
  log.info({ file }, 'made a backup before the migration of the database')
}
