// `controller admin recover`: restores the access of an administrator, on the data directory.
import { Args, Flags } from '@oclif/core'
import {
  assertInitialized,
  assertStopped,
  dataDirectoryFlag,
  explainOpenError,
  isStorageFault,
  resolveDataDirectory,
  unusableDatabaseError,
} from '../client/data-directory.ts'
import { readDirectoryOptions } from '../client/directory-options.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { PrintingCommand } from '../framework/base.ts'
import { assertCredentials, promptUsername } from '../terminal/credentials.ts'
import { promptNewPassword } from '../terminal/prompts.ts'

export class AdminRecover extends PrintingCommand {
  static override summary =
    'Restores the access of an administrator: new username and password, enabled, under an auth policy that allows them.'
  static override description =
    'Works on the data directory while no controller runs on it. The audit records the user name of the operating system.'
  static override args = {
    identity: Args.string({
      description: 'Name or id of the identity. Default: the first administrator.',
      name: 'NAME',
    }),
  }
  static override flags = {
    'data-dir': dataDirectoryFlag,
    username: Flags.string({ char: 'u', description: 'The new username.' }),
    'password-file': Flags.string({ description: 'File with the new password; - is stdin.' }),
    'make-administrator': Flags.boolean({
      description: 'Promote the identity if it is not an administrator.',
    }),
  }
  static override examples = ['<%= config.bin %> <%= command.id %> --data-dir ./data --username admin']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(AdminRecover)
    const directory = resolveDataDirectory(flags['data-dir'])
    await assertInitialized(directory)
    await assertStopped(directory)
    const username = flags.username ?? (await promptUsername('Username'))
    const password = await promptNewPassword(flags['password-file'], async (text) => text)
    const administrator = { username, password }
    assertCredentials(administrator)
    const { recoverDirectory } = await import('../../src/recover.ts')
    const {
      identityId,
      identityName,
      actions: done,
    } = await recoverDirectory({
      ...readDirectoryOptions(directory),
      administrator,
      canPromote: flags['make-administrator'] === true,
      ...(args.identity === undefined ? {} : { identity: args.identity }),
    }).catch(explainRecoveryError(directory))
    const sentence = [`Restored the access of ${identityName}:`, ...done.map((change) => `  ${change}`)].join('\n')
    const facts = { identityId, identityName, username, done }
    await this.print({ kind: 'done', sentence, facts }, flags.output)
  }
}

interface RecoveryError extends Error {
  readonly code?: string
  readonly status?: number
  readonly publicCause?: {
    readonly code?: string
    readonly field?: string
    readonly reason?: string
    readonly message?: string
  }
}

/** Reports a failure by its name and status, so that the classes of the controller need not be loaded. */
function explainRecoveryError(directory: string) {
  return (error: RecoveryError): never => {
    if (error.name !== 'ControllerError') explainOpenError(directory, 'stop the controller first')(error)
    // The message of the error refers to a log, and this command writes none.
    if (error.code === 'STORAGE_UNAVAILABLE' && isStorageFault(error.cause)) {
      throw unusableDatabaseError(directory, error.cause, EXIT.tryLater)
    }
    const { code, field, reason, message } = error.publicCause ?? {}
    if (code === 'NOT_ADMINISTRATOR') {
      const refusal = `${message}; there is no access to restore`
      throw new CommandError(EXIT.notPermitted, code, refusal, { hint: '--make-administrator, to promote it' })
    }
    const exitCode = { 404: EXIT.notFound, 409: EXIT.conflict, 503: EXIT.tryLater }[error.status ?? 0] ?? EXIT.usage
    const sentence = field && reason ? `the ${field} ${reason}` : (message ?? error.message)
    throw new CommandError(exitCode, error.code ?? 'FAILED', sentence, field ? { field } : {})
  }
}
