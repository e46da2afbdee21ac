// `controller completion SHELL`: prints the completion script of a shell.
import { assertOutput } from '../foundation/flag-values.ts'
import { requiredArgument } from '../framework/arguments.ts'
import { PrintingCommand } from '../framework/base.ts'
import { type Shell, scripts, shells } from './scripts.ts'

export class Completion extends PrintingCommand {
  static override summary = 'Prints the completion script of a shell, for commands, flags and names.'
  static override args = {
    shell: requiredArgument({ options: [...shells], description: `One of ${shells.join(', ')}.` }),
  }
  static override examples = ['source <(<%= config.bin %> <%= command.id %> bash)']

  async run(): Promise<void> {
    const { args, flags } = await this.parse(Completion)
    assertOutput(flags.output, 'completion', 'text')
    await this.print({ kind: 'text', text: scripts[args.shell as Shell] }, flags.output)
  }
}
