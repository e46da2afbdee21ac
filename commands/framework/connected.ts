// Makes command classes from descriptions, with one implementation of connecting and closing.
import type { Command, Interfaces } from '@oclif/core'
import type { BasePath, Client } from '../client/client.ts'
import { type ConnectionFlags, connect, connectionFlags, readSecondJwt } from '../client/connection.ts'
import { explainOwedFactor } from '../client/second-factors.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import type { CommandResult, Format } from '../terminal/formats.ts'
import { drawnListOutputFlag, PrintingCommand, pictureOutputFlag, printingFlags } from './base.ts'

export type CommandClass = Command.Class

export type ParsedFlags = Readonly<Record<string, unknown>> &
  ConnectionFlags & { readonly output?: Format; readonly yes?: boolean }

/** The input and output of one run of a command. */
export interface CommandRun {
  readonly client: Client
  readonly args: Readonly<Record<string, string | undefined>>
  /** The values of all arguments; one that can be repeated may have several. */
  readonly words: readonly string[]
  readonly flags: ParsedFlags
  print(result: CommandResult): Promise<void>
  /** Writes a message for the user to stderr. */
  notice(text: string): void
  /** Asks for confirmation of a destructive change. @throws CommandError if the user declines */
  confirm(question: string): Promise<void>
}

export interface CommandDescription {
  readonly summary: string
  readonly description?: string
  readonly aliases?: string[]
  readonly args?: Interfaces.ArgInput
  readonly flags?: Interfaces.FlagInput
  /** By flag: the value that it has if it is typed without one. */
  readonly optionalValues?: Readonly<Record<string, string>>
  /** The arguments and flags of a command line that works. */
  readonly example: string
  /** Whether it works without an API session. */
  readonly isPublic?: boolean
  /** The prefix of its paths. Default: the management API. */
  readonly base?: BasePath
  /** Whether its result is a picture, or a list that can also be drawn. */
  readonly draws?: 'picture' | 'list'
  /** Whether it leaves files of a data directory as they are that other accounts have rights to. */
  readonly leavesAccess?: boolean
  /** Settles with the exit code, if that is not 0. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands return nothing
  run(run: CommandRun): Promise<number | void>
}

/** The flag -o of commands that draw. */
const DRAWING_FLAGS: Readonly<Record<'picture' | 'list', Interfaces.FlagInput>> = {
  picture: { output: pictureOutputFlag },
  list: { output: drawnListOutputFlag },
}

/** A command that sends requests to a controller, over HTTPS or offline. */
export function defineConnectedCommand(description: CommandDescription): CommandClass {
  const {
    summary,
    description: details,
    aliases = [],
    args = {},
    flags = {},
    optionalValues,
    example,
    isPublic = false,
    base,
    leavesAccess = false,
    draws,
  } = description
  const duplicate = Object.keys(flags).find((flag) => flag in connectionFlags || flag in printingFlags)
  if (duplicate !== undefined)
    throw new Error(`--${duplicate} is a flag of all commands and cannot be defined again: ${summary}`)
  const command = class extends PrintingCommand {
    static override summary = summary
    static override description = details as string
    static override aliases = aliases
    static override args = args
    static override flags = flags
    static override baseFlags = {
      ...printingFlags,
      ...(draws ? DRAWING_FLAGS[draws] : {}),
      ...connectionFlags,
    }
    /** Read before the parser, see `typed-words.ts`. */
    static optionalValues = optionalValues
    static override examples = [`<%= config.bin %> <%= command.id %> ${example}`.trim()]

    async run(): Promise<void> {
      const parsed = await this.parse(command)
      const parsedFlags = parsed.flags as unknown as ParsedFlags
      const notice = (text: string) => this.notice(text)
      const client = await connect(parsedFlags, { version: this.config.version, isPublic, base, leavesAccess, notice })
      let code: number | undefined
      try {
        code = (await description.run({
          client,
          args: parsed.args as Record<string, string | undefined>,
          words: Object.values(parsed.args).flatMap((value) => (value ?? []) as string | string[]),
          flags: parsedFlags,
          print: (result) => this.print(result, parsedFlags.output),
          notice,
          confirm: (question) => this.confirm(parsedFlags, question),
        })) as number | undefined
      } catch (error) {
        throw await explainOwedFactor(error, client, toEnrollCommand(parsedFlags), () => readSecondJwt(parsedFlags))
      } finally {
        await client.close()
      }
      if (code) this.exit(code)
    }
  }
  return command as unknown as CommandClass
}

/** The command that sets up a second factor, for the controller that the flags choose. */
function toEnrollCommand({ profile, controller }: ConnectionFlags): string {
  const words = Object.entries({ profile, controller })
  return toCommandLine(
    'mfa enroll',
    words.flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}`, value])),
  )
}
