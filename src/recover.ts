// Restores the access of an administrator, on a data directory without a running controller.
import { type RecoveryResult, recoverAdministrator } from './authentication/administrators/recovery.ts'
import { openController } from './controller/open-controller.ts'
import type { Clock } from './foundation/clock.ts'
import { notFoundError } from './foundation/errors.ts'
import { silentLog } from './foundation/log.ts'
import type { Administrator } from './initialize.ts'
import { readConfig } from './settings/config.ts'
import { getDataPaths } from './settings/data-directory.ts'
import { lockDirectory } from './storage/sqlite/directory-lock.ts'
import type { Context } from './storage/transactions/context.ts'
import { isOneOf } from './storage/untyped.ts'

export interface RecoverOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** The operator, for the audit. */
  readonly osUser: string
  /** The new credentials of the administrator. */
  readonly administrator: Administrator
  /** Id or name of an identity; the first administrator by default. */
  readonly identity?: string
  /** Whether an identity that does not administer becomes an administrator. */
  readonly canPromote: boolean
}

/**
 * Gives an administrator a new username and password, and removes what prevented it from signing in.
 * @throws DirectoryLockedError while a controller runs, ConfigError, and the errors of `recoverAdministrator`
 */
export async function recoverDirectory(options: RecoverOptions): Promise<RecoveryResult> {
  const { directory, env, clock, osUser, administrator, identity, canPromote } = options
  const unlock = lockDirectory(directory)
  try {
    const config = readConfig(getDataPaths(directory).config, env)
    const controller = await openController({ directory, config, clock, log: silentLog })
    try {
      const context = controller.contexts.create({ kind: 'local-operator', osUser })
      const identityId = identity === undefined ? undefined : await resolveIdentity(context, identity)
      return await recoverAdministrator(controller, context, administrator, identityId, canPromote)
    } finally {
      await controller.close()
    }
  } finally {
    unlock()
  }
}

/** By id first, then by name. @throws NOT_FOUND */
async function resolveIdentity({ db }: Context, idOrName: string): Promise<string> {
  const rows = await db
    .selectFrom('identities')
    .select('id')
    .where((eb) => eb.or([isOneOf(db, 'id', [idOrName]), isOneOf(db, 'name', [idOrName])]))
    .execute()
  const row = rows.find(({ id }) => id === idOrName) ?? rows[0]
  if (!row) throw notFoundError('identity', idOrName)
  return row.id
}
