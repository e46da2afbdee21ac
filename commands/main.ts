// Finds the command of a command line. Help, and errors before a command is found, load no slow modules.
import { findNearest } from '../src/foundation/nearest.ts'
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { writeFailure } from './failure-text.ts'
import { loadManifest, mapCommandIds } from './manifest.ts'
import { openStdout } from './output/stdout.ts'

/** Runs a command line, and returns the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  // Files that a command writes may contain secrets.
  process.umask(0o077)
  handleStdoutErrors()
  if (!process.stderr.listeners('error').includes(ignoreWriteError)) process.stderr.on('error', ignoreWriteError)
  if (argv[0] === 'complete') return writeCompletions(argv.slice(1))
  const words = moveFlagsLast(argv)
  try {
    return await runWords(words)
  } catch (error) {
    const { code, message, hint } =
      error instanceof CommandError ? error : { ...UNEXPECTED_FAILURE, message: String(error) }
    writeFailure({ code, message, ...(hint ? { hint } : {}) }, words)
    return error instanceof CommandError ? error.exitCode : EXIT.failed
  }
}

const UNEXPECTED_FAILURE = { code: 'FAILED', hint: 'npm run build, if this is a clone of the repository' }

async function runWords(words: readonly string[]): Promise<number> {
  const ids = mapCommandIds(loadManifest())
  const names = takeNames(words)
  if (names[0] === 'help') return showHelp(names.slice(1), ids)
  if (hasHelpFlag(words)) return showHelp(names, ids)
  const count = findLongestCommand(names, ids)
  const id = ids.get(names.slice(0, count).join(':'))
  const [flag] = words.slice(names.length).filter((word) => word !== '--')
  if (id === undefined) return showHelp(names, ids, flag)
  const { runCommand } = await import('./run.ts')
  // oclif adds a handler that throws.
  handleStdoutErrors()
  return runCommand(id, words.slice(count))
}

/** Called by the shells; see `controller completion`. */
async function writeCompletions(argv: readonly string[]): Promise<number> {
  const { complete } = await import('./completion/complete.ts')
  await openStdout().write(await complete(argv))
  return EXIT.done
}

function handleStdoutErrors(): void {
  process.stdout.removeAllListeners('error')
  process.stdout.on('error', exitOnClosedPipe)
}

/** A reader that closes the pipe early, such as `head`, is not a failure. Other errors are reported by what wrote the text. */
function exitOnClosedPipe(error: Error & { code?: string }): void {
  if (error.code === 'EPIPE') process.exit(EXIT.done)
}

/** A command completes with its exit code even if its messages cannot be written to stderr. */
function ignoreWriteError(): void {}

const FLAGS_WITH_VALUE = new Set(['-o', '--output', '--controller', '--profile', '--data-dir'])

/** Moves flags before the command behind it. */
function moveFlagsLast(argv: readonly string[]): string[] {
  let at = 0
  while (argv[at]?.startsWith('-') && argv[at] !== '--') at += FLAGS_WITH_VALUE.has(argv[at] ?? '') ? 2 : 1
  return [...argv.slice(at), ...argv.slice(0, at)]
}

/** The words before the first flag. */
function takeNames(words: readonly string[]): string[] {
  const end = words.findIndex((word) => word.startsWith('-'))
  return end === -1 ? [...words] : words.slice(0, end)
}

function hasHelpFlag(words: readonly string[]): boolean {
  const end = words.indexOf('--')
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === '--help' || word === '-h')
}

/** How many of the first words name a command. */
function findLongestCommand(names: readonly string[], ids: ReadonlyMap<string, string>): number {
  for (let count = names.length; count > 0; count--) if (ids.has(names.slice(0, count).join(':'))) return count
  return 0
}

/**
 * Prints the help page that the words name; without words, that of the whole program.
 * @param flag the flag after the words, if the words should have named a command
 * @throws CommandError if there is no such page, or a flag has no command
 */
async function showHelp(names: readonly string[], ids: ReadonlyMap<string, string>, flag?: string): Promise<number> {
  const { renderHelp } = await import('./help/help.ts')
  const count = findLongestCommand(names, ids)
  const text = count > 0 ? renderHelp([ids.get(names.slice(0, count).join(':')) ?? '']) : renderHelp(names)
  if (text === undefined) throw unknownCommandError(names, ids)
  if (flag !== undefined) throw missingCommandError(names, flag)
  await openStdout().write(text)
  return EXIT.done
}

function missingCommandError(names: readonly string[], flag: string): CommandError {
  const near = findNearest(flag.replace(/^-+/, ''), ['help', 'version']).map((word) => `controller --${word}`)
  const page = ['controller', ...names, '--help'].join(' ')
  return makeUsageError(`missing command before ${flag}`, { hint: near.length > 0 ? near.join(', ') : page })
}

function unknownCommandError(names: readonly string[], ids: ReadonlyMap<string, string>): CommandError {
  const [noun = '', verb = ''] = names
  const commandIds = [...ids.keys()]
  const verbs = commandIds.flatMap((id) => (id.startsWith(`${noun}:`) ? id.slice(noun.length + 1) : []))
  const near =
    verbs.length > 0 && verb !== ''
      ? findNearest(verb, verbs).map((word) => `controller ${noun} ${word}`)
      : findNearestNouns(noun, verb, commandIds)
  const fallback = verbs.length > 0 ? `controller ${noun} --help` : 'controller --help'
  return makeUsageError(`unknown command: ${names.join(' ')}`, {
    hint: near.length > 0 ? near.join(', ') : fallback,
  })
}

/** A verb of more nouns than these says too little. */
const MAX_PROPOSED_VERBS = 3

/** Commands with a noun that is similar, and the verb that is typed, or the most similar one; else the nouns alone. */
function findNearestNouns(noun: string, verb: string, commandIds: readonly string[]): string[] {
  const nouns = findNearest(
    noun,
    commandIds.map((id) => id.split(':')[0] ?? ''),
  )
  const commands = nouns.flatMap((word) => {
    const verbs = commandIds.flatMap((id) => (id.startsWith(`${word}:`) ? id.slice(word.length + 1) : []))
    const [nearestVerb] = verbs.includes(verb) ? [verb] : findNearest(verb, verbs)
    return nearestVerb === undefined ? [] : `controller ${word} ${nearestVerb}`
  })
  if (commands.length > 0) return commands
  // The word may be a verb without its noun: `backup` of `db backup`.
  const verbs = verb === '' ? commandIds.filter((id) => id.split(':')[1] === noun) : []
  const hasFew = verbs.length > 0 && verbs.length <= MAX_PROPOSED_VERBS
  return hasFew ? verbs.map((id) => `controller ${id.replace(':', ' ')}`) : nouns.map((word) => `controller ${word}`)
}
