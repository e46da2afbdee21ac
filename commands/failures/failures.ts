// Turns errors of any kind into failures: what is wrong, why, and a command that helps.
import { Errors } from '@oclif/core'
import { UnreachableError } from '../../src/client/http-transport.ts'
import { isMachineToken } from '../../src/definitions/resources/tokens.ts'
import { chooseProfile } from '../client/connection.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import { CommandError, EXIT, toExitCode } from '../foundation/exit-codes.ts'
import { describeFileError, isFileError } from '../foundation/file-errors.ts'
import { RequestError } from '../foundation/request-error.ts'
import { type FailedAttempt, type Failure, writeFailure } from './failure-text.ts'
import { withSameConnection } from './same-connection.ts'
import { describeUsage, toHelpCommand } from './usage-errors.ts'

/** Writes the failure to stderr, and returns the exit code. */
export async function reportFailure(error: Error, attempt: FailedAttempt): Promise<number> {
  if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
  const isUsage = error instanceof Errors.CLIError
  const failure = isUsage ? describeUsage(error, attempt) : await describeFailure(error, attempt)
  writeFailure(withSameConnection(failure, attempt.argv), attempt.argv)
  return isUsage ? EXIT.usage : getExitCode(error)
}

function getExitCode(error: Error): number {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof UnreachableError) return error.isUntrusted || error.isForeign ? EXIT.failed : EXIT.tryLater
  return error instanceof RequestError ? toExitCode(error) : EXIT.failed
}

async function describeFailure(error: Error, attempt: FailedAttempt): Promise<Failure> {
  if (error instanceof RequestError) return describeRequestError(error, attempt)
  if (error instanceof UnreachableError) {
    const { describeUnreachable } = await import('./unreachable.ts')
    return describeUnreachable(error, attempt)
  }
  if (error instanceof CommandError) {
    const { code, message, field, exitCode } = error
    const hint = error.hint ?? (exitCode === EXIT.usage ? toHelpCommand(attempt) : undefined)
    return { code, message, ...(field ? { field } : {}), ...(hint ? { hint } : {}) }
  }
  if (isFileError(error)) {
    const path = error.path ?? ''
    return { code: 'FILE_UNUSABLE', message: `${path} cannot be used: ${describeFileError(error, path)}` }
  }
  return { code: 'FAILED', message: error.message }
}

// ---- error responses of the controller ----------------------------------------------------------------------------

async function describeRequestError(error: RequestError, attempt: FailedAttempt): Promise<Failure> {
  const { target, code, field, requestId } = error
  const hint = await findHint(error, attempt)
  return {
    // The API reports a duplicate as an invalid value; its code must not contradict the exit code.
    code: toExitCode(error) === EXIT.conflict && code === 'COULD_NOT_VALIDATE' ? 'CONFLICT' : code,
    message: [`${target}: ${explainRequestError(error)}`, ...listOtherMistakes(error)].join('\n'),
    ...(field ? { field } : {}),
    ...(hint ? { hint } : {}),
    ...(requestId ? { requestId } : {}),
  }
}

/** A line for each further member that breaks a rule. */
function listOtherMistakes({ others }: RequestError): string[] {
  return others.map(({ field, reason }) => `${field} ${reason}`)
}

function explainRequestError({ causeCode, reason, explanation }: RequestError): string {
  if (causeCode === 'SESSION_UNKNOWN') return 'your session has ended'
  return causeCode === 'PERMISSION_DENIED' && reason ? `not permitted: ${reason}` : explanation
}

async function findHint(error: RequestError, attempt: FailedAttempt): Promise<string | undefined> {
  const { target, status, causeCode, code } = error
  const isOnline = target.startsWith('https://')
  const [noun] = attempt.command.split(' ')
  switch (status) {
    case 400:
      if (code === 'INVALID_FILTER') return 'controller help filters'
      if (toExitCode(error) === EXIT.conflict) return `controller ${noun} list`
      return toBareAttributes(error, attempt) ?? toHelpCommand(attempt)
    case 401:
      if (code === 'INVALID_AUTH') return 'check the username and the password'
      if (!isOnline) return 'omit --offline: a data directory has no current identity'
      return causeCode === 'PERMISSION_DENIED'
        ? `controller login ${target} as an administrator; what you can reach yourself: controller access`
        : toLoginCommand(target, attempt)
    case 403:
      // Other causes of 403 apply to every identity.
      return isOnline && causeCode === 'PERMISSION_DENIED'
        ? `controller login ${target} as an identity with that permission`
        : undefined
    case 404:
      return attempt.isCommand(`${noun}:list`) ? `controller ${noun} list` : toHelpCommand(attempt)
    case 409:
      if (code === 'ENROLLMENT_EXISTS') return toRefreshCommand(error) ?? toHelpCommand(attempt)
      return code === 'CAN_NOT_DELETE_REFERENCED_ENTITY'
        ? 'first delete or change what uses it'
        : toHelpCommand(attempt)
    case 503:
    case 429:
      // Later does not help if the disk is full or broken, and `doctor` says which it is.
      return code === 'STORAGE_UNAVAILABLE' ? 'controller doctor' : 'run the command again later'
    case 500:
      return isOnline ? 'look up the request id in the log of the controller' : undefined
    default:
      return status < 500 ? toHelpCommand(attempt) : undefined
  }
}

/** The command that renews the token of an outstanding enrollment, whose id is only in the controller's message. */
function toRefreshCommand({ reason = '' }: RequestError): string | undefined {
  const [, id] = /the enrollment (\S+)$/.exec(reason) ?? []
  return id === undefined ? undefined : toCommandLine('enrollment refresh', [id])
}

const ATTRIBUTE_FLAG = /^--(?:add-)?role(?:-attributes)?$/

/** The command with role attributes as they are stored, if one begins with the mark that only policies use: `#staff`. */
function toBareAttributes({ field, value }: RequestError, { command, argv }: FailedAttempt): string | undefined {
  if (field !== 'roleAttributes' || !value?.startsWith('#')) return undefined
  const words = argv.map((word, at) => {
    const [flag = '', text] = word.split('=#')
    if (text !== undefined && ATTRIBUTE_FLAG.test(flag)) return `${flag}=${text}`
    return ATTRIBUTE_FLAG.test(argv[at - 1] ?? '') ? word.replace(/^#/, '') : word
  })
  return words.every((word, at) => word === argv[at]) ? undefined : toCommandLine(command, words)
}

/** The login that renews the profile of the failed command, or the variable that holds its session. */
async function toLoginCommand(target: string, { argv }: FailedAttempt): Promise<string> {
  const readFlag = (flag: string) =>
    argv
      .map((word, at) =>
        word === `--${flag}` ? argv[at + 1] : word.startsWith(`--${flag}=`) ? word.split('=')[1] : undefined,
      )
      .find((value) => value !== undefined)
  try {
    const profile = readFlag('profile') ?? (process.env.CONTROLLER_PROFILE || undefined)
    const { name, profile: chosen } = await chooseProfile({ controller: readFlag('controller'), profile })
    if (name === undefined && isMachineToken(chosen.token ?? ''))
      return 'set CONTROLLER_TOKEN to another token: this one has expired, is revoked, or has a disabled identity'
    if (name === undefined) return 'set CONTROLLER_TOKEN to the token of a new session'
    return toCommandLine('login', ['--profile', name])
  } catch {
    return toCommandLine('login', [target])
  }
}
