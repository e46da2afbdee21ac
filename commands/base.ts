// What every command has: how it prints, how it asks, and how it fails.
import { Command, Flags, type Interfaces } from '@oclif/core'
import { CommandError, EXIT } from './exit-codes.ts'
import { reportFailure } from './failures.ts'
import { typed } from './naming.ts'
import { type Format, formats, printResult, type Result } from './output/formats.ts'
import { stdoutOutput } from './output/stdout.ts'
import { safeLines } from './output/text.ts'
import { confirm } from './prompts.ts'

const outputFlag = Flags.option({
  char: 'o',
  options: formats,
  description: 'Form of the output; a table unless said otherwise.',
  helpGroup: 'GLOBAL',
})({})

export const printingFlags: Interfaces.FlagInput = { output: outputFlag }

/** A command whose result can be printed in any form. */
export abstract class PrintingCommand extends Command {
  static override baseFlags = printingFlags

  /** Prints a result to stdout: in the form asked for, else as a table. */
  protected print(result: Result, output: unknown): Promise<void> {
    return printResult(result, (output as Format | undefined) ?? 'table', stdoutOutput())
  }

  /** Asks before something is destroyed, unless `--yes` answered already. @throws CommandError where the answer is no */
  protected async confirm(flags: { yes?: unknown }, question: string): Promise<void> {
    if (flags.yes === true || (await confirm(question, '--yes'))) return
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'nothing was changed')
  }

  /** Says something to the person in front of the terminal, beside the result. */
  protected notice(text: string): void {
    process.stderr.write(`${safeLines(text)}\n`)
  }

  override async catch(error: Error): Promise<void> {
    const { id = '', flags, baseFlags } = this.ctor
    const known = [...Object.keys(flags), ...Object.keys(baseFlags ?? {})]
    this.exit(await reportFailure(error, { command: typed(id), argv: this.argv, flags: known }))
  }
}
