// From whatever went wrong to what a person, or a script, is told: what, why, and the command that helps.
import { Errors } from '@oclif/core'
import { RequestFailed } from '../src/client/client.ts'
import { Unreachable } from '../src/client/http-transport.ts'
import { directoryOf } from '../src/client/known-directories.ts'
import { Profiles } from '../src/client/profiles.ts'
import { offeredRoot, rootFromPem } from '../src/client/trust.ts'
import { dataDirectory } from './data-directory.ts'
import { CommandError, EXIT, exitCodeOfRefusal } from './exit-codes.ts'
import { type Failure, writeFailure } from './failure-text.ts'
import { nearest } from './nearest.ts'
import { commandLine } from './shell-words.ts'

/** The command that failed. */
export interface Attempt {
  /** As people type it, `identity list`. */
  readonly command: string
  readonly argv: readonly string[]
  /** Its flags, for the nearest of one that it has not. */
  readonly flags: readonly string[]
}

/** Writes what went wrong to stderr, as JSON where that was asked for, and tells the exit code. */
export async function reportFailure(error: Error, attempt: Attempt): Promise<number> {
  if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
  const isUsage = error instanceof Errors.CLIError
  writeFailure(isUsage ? describeUsage(error, attempt) : await describe(error, attempt), attempt.argv)
  return isUsage ? EXIT.usage : exitCodeOf(error)
}

function exitCodeOf(error: Error): number {
  if (error instanceof CommandError) return error.exitCode
  if (error instanceof Unreachable) return EXIT.tryLater
  return error instanceof RequestFailed ? exitCodeOfRefusal(error) : EXIT.failed
}

async function describe(error: Error, attempt: Attempt): Promise<Failure> {
  if (error instanceof RequestFailed) return describeRefusal(error)
  if (error instanceof Unreachable) return error.isUntrusted ? describeDistrust(error) : describeSilence(error, attempt)
  if (error instanceof CommandError) {
    const { code, message, hint, field } = error
    return { code, message, ...(field ? { field } : {}), ...(hint ? { hint } : {}) }
  }
  return { code: 'FAILED', message: error.message }
}

// ---- the controller refused ----------------------------------------------------------------------------------------

function describeRefusal(refusal: RequestFailed): Failure {
  const { target, code, message, reason, field, requestId } = refusal
  const why = field && reason ? `${field} ${reason}` : reason ? `${message} (${reason})` : message
  const hint = hintFor(refusal)
  return {
    code,
    message: `${target}: ${why}`,
    ...(field ? { field } : {}),
    ...(hint ? { hint } : {}),
    ...(requestId ? { requestId } : {}),
  }
}

function hintFor({ target, status, causeCode, code, value }: RequestFailed): string | undefined {
  const isOnline = target.startsWith('https://')
  switch (status) {
    case 401:
      if (code === 'INVALID_AUTH') return 'check the username and the password'
      if (!isOnline) return 'leave out --offline: a data directory has no identity of its own'
      return causeCode === 'PERMISSION_DENIED'
        ? `controller login ${target} as an administrator`
        : `controller login ${target}`
    case 403:
      return isOnline ? `controller login ${target} as an identity that may` : undefined
    case 409:
      return code === 'CAN_NOT_DELETE_REFERENCED_ENTITY' && value ? `first delete or change ${value}` : undefined
    case 429:
    case 503:
      return 'the same again in a moment'
    case 500:
      return isOnline ? 'the log of the controller, under the id of the request' : undefined
    default:
      return undefined
  }
}

// ---- the controller cannot be reached, or is another ---------------------------------------------------------------

function describeSilence(error: Unreachable, { command, argv }: Attempt): Failure {
  const directory = directoryOfUnreachable(error.url)
  const hint =
    directory === undefined
      ? 'controller serve where its data is, or --controller with another URL'
      : `${commandLine(command, withoutConnection(argv))} --offline${directory === dataDirectory(undefined) ? '' : ` --data-dir ${directory}`}`
  return { code: 'UNREACHABLE', message: error.message, hint }
}

/** Where the controller of a URL has its data, if that is on this machine. */
function directoryOfUnreachable(url: string): string | undefined {
  const profiles = Profiles.open(process.env)
  const profile = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const candidates = [dataDirectory(process.env.CONTROLLER_DATA_DIR || undefined), dataDirectory('data')]
  return profile && directoryOf(profile.rootPem, candidates, process.env)
}

/** The same words without the flags that choose a controller. */
function withoutConnection(argv: readonly string[]): string[] {
  return argv.filter((word, at) => {
    const isValue = argv[at - 1] === '--controller' || argv[at - 1] === '--profile'
    return !isValue && !/^--(controller|profile)(=|$)/.test(word)
  })
}

/** Says which root was expected and which one is there: a controller that was made anew, or somebody in between. */
async function describeDistrust(error: Unreachable): Promise<Failure> {
  const { url } = error
  const profiles = Profiles.open(process.env)
  const pinned = profiles.names.map((name) => profiles.get(name)).find((known) => known?.url === url)
  const expected = pinned && rootFromPem(pinned.rootPem)?.fingerprint
  const offered = await offeredRoot(url).catch(() => undefined)
  if (!expected || !offered || offered.fingerprint === expected) {
    return { code: 'UNTRUSTED', message: error.message, hint: `controller login ${url}` }
  }
  return {
    code: 'ROOT_CHANGED',
    message: `${url} is another controller than before: its root certificate has the SHA-256 ${offered.fingerprint}, expected was ${expected}`,
    hint: `if it was made anew: controller login ${url} --fingerprint ${offered.fingerprint}`,
  }
}

// ---- the command line is wrong -------------------------------------------------------------------------------------

type ParserError = Errors.CLIError & { flags?: string[]; args?: ({ name?: string } | string)[] }

/** What the parser found wrong, in one sentence. */
function describeUsage(error: ParserError, { command, flags }: Attempt): Failure {
  const help = commandLine(command, ['--help'])
  if (error.flags && /^Nonexistent/i.test(error.message)) {
    const [unknown = ''] = error.flags
    const near = nearest(unknown.replace(/^-+/, ''), flags).map((flag) => `--${flag}`)
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
