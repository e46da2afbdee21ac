// New keys for a data directory on which no controller runs: the key of the secrets at rest, that of TLS tickets, and that of session tokens.
import { SESSION_TOKEN_KEY_BYTES } from './authentication/api-sessions/api-session-tokens.ts'
import { type Controller, openController } from './controller.ts'
import type { Clock } from './foundation/clock.ts'
import { silentLog } from './foundation/log.ts'
import { replaceKey } from './pki/files.ts'
import { readConfig } from './settings/config.ts'
import { getDataPaths, runAsOwner } from './settings/data-directory.ts'
import { KEY_ROTATION } from './storage/audit/audit.ts'
import { beginRotation, isRotationUnfinished } from './storage/secrets/key-files.ts'
import { lockDirectory } from './storage/sqlite/directory-lock.ts'

export interface RotateKeysOptions {
  readonly directory: string
  readonly env: NodeJS.ProcessEnv
  readonly clock: Clock
  /** The account of the operator, for the audit. */
  readonly osUser: string
  /** Also ends every API session, and replaces the key that their tokens are derived from. */
  readonly hasSessions: boolean
}

/**
 * Encrypts every secret under a new key. A rotation that a crash interrupts is finished when the directory is next opened.
 * @returns how many API sessions ended
 * @throws DirectoryLocked while a controller runs, ConfigError, KeyFileError
 */
export async function rotateKeys(options: RotateKeysOptions): Promise<number> {
  const { directory, osUser, hasSessions } = options
  const paths = getDataPaths(directory)
  const unlock = lockDirectory(directory)
  try {
    if (isRotationUnfinished(paths)) await withController(options, async () => {})
    runAsOwner(directory, () => beginRotation(paths))
    return await withController(options, async ({ contexts, auth, ticketKeys }) => {
      const context = contexts.create({ kind: 'local-operator', osUser })
      await contexts.recordEvent(context.caller, context.origin, { ...KEY_ROTATION, id: 'secrets' })
      // An attacker who has the former key of secrets could read it.
      await ticketKeys.replace(context)
      if (!hasSessions) return 0
      // First the sessions: their tokens are derived from the key, so none may outlive it.
      const count = await auth.apiSessions.termination.endAll(context)
      runAsOwner(directory, () => replaceKey(paths.tokenKey, SESSION_TOKEN_KEY_BYTES))
      await contexts.recordEvent(context.caller, context.origin, { ...KEY_ROTATION, id: 'session-tokens' })
      return count
    })
  } finally {
    unlock()
  }
}

/** Opens the controller, which finishes the rotation, and closes it after `work`. */
async function withController<T>(
  { directory, env, clock }: RotateKeysOptions,
  work: (controller: Controller) => Promise<T>,
): Promise<T> {
  const config = readConfig(getDataPaths(directory).config, env)
  const controller = await openController({ directory, config, clock, log: silentLog })
  try {
    return await work(controller)
  } finally {
    await controller.close()
  }
}
