// What every command has: where it connects, how it prints, and how it fails.
import { hostname } from 'node:os'
import { Command, Errors, Flags, type Interfaces } from '@oclif/core'
import { Client, RequestFailed } from '../src/client/client.ts'
import { httpTransport, Unreachable } from '../src/client/http-transport.ts'
import { type Profile, Profiles } from '../src/client/profiles.ts'
import { CommandError, EXIT, exitCodeOf } from './exit-codes.ts'
import { type Format, formatResult, formats, type Result } from './output/formats.ts'
import { confirm } from './prompts.ts'

export const outputFlag = Flags.option({
  char: 'o',
  options: formats,
  description: 'Form of the output; a table unless said otherwise.',
  helpGroup: 'GLOBAL',
})({})

const connectionFlags = {
  controller: Flags.string({ description: 'URL of the controller, in place of a profile.', helpGroup: 'GLOBAL' }),
  profile: Flags.string({
    description: 'The profile to use; the current one unless said otherwise.',
    env: 'CONTROLLER_PROFILE',
    helpGroup: 'GLOBAL',
  }),
}

/** A command whose result can be printed in any form. */
export abstract class PrintingCommand extends Command {
  static override baseFlags: Interfaces.FlagInput = { output: outputFlag }

  /** Prints a result to stdout: in the form asked for, else as a table. */
  protected async print(result: Result, output: Format | undefined): Promise<void> {
    const isTerminal = process.stdout.isTTY === true
    process.stdout.write(await formatResult(result, output ?? 'table', isTerminal))
  }

  /** Asks before something is destroyed, unless `--yes` answered already. @throws CommandError where the answer is no */
  protected async confirm(flags: { yes?: unknown }, question: string): Promise<void> {
    if (flags.yes === true || (await confirm(question, '--yes'))) return
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'nothing was changed')
  }

  /** Says something to the person in front of the terminal, beside the result. */
  protected notice(sentence: string): void {
    process.stderr.write(`${sentence}\n`)
  }

  override async catch(error: Error & { exitCode?: number }): Promise<void> {
    const exitCode =
      error instanceof Errors.CLIError && !(error instanceof Errors.ExitError) ? EXIT.usage : exitCodeOf(error)
    if (!(error instanceof Errors.ExitError)) process.stderr.write(this.#failureText(error))
    process.exitCode = exitCode
    return this.exit(exitCode)
  }

  #failureText(error: Error): string {
    const failure = describeFailure(error)
    if (this.argv.some((word, at) => isJsonWord(word, this.argv[at + 1]))) return `${JSON.stringify(failure)}\n`
    const { message, field, hint, requestId } = failure
    const lines = [`${field ? `${field}: ` : ''}${message}`]
    if (hint) lines.push(`Try: ${hint}`)
    if (requestId) lines.push(`Request: ${requestId}`)
    return `${lines.join('\n')}\n`
  }
}

function isJsonWord(word: string, next: string | undefined): boolean {
  const value = word === '-o' || word === '--output' ? next : /^(?:-o|--output=)(\w+)$/.exec(word)?.[1]
  return value === 'json' || value === 'jsonl'
}

/** A failure as JSON on stderr shows it. */
export interface Failure {
  readonly code: string
  readonly message: string
  readonly field?: string
  readonly hint?: string
  readonly requestId?: string
}

function describeFailure(error: Error): Failure {
  if (error instanceof RequestFailed) return describeRefusal(error)
  if (error instanceof CommandError) {
    const { code, message, hint, field } = error
    return { code, message, ...(field ? { field } : {}), ...(hint ? { hint } : {}) }
  }
  if (error instanceof Unreachable) {
    const hint = error.isUntrusted
      ? `controller login ${error.url} (after comparing its fingerprint)`
      : 'controller serve, or --controller with another URL'
    return { code: error.isUntrusted ? 'UNTRUSTED' : 'UNREACHABLE', message: error.message, hint }
  }
  return { code: error instanceof Errors.CLIError ? 'USAGE' : 'FAILED', message: error.message }
}

function describeRefusal({
  target,
  code,
  message,
  reason,
  field,
  requestId,
  status,
  causeCode,
}: RequestFailed): Failure {
  const signIn = status === 401 && causeCode !== 'PERMISSION_DENIED' ? `controller login ${target}` : undefined
  return {
    code,
    message: `${target}: ${field && reason ? reason : reason ? `${message} (${reason})` : message}`,
    ...(field ? { field } : {}),
    ...(signIn ? { hint: signIn } : {}),
    ...(requestId ? { requestId } : {}),
  }
}

/** How a controller is chosen. */
export interface ConnectionFlags {
  readonly controller?: string | undefined
  readonly profile?: string | undefined
}

/** A command that talks to a controller. */
export abstract class ConnectedCommand extends PrintingCommand {
  static override baseFlags: Interfaces.FlagInput = { output: outputFlag, ...connectionFlags }

  /** The client of the profile that the flags name, signed in. @throws CommandError where there is none */
  protected connect(flags: ConnectionFlags): Client {
    const { url, rootPem, token } = chosenProfile(flags)
    const transport = httpTransport({
      url,
      rootPem,
      headers: { 'user-agent': `controller/${this.config.version} (${hostname()})` },
    })
    return new Client(transport, token === undefined ? {} : { token })
  }
}

function chosenProfile({
  controller,
  profile,
}: {
  controller?: string | undefined
  profile?: string | undefined
}): Profile {
  const profiles = Profiles.open(process.env)
  if (controller !== undefined) {
    const name = profiles.names.find((known) => profiles.get(known)?.url === controller.replace(/\/$/, ''))
    const found = name === undefined ? undefined : profiles.get(name)
    if (found) return found
    throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', `there is no profile for ${controller}`, {
      hint: `controller login ${controller}`,
    })
  }
  const name = profile ?? profiles.currentName
  const found = name === undefined ? undefined : profiles.get(name)
  if (found) return found
  const message = name === undefined ? 'no controller is known yet' : `there is no profile ${name}`
  throw new CommandError(EXIT.signInFirst, 'NOT_SIGNED_IN', message, { hint: 'controller login URL' })
}
