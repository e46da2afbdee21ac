// Runs a command through oclif, which parses its flags and arguments.
import { Errors } from '@oclif/core'
import type { PrintingCommand } from './base.ts'
import { EXIT } from './exit-codes.ts'
import { COMMANDS } from './index.ts'

/** Runs the command, and returns the exit code. */
export async function runCommand(id: string, argv: readonly string[]): Promise<number> {
  const command = COMMANDS[id] as unknown as typeof PrintingCommand
  command.id = id
  const interrupt = () => process.exit(EXIT.interrupted)
  process.once('SIGINT', interrupt)
  try {
    await command.start.call(command as never, argv)
    return EXIT.done
  } catch (error) {
    if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
    throw error
  } finally {
    process.off('SIGINT', interrupt)
  }
}
