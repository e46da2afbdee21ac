// The first start of a data directory: keys, certificates, database, settings and the first administrator.
import { existsSync, readdirSync } from 'node:fs'
import { firstAdministrator, recoverAdministrator } from './auth/recovery.ts'
import { SessionTokens } from './auth/session-tokens.ts'
import { writeBootstrap } from './client/bootstrap.ts'
import type { Clock } from './clock.ts'
import { advertisedAddress, certificateHosts, configFile, type Overrides, readConfig } from './config.ts'
import type { Context } from './context.ts'
import { dataPaths, openController } from './controller.ts'
import { silentLog } from './log.ts'
import { Authority } from './pki/authority.ts'
import { loadOrCreateKey, makePrivateDirectory, writePrivateFile } from './pki/files.ts'
import { enrollments } from './resources/enrollments.ts'
import { identities } from './resources/identities.ts'
import { AUDIT_KEY_BYTES } from './store/audit.ts'
import { lockDirectory } from './store/dialects/sqlite/directory-lock.ts'
import { insert, newEntity, removeIn } from './store/entities.ts'

// Long enough for somebody who starts a controller to copy it, too short to be found in an old terminal.
const BOOTSTRAP_LIFETIME = 60 * 60 * 1000
const DEFAULT_ADMIN = 'Default Admin'

export interface Administrator {
  readonly username: string
  readonly password: string
}

export interface InitialiseOptions {
  readonly directory: string
  /** Settings that the new `config.yaml` gets in place of the defaults. */
  readonly settings: Overrides
  readonly clock: Clock
  /** Signs in at once with this; without it the first administrator is made by a bootstrap token. */
  readonly administrator?: Administrator
}

/** The settings file is written last: where it is, everything is. */
export function isInitialised(directory: string): boolean {
  return existsSync(dataPaths(directory).config)
}

/** A directory that holds other things is not taken over. */
export function isUsable(directory: string): boolean {
  if (!existsSync(directory)) return true
  const own = new Set([
    'controller.db',
    'controller.db-wal',
    'controller.db-shm',
    'lock.db',
    'lock.db-journal',
    'pki',
    'token.key',
    'audit.key',
  ])
  return readdirSync(directory).every((entry) => own.has(entry))
}

/**
 * Makes a data directory. One that was begun and not finished is completed. Returns the files it wrote.
 * @throws ConfigError, DirectoryLocked
 */
export async function initialise({ directory, settings, clock, administrator }: InitialiseOptions): Promise<string[]> {
  const paths = dataPaths(directory)
  const config = readConfig(undefined, {}, settings)
  makePrivateDirectory(directory)
  const unlock = lockDirectory(directory)
  try {
    const written: string[] = []
    if (!Authority.exists(paths.pki)) written.push(...Authority.make(paths.pki, certificateHosts(config), clock.now()))
    SessionTokens.open(paths.tokenKey)
    // Only with a new database: records that an earlier key sealed would look forged under a new one.
    if (!existsSync(paths.database)) loadOrCreateKey(paths.auditKey, AUDIT_KEY_BYTES)
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      await makeFirstAdministrator(controller.context({ kind: 'system' }), administrator)
    } finally {
      await controller.close()
    }
    writePrivateFile(paths.config, configFile(settings))
    return [paths.config, paths.database, paths.tokenKey, paths.auditKey, ...written]
  } finally {
    unlock()
  }
}

async function makeFirstAdministrator(context: Context, administrator: Administrator | undefined): Promise<void> {
  await context.write(async (tx) => {
    const found = await tx.db.selectFrom('identities').select('id').where('isDefaultAdmin', '=', 1).executeTakeFirst()
    if (!found) await insert(tx, identities, firstIdentity(tx))
  })
  if (administrator) await recoverAdministrator(context, administrator)
}

function firstIdentity(tx: Pick<Context, 'clock'>) {
  return newEntity(tx, identities, { name: DEFAULT_ADMIN, typeId: 'Default', isAdmin: true, isDefaultAdmin: true })
}

/** A new bootstrap token for the first administrator; an earlier one is worth nothing from then on. */
export async function newBootstrapToken(context: Context): Promise<string> {
  const { controller, clock } = context
  const identityId = await firstAdministrator(context)
  const expiresAt = clock.now() + BOOTSTRAP_LIFETIME
  const { token } = await context.write(async (tx) => {
    const earlier = await tx.db
      .selectFrom('enrollments')
      .select('id')
      .where('identityId', '=', identityId)
      .where('method', '=', 'updb')
      .executeTakeFirst()
    if (earlier) await removeIn(tx, enrollments, earlier.id)
    return controller.enrollments.store(tx, { identityId, method: 'updb', expiresAt })
  })
  return writeBootstrap({
    url: `https://${advertisedAddress(controller.config)}`,
    fingerprint: controller.authority.rootFingerprint,
    token,
  })
}
