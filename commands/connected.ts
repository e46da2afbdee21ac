// Makes command classes from plain descriptions: what varies is said, connecting and closing is not.
import type { Command, Interfaces } from '@oclif/core'
import { PrintingCommand, printingFlags } from './base.ts'
import type { Client } from './client/client.ts'
import { type ConnectionFlags, connect, connectionFlags } from './connection.ts'
import type { Format, Result } from './output/formats.ts'

export type CommandClass = Command.Class

export type GivenFlags = Readonly<Record<string, unknown>> &
  ConnectionFlags & { readonly output?: Format; readonly yes?: boolean }

/** What the body of a command works with. */
export interface CommandRun {
  readonly client: Client
  readonly args: Readonly<Record<string, string | undefined>>
  readonly flags: GivenFlags
  print(result: Result): Promise<void>
  /** Says something to the person, beside the result. */
  notice(text: string): void
  /** Asks before something is destroyed. @throws CommandError where the answer is no */
  confirm(question: string): Promise<void>
}

export interface CommandDescription {
  readonly summary: string
  readonly aliases?: string[]
  readonly args?: Interfaces.ArgInput
  readonly flags?: Interfaces.FlagInput
  /** The rest of a command line that works. */
  readonly example: string
  /** Whether it needs no session. */
  readonly isPublic?: boolean
  /** What its paths stand below; the management API unless said otherwise. */
  readonly base?: string
  /** Settles with the exit code, where that is another than 0. */
  // biome-ignore lint/suspicious/noConfusingVoidType: most commands have nothing to tell
  run(run: CommandRun): Promise<number | void>
}

/** A command that talks to a controller, over HTTPS or offline. */
export function defineConnectedCommand(description: CommandDescription): CommandClass {
  const { summary, aliases = [], args = {}, flags = {}, example, isPublic = false, base } = description
  const both = Object.keys(flags).find((flag) => flag in connectionFlags || flag in printingFlags)
  if (both !== undefined)
    throw new Error(`--${both} is a flag of all commands, and cannot mean anything else: ${summary}`)
  const made = class extends PrintingCommand {
    static override summary = summary
    static override aliases = aliases
    static override args = args
    static override flags = flags
    static override baseFlags = { ...printingFlags, ...connectionFlags }
    static override examples = [`<%= config.bin %> <%= command.id %> ${example}`.trim()]

    async run(): Promise<void> {
      const parsed = await this.parse(made)
      const given = parsed.flags as unknown as GivenFlags
      const notice = (text: string) => this.notice(text)
      const client = await connect(given, { version: this.config.version, isPublic, base, notice })
      let code: number | undefined
      try {
        code = (await description.run({
          client,
          args: parsed.args as Record<string, string | undefined>,
          flags: given,
          print: (result) => this.print(result, given.output),
          notice,
          confirm: (question) => this.confirm(given, question),
        })) as number | undefined
      } finally {
        await client.close()
      }
      if (code) this.exit(code)
    }
  }
  return made as unknown as CommandClass
}
