// `controller init`: creates a data directory without starting a controller.
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/foundation/clock.ts'
import type { Overrides } from '../../src/settings/settings.ts'
import {
  assertUninitialized,
  dataDirectoryFlag,
  explainOpenError,
  resolveDataDirectory,
} from '../client/data-directory.ts'
import { rememberDirectory } from '../client/known-directories.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { PrintingCommand } from '../framework/base.ts'
import { assertCredentials } from '../terminal/credentials.ts'
import { promptNewPassword } from '../terminal/prompts.ts'

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
    const { initializeDirectory } = await import('../../src/initialize.ts')
    await assertUninitialized(directory)
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
      `Next: ${toCommandLine('serve', ['--data-dir', directory])}`,
    ].join('\n')
    rememberDirectory(directory, process.env)
    await this.print({ kind: 'done', sentence, facts: { directory, files } }, flags.output)
  }
}
