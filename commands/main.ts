// Runs oclif, and answers for what goes wrong before a command is found.
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Errors, run } from '@oclif/core'
import { EXIT } from './exit-codes.ts'

/** The folder of package.json, from which oclif takes its configuration. */
const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

export async function main(argv: string[]): Promise<void> {
  try {
    await run(argv, { root })
  } catch (error) {
    const exit = (error as { oclif?: { exit?: number } }).oclif?.exit
    if (!(error instanceof Errors.ExitError)) process.stderr.write(`${(error as Error).message}\n`)
    process.exitCode = error instanceof Errors.ExitError ? (exit ?? EXIT.failed) : EXIT.usage
  }
}
