// The base class of commands: printing, confirmation and failure.
import { Command, Flags, type Interfaces } from '@oclif/core'
import { reportFailure } from '../failures/failures.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { toTypedCommand } from '../foundation/naming.ts'
import { colorMarks, hasColors } from '../terminal/colors.ts'
import {
  type CommandResult,
  drawnFormats,
  type Format,
  formats,
  pictureFormats,
  printResult,
  type Selection,
} from '../terminal/formats.ts'
import { confirm } from '../terminal/prompts.ts'
import { openStdout } from '../terminal/stdout.ts'
import { escapeLines } from '../terminal/text.ts'

const outputFlag = Flags.option({
  char: 'o',
  options: formats,
  description: 'Output format. Default: table.',
  helpGroup: 'GLOBAL',
})({})

/** The formats of a command that draws. */
export const pictureOutputFlag = Flags.option({
  char: 'o',
  options: pictureFormats,
  description: 'Output format. Default: text.',
  helpGroup: 'GLOBAL',
})({})

/** Of commands that print a list, or draw it. */
export const drawnListOutputFlag = Flags.option({
  char: 'o',
  options: [...formats, ...drawnFormats] as const,
  description: 'Output format. Default: table.',
  helpGroup: 'GLOBAL',
})({})

export const printingFlags: Interfaces.FlagInput = {
  output: outputFlag,
  columns: Flags.string({
    description: 'The columns of a table or of CSV, such as: name,createdAt. Can be repeated.',
    helpGroup: 'GLOBAL',
    helpValue: 'NAME',
    multiple: true,
    multipleNonGreedy: true,
  }),
  query: Flags.string({
    description: 'Print only what this JMESPath expression selects, such as: items[].name.',
    helpGroup: 'GLOBAL',
    helpValue: 'EXPRESSION',
  }),
  'no-csv-guard': Flags.boolean({
    description: 'Leave CSV cells that begin with =, +, - or @ as they are, for programs.',
    helpGroup: 'GLOBAL',
  }),
}

/** A command whose result can be printed in any output format. */
export abstract class PrintingCommand extends Command {
  static override baseFlags = printingFlags

  #selection: Selection = {}

  /** Reads the flags, and keeps those that all commands print by. */
  protected override async parse<
    F extends Record<string, unknown>,
    B extends Record<string, unknown>,
    A extends Record<string, unknown>,
  >(options?: Interfaces.Input<F, B, A>, argv?: string[]): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await super.parse<F, B, A>(options, argv)
    const { query, columns, 'no-csv-guard': hasFormulas } = parsed.flags as Selection & { 'no-csv-guard'?: boolean }
    this.#selection = { query, columns, hasFormulas }
    return parsed
  }

  /** Prints a result to stdout, as a table unless `output` is another format. */
  protected print(result: CommandResult, output: unknown): Promise<void> {
    return printResult(result, (output as Format | undefined) ?? 'table', openStdout(), this.#selection)
  }

  /** Asks for confirmation of a destructive change, unless `--yes` is set. @throws CommandError if the user declines */
  protected async confirm(flags: { yes?: unknown }, question: string): Promise<void> {
    if (flags.yes === true || (await confirm(question, '--yes'))) return
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'nothing was changed')
  }

  /** Writes a message for the user to stderr. */
  protected notice(text: string): void {
    const lines = escapeLines(text)
    process.stderr.write(`${hasColors(process.stderr) ? colorMarks(lines) : lines}\n`)
  }

  override async catch(error: Error): Promise<void> {
    const { id = '', flags, baseFlags } = this.ctor
    const flagNames = [...Object.keys(flags ?? {}), ...Object.keys(baseFlags ?? {})]
    const attempt = { command: toTypedCommand(id), argv: this.argv, flags: flagNames }
    this.exit(
      await reportFailure(error, { ...attempt, isCommand: (other) => this.config.findCommand(other) !== undefined }),
    )
  }
}
