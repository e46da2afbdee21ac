// What every command has: how it prints, how it asks, and how it fails.
import { Command, Config, Flags, type Interfaces } from '@oclif/core'
import { CommandError, EXIT } from './exit-codes.ts'
import { reportFailure } from './failures.ts'
import { loadManifest } from './manifest.ts'
import { toTypedCommand } from './naming.ts'
import { type Format, formats, printResult, type Result } from './output/formats.ts'
import { openStdout } from './output/stdout.ts'
import { escapeLines } from './output/text.ts'
import { confirm } from './prompts.ts'

const outputFlag = Flags.option({
  char: 'o',
  options: formats,
  description: 'Form of the output; a table unless said otherwise.',
  helpGroup: 'GLOBAL',
})({})

export const printingFlags: Interfaces.FlagInput = { output: outputFlag }

/** This program as oclif knows it: no plugins and no hooks, so there is nothing to load; loading takes longer than most commands. */
class OwnConfig extends Config {
  override version = loadManifest().version
  override runHook = async () => ({ successes: [], failures: [] })
}

/** A command whose result can be printed in any form. */
export abstract class PrintingCommand extends Command {
  static override baseFlags = printingFlags

  /** Runs the command to its end. @throws ExitError with the exit code where it failed */
  static start(this: new (argv: string[], config: Config) => PrintingCommand, argv: readonly string[]): Promise<void> {
    return new this([...argv], new OwnConfig({ root: '' }))._run()
  }

  /** Prints a result to stdout: in the form asked for, else as a table. */
  protected print(result: Result, output: unknown): Promise<void> {
    return printResult(result, (output as Format | undefined) ?? 'table', openStdout())
  }

  /** Asks before something is destroyed, unless `--yes` answered already. @throws CommandError where the answer is no */
  protected async confirm(flags: { yes?: unknown }, question: string): Promise<void> {
    if (flags.yes === true || (await confirm(question, '--yes'))) return
    throw new CommandError(EXIT.interrupted, 'INTERRUPTED', 'nothing was changed')
  }

  /** Says something to the person in front of the terminal, beside the result. */
  protected notice(text: string): void {
    process.stderr.write(`${escapeLines(text)}\n`)
  }

  override async catch(error: Error): Promise<void> {
    const { id = '', flags, baseFlags } = this.ctor
    const known = [...Object.keys(flags ?? {}), ...Object.keys(baseFlags ?? {})]
    this.exit(await reportFailure(error, { command: toTypedCommand(id), argv: this.argv, flags: known }))
  }
}
