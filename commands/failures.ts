// From whatever went wrong to what a person, or a script, is told: what, why, and the command that helps.
import { Errors } from '@oclif/core'
import { UnreachableError } from '../src/client/http-transport.ts'
import { RequestError } from './client/client.ts'
import { CommandError, EXIT, toExitCode } from './exit-codes.ts'
import { type Attempt, type Failure, writeFailure } from './failure-text.ts'
import { loadManifest, mapCommandIds } from './manifest.ts'
import { findNearest } from './nearest.ts'
import { toCommandLine } from './shell-words.ts'

/** Writes what went wrong to stderr, as JSON where that was asked for, and tells the exit code. */
export async function reportFailure(error: Error, attempt: Attempt): Promise<number> {
  if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
  const isUsage = error instanceof Errors.CLIError
  writeFailure(isUsage ? describeUsage(error, attempt) : await describeFailure(error, attempt), attempt.argv)
  return isUsage ? EXIT.usage : exitCodeOf(error)
}

function exitCodeOf(error: Error): number {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof UnreachableError) return EXIT.tryLater
  return error instanceof RequestError ? toExitCode(error) : EXIT.failed
}

async function describeFailure(error: Error, attempt: Attempt): Promise<Failure> {
  if (error instanceof RequestError) return describeRefusal(error, attempt)
  if (error instanceof UnreachableError) {
    const { describeUnreachable } = await import('./unreachable.ts')
    return describeUnreachable(error, attempt)
  }
  if (error instanceof CommandError) {
    const { code, message, field, exitCode } = error
    const hint = error.hint ?? (exitCode === EXIT.usage ? toHelpCommand(attempt) : undefined)
    return { code, message, ...(field ? { field } : {}), ...(hint ? { hint } : {}) }
  }
  return { code: 'FAILED', message: error.message }
}

// ---- the controller refused ----------------------------------------------------------------------------------------

function describeRefusal(refusal: RequestError, attempt: Attempt): Failure {
  const { target, code, message, reason, field, requestId } = refusal
  const why = field && reason ? `${field} ${reason}` : reason ? `${message} (${reason})` : message
  const hint = findHint(refusal, attempt)
  return {
    code,
    message: `${target}: ${why}`,
    ...(field ? { field } : {}),
    ...(hint ? { hint } : {}),
    ...(requestId ? { requestId } : {}),
  }
}

function findHint(refusal: RequestError, attempt: Attempt): string | undefined {
  const { target, status, causeCode, code, value } = refusal
  const isOnline = target.startsWith('https://')
  const [noun] = attempt.command.split(' ')
  switch (status) {
    case 400:
      if (code === 'INVALID_FILTER') return 'controller help filters'
      return toExitCode(refusal) === EXIT.conflict ? `controller ${noun} list` : toHelpCommand(attempt)
    case 401:
      if (code === 'INVALID_AUTH') return 'check the username and the password'
      if (!isOnline) return 'leave out --offline: a data directory has no identity of its own'
      return causeCode === 'PERMISSION_DENIED'
        ? `controller login ${target} as an administrator`
        : `controller login ${target}`
    case 403:
      // Other refusals hold for everyone.
      return isOnline && causeCode === 'PERMISSION_DENIED'
        ? `controller login ${target} as an identity that may`
        : undefined
    case 404:
      return mapCommandIds(loadManifest()).has(`${noun}:list`) ? `controller ${noun} list` : toHelpCommand(attempt)
    case 409:
      return code === 'CAN_NOT_DELETE_REFERENCED_ENTITY' && value
        ? `first delete or change ${value}`
        : toHelpCommand(attempt)
    case 429:
    case 503:
      return 'the same again in a moment'
    case 500:
      return isOnline ? 'the log of the controller, under the id of the request' : undefined
    default:
      return status < 500 ? toHelpCommand(attempt) : undefined
  }
}

function toHelpCommand({ command }: Attempt): string {
  return toCommandLine(command, ['--help'])
}

// ---- the command line is wrong -------------------------------------------------------------------------------------

type ParserError = Errors.CLIError & { flags?: string[]; args?: ({ name?: string } | string)[] }

/** What the parser found wrong, in one sentence. */
function describeUsage(error: ParserError, attempt: Attempt): Failure {
  const { flags } = attempt
  const help = toHelpCommand(attempt)
  if (error.flags && /^Nonexistent/i.test(error.message)) {
    const [unknown = ''] = error.flags
    const near = findNearest(unknown.replace(/^-+/, ''), flags).map((flag) => `--${flag}`)
    return {
      code: 'USAGE',
      message: `there is no flag ${error.flags.join(', ')} here`,
      hint: near.length > 0 ? near.join(', ') : help,
    }
  }
  if (error.args && /^Unexpected/i.test(error.message)) {
    return { code: 'USAGE', message: `nothing is done with ${error.args.join(' ')}`, hint: help }
  }
  if (error.args && /^Missing/i.test(error.message)) {
    const names = error.args.map((arg) => (typeof arg === 'string' ? arg : (arg.name ?? '')).toUpperCase())
    return { code: 'USAGE', message: `${names.join(' and ')} is missing`, hint: help }
  }
  // Sentences of the parser that need no other words: expected values, bounds, flags that need each other.
  const lines = error.message.split('\n').map((line) => line.trim())
  const sentence = lines.filter(
    (line) => line !== '' && !line.startsWith('See more help') && line !== 'The following error occurred:',
  )
  return { code: 'USAGE', message: sentence.join(' '), hint: help }
}
