// Which data directory a command works on, and how it is opened while no controller runs.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Flags } from '@oclif/core'
import type { Transport } from '../src/client/transport.ts'
import { rememberDirectory } from './client/known-directories.ts'
import { CommandError, EXIT } from './exit-codes.ts'

export const dataDirectoryFlag = Flags.string({
  description:
    'Data directory of the controller; CONTROLLER_DATA_DIR, or "controller" in the data home, unless said otherwise.',
  env: 'CONTROLLER_DATA_DIR',
})

/** The directory that a flag or the environment names, else the one of this user. */
export function resolveDataDirectory(given: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  return resolve(given ?? join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'controller'))
}

/** A way into the directory without a controller. @throws CommandError where it is none, or somebody works on it */
export async function openOffline(directory: string, osUser: string): Promise<Transport> {
  await assertInitialized(directory)
  const { openOfflineTransport: offlineTransport } = await import('../server/in-process.ts')
  const transport = await offlineTransport(directory, osUser, process.env).catch(explainOpenError(directory))
  rememberDirectory(directory, process.env)
  return transport
}

/** Whether a controller was made in the directory. @throws CommandError if this account cannot enter it */
export async function isInitialised(directory: string): Promise<boolean> {
  const { isInitialized } = await import('../src/initialize.ts')
  try {
    return isInitialized(directory)
  } catch (error) {
    return explainOpenError(directory)(error as Error)
  }
}

/** @throws CommandError with exit code 5 where no controller was made yet */
export async function assertInitialized(directory: string): Promise<void> {
  if (await isInitialised(directory)) return
  throw new CommandError(EXIT.notFound, 'NO_DATA_DIRECTORY', `${directory} is not the data directory of a controller`, {
    hint: `--data-dir with another directory, or controller init --data-dir ${directory}`,
  })
}

const LOCKED_HINT = 'leave out --offline to speak to the controller that runs, or stop it first'

/** The exit code for each thing that can be wrong with a directory. */
const DIRECTORY_EXITS: Readonly<Record<string, number>> = {
  NOT_EMPTY: EXIT.conflict,
  NOT_PRIVATE: EXIT.notPermitted,
  FOREIGN_OWNER: EXIT.notPermitted,
  LOCK_FAILED: EXIT.notPermitted,
  DATABASE_MISSING: EXIT.notFound,
}

/** What it means when a directory cannot be opened. */
export function explainOpenError(directory: string, whenLocked = LOCKED_HINT) {
  return (error: Error): never => {
    // By name: the server's modules are not those of this command line.
    if (error.name === 'DirectoryLocked') {
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
        hint: `see that its disk has room and can be written, then: controller db check --data-dir ${directory}`,
      })
    }
    if (error.name === 'ConfigError') {
      throw new CommandError(EXIT.usage, 'INVALID_SETTING', error.message, { hint: `edit config.yaml in ${directory}` })
    }
    throw error
  }
}
