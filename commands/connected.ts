// Makes command classes from plain descriptions: what varies is said, connecting and closing is not.
import type { Command, Interfaces } from '@oclif/core'
import type { Client } from '../src/client/client.ts'
import { ConnectedCommand, type ConnectionFlags } from './base.ts'
import type { Format, Result } from './output/formats.ts'

export type CommandClass = Command.Class

export type GivenFlags = Readonly<Record<string, unknown>> &
  ConnectionFlags & { readonly output?: Format; readonly yes?: boolean }

/** What the body of a command works with. */
export interface Run {
  readonly client: Client
  readonly args: Readonly<Record<string, string | undefined>>
  readonly flags: GivenFlags
  print(result: Result): Promise<void>
  /** Says something to the person, beside the result. */
  notice(sentence: string): void
  /** Asks before something is destroyed. @throws CommandError where the answer is no */
  confirm(question: string): Promise<void>
}

export interface CommandDescription {
  readonly summary: string
  readonly aliases: string[]
  readonly args?: Interfaces.ArgInput
  readonly flags?: Interfaces.FlagInput
  readonly example: string
  run(run: Run): Promise<void>
}

export function connectedCommand(description: CommandDescription): CommandClass {
  const made = class extends ConnectedCommand {
    static override summary = description.summary
    static override aliases = description.aliases
    static override args = description.args ?? {}
    static override flags = description.flags ?? {}
    static override examples = [`<%= config.bin %> <%= command.id %> ${description.example}`.trim()]

    async run(): Promise<void> {
      const parsed = await this.parse(made)
      const flags = parsed.flags as unknown as GivenFlags
      const client = this.connect(flags)
      try {
        await description.run({
          client,
          args: parsed.args as Record<string, string | undefined>,
          flags,
          print: (result) => this.print(result, flags.output),
          notice: (sentence) => this.notice(sentence),
          confirm: (question) => this.confirm(flags, question),
        })
      } finally {
        await client.close()
      }
    }
  }
  return made as unknown as CommandClass
}
