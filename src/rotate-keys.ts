// New keys for a data directory on which no controller runs: the key of the secrets at rest, that of TLS tickets, and that of session tokens.
import { randomBytes } from 'node:crypto'
import { SESSION_TOKEN_KEY_BYTES } from './authentication/api-sessions/api-session-tokens.ts'
import type { Controller } from './controller/controller.ts'
import { openController } from './controller/open-controller.ts'
import type { Clock } from './foundation/clock.ts'
import { silentLog } from './foundation/log.ts'
import { loadKey, writePrivateFile } from './pki/files.ts'
import { readConfig } from './settings/config.ts'
import { DataDirectoryError, getDataPaths, runAsOwner } from './settings/data-directory.ts'
import { KEY_ROTATION } from './storage/audit/audit.ts'
import type { FileContents } from './storage/cluster/shared-files.ts'
import { beginRotation, isRotationUnfinished } from './storage/secrets/key-files.ts'
import { SECRETS_KEY_BYTES } from './storage/secrets/secret-cipher.ts'
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
 * Encrypts every secret under a new key. A rotation of that key that a crash interrupts is finished when the directory is next opened; sessions
 * that it has not ended remain.
 * @returns how many API sessions ended
 * @throws DirectoryLocked while a controller runs, ConfigError, KeyFileError
 */
export async function rotateKeys(options: RotateKeysOptions): Promise<number> {
  const { directory, osUser, hasSessions } = options
  const paths = getDataPaths(directory)
  const unlock = lockDirectory(directory)
  try {
    if (isRotationUnfinished(paths)) await withController(options, async () => {})
    if (isInCluster(options)) await withController(options, shareNewKey)
    else runAsOwner(directory, () => beginRotation(paths))
    return await withController(options, async (controller) => {
      const { contexts, auth, ticketKeys } = controller
      const context = contexts.create({ kind: 'local-operator', osUser })
      await contexts.recordEvent(context.caller, context.origin, { ...KEY_ROTATION, id: 'secrets' })
      // An attacker who has the former key of secrets could read it.
      await ticketKeys.replace(context)
      if (!hasSessions) return 0
      // First the sessions: their tokens are derived from the key, so none may outlive it.
      const count = await auth.apiSessions.termination.endAll(context)
      const tokenKey = randomBytes(SESSION_TOKEN_KEY_BYTES)
      if (controller.cluster) await shareFiles(controller, new Map([['token.key', tokenKey]]))
      else runAsOwner(directory, () => writePrivateFile(paths.tokenKey, tokenKey))
      await contexts.recordEvent(context.caller, context.origin, { ...KEY_ROTATION, id: 'session-tokens' })
      return count
    })
  } finally {
    unlock()
  }
}

function isInCluster({ directory, env }: RotateKeysOptions): boolean {
  return readConfig(getDataPaths(directory).config, env)['cluster.database'] !== undefined
}

/** Makes a new key of secrets that of all controllers, and keeps the previous one until no secret needs it. */
async function shareNewKey(controller: Controller): Promise<void> {
  const others = controller.cluster?.nodes
    .list()
    .filter(({ isLive, name }) => isLive && name !== controller.cluster?.name)
  if (others && others.length > 0)
    throw new DataDirectoryError(
      'OTHER_CONTROLLERS',
      `${others.map(({ name }) => name).join(', ')} would go on with the former keys`,
      'stop the other controllers; they have the new keys once they start again',
    )
  const { secretsKey } = getDataPaths(controller.directory)
  const previous = loadKey(secretsKey, SECRETS_KEY_BYTES)
  const next = randomBytes(SECRETS_KEY_BYTES)
  await shareFiles(
    controller,
    new Map([
      ['secrets.key.previous', previous],
      ['secrets.key', next],
    ]),
  )
}

async function shareFiles({ cluster, contexts, entities }: Controller, contents: FileContents): Promise<void> {
  await contexts.create({ kind: 'system' }).write(async (tx) => cluster?.files.store(entities, tx, contents))
}

/** Opens the controller, which finishes the rotation, and closes it after `work`. */
async function withController<T>(
  { directory, env, clock }: RotateKeysOptions,
  work: (controller: Controller) => Promise<T>,
): Promise<T> {
  const config = readConfig(getDataPaths(directory).config, env)
  const controller = await openController({
    ...{ directory, config, clock, log: silentLog },
    // It has new keys when it is opened again.
    fail: () => {},
  })
  try {
    return await work(controller)
  } finally {
    await controller.close()
  }
}
