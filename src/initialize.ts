// The first start of a data directory: keys, certificates, database, settings and the first administrator.
import { existsSync } from 'node:fs'
import { encodeBootstrap } from './authentication/administrators/bootstrap-codec.ts'
import { endBootstrapTokens } from './authentication/administrators/bootstrap-tokens.ts'
import { findFirstAdministrator, recoverAdministrator } from './authentication/administrators/recovery.ts'
import { ApiSessionTokens } from './authentication/api-sessions/api-session-tokens.ts'
import type { Controller } from './controller/controller.ts'
import { openController } from './controller/open-controller.ts'
import { enrollments } from './definitions/resources/enrollments.ts'
import { identities } from './definitions/resources/identities.ts'
import type { Clock } from './foundation/clock.ts'
import { silentLog } from './foundation/log.ts'
import { quoteShellWord } from './foundation/shell-words.ts'
import { Authority } from './pki/authority.ts'
import { createPrivateDirectory, loadOrCreateKey, writePrivateFile } from './pki/files.ts'
import { getAdvertisedAddress, listCertificateHosts } from './settings/addresses.ts'
import { readConfig } from './settings/config.ts'
import {
  DataDirectoryError,
  getDataPaths,
  hasDatabase,
  isExistingPath,
  isRestoreUnfinished,
  requireDatabase,
  requireNothingElse,
  runAsOwner,
} from './settings/data-directory.ts'
import { requireNativeLibraries } from './settings/native-libraries.ts'
import { renderConfigFile } from './settings/render-config.ts'
import type { Overrides } from './settings/settings.ts'
import { AUDIT_KEY_BYTES } from './storage/audit/audit-seal.ts'
import { newEntity } from './storage/entities/entities.ts'
import { SECRETS_KEY_BYTES } from './storage/secrets/secret-cipher.ts'
import { lockDirectory } from './storage/sqlite/directory-lock.ts'
import { createDatabase } from './storage/sqlite/maintenance.ts'
import type { Context } from './storage/transactions/context.ts'

// Long enough for the person who starts a controller to copy it, too short to be useful in an old terminal.
const BOOTSTRAP_LIFETIME_MS = 60 * 60 * 1000
const DEFAULT_ADMIN = 'Default Admin'

export interface Administrator {
  readonly username: string
  readonly password: string
}

export interface InitializeOptions {
  readonly directory: string
  /** Settings that the new `config.yaml` gets in place of the defaults. */
  readonly settings: Overrides
  readonly clock: Clock
  /** The credentials of the first administrator; without them, a bootstrap token creates it. */
  readonly administrator?: Administrator
}

/**
 * Whether a data directory is initialized. The settings file is written last, so its presence shows that everything else
 * exists.
 * @throws DataDirectoryError if this account cannot enter the directory
 */
export function isInitialized(directory: string): boolean {
  return isExistingPath(getDataPaths(directory).config) || isRestoreUnfinished(directory)
}

/** @throws DataDirectoryError if the directory is that of a controller */
export function requireUninitialized(directory: string): void {
  if (!isInitialized(directory)) return
  throw new DataDirectoryError(
    'ALREADY_INITIALISED',
    `${directory} is already the data directory of a controller`,
    `controller serve --data-dir ${quoteShellWord(directory)}, or --data-dir with a new directory`,
  )
}

/**
 * Initializes a data directory, or completes an interrupted initialization. Returns the files it wrote.
 * @throws ConfigError, DirectoryLockedError, DataDirectoryError
 */
export async function initializeDirectory({
  directory,
  settings,
  clock,
  administrator,
}: InitializeOptions): Promise<string[]> {
  const paths = getDataPaths(directory)
  const config = readConfig(undefined, {}, settings)
  requireNothingElse(directory)
  await requireNativeLibraries()
  createPrivateDirectory(directory)
  const unlock = lockDirectory(directory)
  try {
    // Another process may have made it since.
    requireUninitialized(directory)
    await prepareDatabase(directory, clock)
    const written = runAsOwner(directory, () => {
      ApiSessionTokens.open(paths.tokenKey)
      return Authority.exists(paths.pki) ? [] : Authority.make(paths.pki, listCertificateHosts(config), clock.now())
    })
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      await createFirstAdministrator(controller, administrator)
    } finally {
      await controller.close()
    }
    runAsOwner(directory, () => writePrivateFile(paths.config, renderConfigFile(settings)))
    return [paths.config, paths.database, paths.tokenKey, paths.auditKey, paths.secretsKey, ...written]
  } finally {
    unlock()
  }
}

/** The database comes before the keys, so that keys without a database are those of one that was lost. */
async function prepareDatabase(directory: string, clock: Clock): Promise<void> {
  const { database, auditKey, secretsKey, pki } = getDataPaths(directory)
  if (existsSync(pki)) requireDatabase(directory)
  // Only with a new database: records that an earlier key sealed would look forged under a new one, and secrets that an
  // earlier key encrypted would be lost.
  if (!hasDatabase(directory)) {
    runAsOwner(directory, () => {
      loadOrCreateKey(auditKey, AUDIT_KEY_BYTES)
      loadOrCreateKey(secretsKey, SECRETS_KEY_BYTES)
    })
  }
  await createDatabase(database, clock)
}

async function createFirstAdministrator(
  controller: Controller,
  administrator: Administrator | undefined,
): Promise<void> {
  const context = controller.contexts.create({ kind: 'system' })
  await context.write(async (tx) => {
    const administratorRow = await tx.db
      .selectFrom('identities')
      .select('id')
      .where('isDefaultAdmin', '=', 1)
      .executeTakeFirst()
    if (!administratorRow) await controller.entities.insert(tx, identities, newFirstAdministrator(tx))
  })
  if (administrator) await recoverAdministrator(controller, context, administrator)
}

function newFirstAdministrator(tx: Pick<Context, 'clock'>) {
  return newEntity(tx, identities, { name: DEFAULT_ADMIN, typeId: 'Default', isAdmin: true, isDefaultAdmin: true })
}

/** A new bootstrap token for the first administrator; earlier ones end. */
export async function createBootstrapToken(controller: Controller): Promise<string> {
  const context = controller.contexts.create({ kind: 'system' })
  const identityId = await findFirstAdministrator(context)
  const expiresAt = context.clock.now() + BOOTSTRAP_LIFETIME_MS
  const { token } = await context.write(async (tx) => {
    await endBootstrapTokens(controller.entities, tx)
    // An identity has one outstanding enrollment of a method, and this one must succeed.
    const outstanding = await tx.db
      .selectFrom('enrollments')
      .select('id')
      .where('identityId', '=', identityId)
      .where('method', '=', 'updb')
      .executeTakeFirst()
    if (outstanding) await controller.entities.removeInTransaction(tx, enrollments, outstanding.id)
    return controller.enrollments.store(tx, { identityId, method: 'updb', expiresAt, isBootstrap: true })
  })
  return encodeBootstrap({
    url: `https://${getAdvertisedAddress(controller.config)}`,
    fingerprint: controller.authority.rootFingerprint,
    token,
  })
}
