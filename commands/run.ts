// Runs a command by oclif, which reads its flags and arguments.
import { fileURLToPath } from 'node:url'
import { Config, Errors } from '@oclif/core'
import { EXIT } from './exit-codes.ts'
import { reportFailure } from './failures.ts'

/** The folder of package.json, from which oclif takes its configuration. */
const root = fileURLToPath(new URL('../..', import.meta.url))

/** Runs the command to its end; the result is the exit code. */
export async function runCommand(id: string, argv: readonly string[]): Promise<number> {
  process.once('SIGINT', () => process.exit(EXIT.interrupted))
  try {
    const config = await Config.load({ root })
    await config.runCommand(id, [...argv])
    return EXIT.done
  } catch (error) {
    if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
    return reportFailure(error as Error, { command: id.replaceAll(':', ' '), argv, flags: [] })
  }
}
