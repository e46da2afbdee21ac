// Which data directory a command works on.
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { Flags } from '@oclif/core'

export const dataDirectoryFlag = Flags.string({
  description:
    'Data directory of the controller; CONTROLLER_DATA_DIR, or "controller" in the data home, unless said otherwise.',
  env: 'CONTROLLER_DATA_DIR',
})

/** The directory that a flag or the environment names, else the one of this user. */
export function dataDirectory(given: string | undefined, env: NodeJS.ProcessEnv = process.env): string {
  return resolve(given ?? join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'controller'))
}
