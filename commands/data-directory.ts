// Resolves the data directory of a command, and opens it while no controller runs on it.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Flags } from '@oclif/core'
import type { Transport } from '../src/client/transport.ts'
import { rememberDirectory } from './client/known-directories.ts'
import { CommandError, EXIT } from './exit-codes.ts'

export const dataDirectoryFlag = Flags.string({
  description:
    'Data directory of the controller. Default: CONTROLLER_DATA_DIR, else "controller" in the data home of the user.',
  env: 'CONTROLLER_DATA_DIR',
})

/** The directory of the flag, else the default directory of the user. */
export function resolveDataDirectory(flag: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  return resolve(flag ?? join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'controller'))
}

/**
 * Opens a data directory without a running controller. @throws CommandError if it is not a data directory, or another
 * process has it open
 */
export async function openOffline(directory: string, osUser: string): Promise<Transport> {
  await assertInitialized(directory)
  const { openOfflineTransport } = await import('../server/in-process.ts')
  const transport = await openOfflineTransport(directory, osUser, process.env).catch(explainOpenError(directory))
  rememberDirectory(directory, process.env)
  return transport
}

/** Whether the directory is initialized. @throws CommandError if this account cannot read it */
export async function isDirectoryInitialized(directory: string): Promise<boolean> {
  const { isInitialized } = await import('../src/initialize.ts')
  try {
    return isInitialized(directory)
  } catch (error) {
    return explainOpenError(directory)(error as Error)
  }
}

/** @throws CommandError with exit code 5 if the directory is not initialized */
export async function assertInitialized(directory: string): Promise<void> {
  if (await isDirectoryInitialized(directory)) return
  throw new CommandError(EXIT.notFound, 'NO_DATA_DIRECTORY', `${directory} is not the data directory of a controller`, {
    hint: `--data-dir with another directory, or controller init --data-dir ${directory}`,
  })
}

const LOCKED_HINT = 'omit --offline to use the running controller, or stop it first'

/** Exit codes by the code of a DataDirectoryError. */
const DIRECTORY_EXITS: Readonly<Record<string, number>> = {
  NOT_EMPTY: EXIT.conflict,
  NOT_PRIVATE: EXIT.notPermitted,
  FOREIGN_OWNER: EXIT.notPermitted,
  LOCK_FAILED: EXIT.notPermitted,
  DATABASE_MISSING: EXIT.notFound,
}

/**
 * Returns a handler that reports why a directory could not be opened. @throws CommandError with the reason and a hint
 */
export function explainOpenError(directory: string, whenLocked = LOCKED_HINT) {
  return (error: Error): never => {
    // By name, because the server is bundled separately: its classes are not those of the command line.
    if (error.name === 'DirectoryLockedError') {
      throw new CommandError(EXIT.tryLater, 'DIRECTORY_LOCKED', error.message, {
        hint: whenLocked,
      })
    }
    if (error.name === 'KeyFileError') throw new CommandError(EXIT.failed, 'KEY_FILE_UNUSABLE', error.message)
    if (error.name === 'DataDirectoryError') {
      const { code, remedy } = error as Error & { code: string; remedy: string }
      throw new CommandError(DIRECTORY_EXITS[code] ?? EXIT.failed, code, error.message, { hint: remedy })
    }
    if ((error as { code?: unknown }).code === 'STORAGE_UNAVAILABLE') {
      const message = `the database of ${directory} cannot be used: ${(error.cause as Error).message}`
      throw new CommandError(EXIT.failed, 'STORAGE_UNAVAILABLE', message, {
        hint: `make sure that its disk has space and is writable, then: controller db check --data-dir ${directory}`,
      })
    }
    if (error.name === 'ConfigError') {
      throw new CommandError(EXIT.usage, 'INVALID_SETTING', error.message, { hint: `edit config.yaml in ${directory}` })
    }
    throw error
  }
}
