// The help of one command: oclif's, with flags in the order of their definition, and as they are typed.
import { type Command, CommandHelp } from '@oclif/core'
import { toTypedCommand } from '../foundation/naming.ts'

export class OneCommandHelp extends CommandHelp {
  /** Arguments and own flags, as rows of a name and a description. */
  listRows(): [string, string | undefined][] {
    return [...(this.args(Object.values(this.command.args)) ?? []), ...this.listFlags(({ helpGroup }) => !helpGroup)]
  }

  /** The flags that most commands have. */
  listGlobalFlags(): [string, string | undefined][] {
    return this.listFlags(({ helpGroup }) => helpGroup === 'GLOBAL')
  }

  private listFlags(isListed: (flag: Command.Flag.Any) => boolean): [string, string | undefined][] {
    return this.flags(Object.values(this.command.flags).filter((flag) => !flag.hidden && isListed(flag))) ?? []
  }

  /** The example, as it is typed. */
  renderExample(): string | undefined {
    const { command } = this
    this.command = { ...command, id: toTypedCommand(command.id) }
    return this.examples(command.examples)
  }

  protected override defaultUsage(): string {
    const { id, args } = this.command
    const words = Object.values(args).map((argument) => `${this.arg(argument)}${argument.multiple ? '...' : ''}`)
    return [id, ...words, '[flags]'].join(' ')
  }

  /** The summary stands above the usage already. */
  protected override description(): string | undefined {
    const { description } = this.command
    return description && this.wrap(description.replace(/\s+/g, ' '))
  }

  protected override flagHelpLabel(flag: Command.Flag.Any, showOptions?: boolean): string {
    return super.flagHelpLabel(flag, showOptions).replace('=', ' ')
  }
}
