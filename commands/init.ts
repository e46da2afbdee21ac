// `controller init`: creates a data directory without starting a controller.
import { Flags } from '@oclif/core'
import { systemClock } from '../src/foundation/clock.ts'
import type { Overrides } from '../src/settings/config.ts'
import { PrintingCommand } from './base.ts'
import { rememberDirectory } from './client/known-directories.ts'
import { dataDirectoryFlag, explainOpenError, isDirectoryInitialized, resolveDataDirectory } from './data-directory.ts'
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { canPrompt, findPasswordObjection, promptNewPassword, promptText } from './prompts.ts'

export const networkFlags = {
  listen: Flags.string({ description: 'Address to listen on, as host:port.', helpValue: 'HOST:PORT' }),
  advertise: Flags.string({
    description: 'Address under which clients reach the controller. Can be repeated.',
    helpValue: 'NAME:PORT',
    multiple: true,
    multipleNonGreedy: true,
  }),
}

/** The settings that the flags override. */
export function readNetworkSettings({ listen, advertise }: { listen?: string; advertise?: string[] }): Overrides {
  return {
    ...(listen === undefined ? {} : { listeners: [{ address: listen }] }),
    ...(advertise === undefined ? {} : { advertise }),
  }
}

export class Init extends PrintingCommand {
  static override summary = 'Creates the data directory of a new controller: keys, certificates, database and settings.'
  static override flags = {
    'data-dir': dataDirectoryFlag,
    ...networkFlags,
    'admin-username': Flags.string({
      description: 'Username of the first administrator.',
    }),
    'admin-password-file': Flags.string({
      description: 'File with the password of the first administrator; - is stdin.',
      dependsOn: ['admin-username'],
    }),
  }
  static override examples = [
    '<%= config.bin %> <%= command.id %> --data-dir ./data --admin-username admin --admin-password-file password.txt',
  ]

  async run(): Promise<void> {
    const { flags } = await this.parse(Init)
    const directory = resolveDataDirectory(flags['data-dir'])
    const { initializeDirectory } = await import('../src/initialize.ts')
    if (await isDirectoryInitialized(directory)) {
      const message = `${directory} is already the data directory of a controller`
      const hint = `controller serve --data-dir ${directory}`
      throw new CommandError(EXIT.conflict, 'ALREADY_INITIALISED', message, { hint })
    }
    const username = flags['admin-username']
    const administrator =
      username === undefined
        ? undefined
        : {
            username,
            password: await promptNewPassword(
              flags['admin-password-file'],
              async (text) => text,
              'admin-password-file',
            ),
          }
    assertCredentials(administrator)
    const files = await initializeDirectory({
      directory,
      settings: readNetworkSettings(flags),
      clock: systemClock,
      ...(administrator ? { administrator } : {}),
    }).catch(explainOpenError(directory, 'wait until it has finished'))
    const sentence = [
      `Created a controller in ${directory}:`,
      ...files.map((file) => `  ${file}`),
      '',
      `Next: controller serve --data-dir ${directory}`,
    ].join('\n')
    rememberDirectory(directory, process.env)
    await this.print({ kind: 'done', sentence, facts: { directory, files } }, flags.output)
  }
}

/** Asks for a username until it is valid. @throws CommandError with exit code 2 if there is no terminal */
export async function promptUsername(question: string): Promise<string> {
  for (;;) {
    const username = await promptText(question, '--username')
    const objection = findUsernameObjection(username)
    if (!objection || !canPrompt()) return username
    process.stderr.write(`${objection}\n`)
  }
}

function findUsernameObjection(username: string): string | undefined {
  return username.trim().length < MIN_USERNAME_LENGTH || username.length > MAX_USERNAME_LENGTH
    ? `the username must have ${MIN_USERNAME_LENGTH} to ${MAX_USERNAME_LENGTH} characters`
    : undefined
}

const MIN_USERNAME_LENGTH = 4
const MAX_USERNAME_LENGTH = 100

/** @throws CommandError with exit code 2 if the username or the password has too few or too many characters */
export function assertCredentials(credentials: { username: string; password: string } | undefined): void {
  if (!credentials) return
  const { username, password: secret } = credentials
  const usernameObjection = findUsernameObjection(username)
  if (usernameObjection) throw makeUsageError(usernameObjection, { field: 'username' })
  const objection = findPasswordObjection(secret)
  if (objection) throw makeUsageError(objection, { field: 'password' })
}
