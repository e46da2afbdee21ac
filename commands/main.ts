// Runs a command line through oclif: its configuration, the words that it gets, and the exit code.
import { Errors, run } from '@oclif/core'
import { writeFailure } from './failures/failure-text.ts'
import { CommandError, EXIT } from './foundation/exit-codes.ts'
import { loadOptions } from './oclif-options.ts'
import { openStdout } from './terminal/stdout.ts'

/** Runs a command line, and returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  // Files that a command writes may contain secrets.
  process.umask(0o077)
  handleStreamErrors()
  const interrupt = () => process.exit(EXIT.interrupted)
  process.once('SIGINT', interrupt)
  try {
    if (argv[0] === 'complete') await writeCompletions(argv.slice(1))
    else await run(toOclifWords(argv), await loadOptions())
    return EXIT.done
  } catch (error) {
    // A command has reported its failure already.
    if (error instanceof Errors.ExitError) return error.oclif.exit ?? EXIT.failed
    return reportUnrun(error, argv)
  } finally {
    process.off('SIGINT', interrupt)
  }
}

/** Reports why no command was run. */
function reportUnrun(error: unknown, argv: readonly string[]): number {
  const isOurs = error instanceof CommandError
  const { code, message, hint } = isOurs ? error : { ...UNEXPECTED_FAILURE, message: String(error) }
  writeFailure({ code, message, ...(hint ? { hint } : {}) }, argv)
  return isOurs ? error.exitCode : EXIT.failed
}

const UNEXPECTED_FAILURE = { code: 'FAILED', hint: 'npm run build, if this is a clone of the repository' }

/** Called by the shells; see `controller completion`. */
async function writeCompletions(argv: readonly string[]): Promise<void> {
  const { complete } = await import('./completion/complete.ts')
  await openStdout().write(await complete(argv, await loadOptions()))
}

function handleStreamErrors(): void {
  // oclif adds a handler that throws.
  process.stdout.removeAllListeners('error')
  process.stdout.on('error', exitOnClosedPipe)
  if (!process.stderr.listeners('error').includes(ignoreWriteError)) process.stderr.on('error', ignoreWriteError)
}

/** A reader that closes the pipe early, such as `head`, is not a failure. Other errors are reported by what wrote the text. */
function exitOnClosedPipe(error: Error & { code?: string }): void {
  if (error.code === 'EPIPE') process.exit(EXIT.done)
}

/** A command completes with its exit code even if its messages cannot be written to stderr. */
function ignoreWriteError(): void {}

const FLAGS_WITH_VALUE = new Set(['-o', '--output', '--controller', '--profile', '--data-dir'])

/** Moves flags before the command behind it, where oclif expects them. `help COMMAND` is `COMMAND --help`. */
function toOclifWords(argv: readonly string[]): string[] {
  let at = 0
  while (argv[at]?.startsWith('-') && argv[at] !== '--') at += FLAGS_WITH_VALUE.has(argv[at] ?? '') ? 2 : 1
  const words = argv.slice(at)
  return [...(words[0] === 'help' ? [...words.slice(1), '--help'] : words), ...argv.slice(0, at)]
}
