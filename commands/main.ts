// Finds the command that was typed. Help, and what is wrong before there is a command, need nothing that is slow to load.
import { CommandError, EXIT, makeUsageError } from './exit-codes.ts'
import { writeFailure } from './failure-text.ts'
import { loadManifest, mapCommandIds } from './manifest.ts'
import { findNearest } from './nearest.ts'

/** Runs a command line to its end; the result is the exit code. */
export async function main(argv: readonly string[]): Promise<number> {
  // Whatever a command writes may hold a secret.
  process.umask(0o077)
  if (!process.stdout.listeners('error').includes(endQuietly)) process.stdout.on('error', endQuietly)
  if (!process.stderr.listeners('error').includes(ignoreError)) process.stderr.on('error', ignoreError)
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

const UNEXPECTED_FAILURE = { code: 'FAILED', hint: 'npm run build, where this is a clone of the sources' }

async function runWords(words: readonly string[]): Promise<number> {
  const ids = mapCommandIds(loadManifest())
  const named = findNames(words)
  if (named[0] === 'help') return showHelp(named.slice(1), ids)
  if (hasHelpFlag(words)) return showHelp(named, ids)
  const count = findLongestCommand(named, ids)
  const id = ids.get(named.slice(0, count).join(':'))
  const [flag] = words.slice(named.length).filter((word) => word !== '--')
  if (id === undefined) return showHelp(named, ids, flag)
  const { runCommand } = await import('./run.ts')
  return runCommand(id, words.slice(count))
}

/** For the shells; see `controller completion`. */
async function writeCompletions(argv: readonly string[]): Promise<number> {
  const { complete } = await import('./completion/complete.ts')
  process.stdout.write(await complete(argv))
  return EXIT.done
}

/** Whoever reads has seen enough, `| head` as a rule: no reason to complain. */
function endQuietly(error: Error & { code?: string }): void {
  if (error.code === 'EPIPE') process.exit(EXIT.done)
  throw error
}

/** A command does its work, and ends with its exit code, also if what it says beside the result cannot be written. */
function ignoreError(): void {}

const WITH_VALUE = new Set(['-o', '--output', '--controller', '--profile', '--data-dir'])

/** Flags before the command are taken as if they stood behind it. */
function moveFlagsLast(argv: readonly string[]): string[] {
  let at = 0
  while (argv[at]?.startsWith('-') && argv[at] !== '--') at += WITH_VALUE.has(argv[at] ?? '') ? 2 : 1
  return [...argv.slice(at), ...argv.slice(0, at)]
}

/** The words before the first flag. */
function findNames(words: readonly string[]): string[] {
  const end = words.findIndex((word) => word.startsWith('-'))
  return end === -1 ? [...words] : words.slice(0, end)
}

function hasHelpFlag(words: readonly string[]): boolean {
  const end = words.indexOf('--')
  return (end === -1 ? words : words.slice(0, end)).some((word) => word === '--help' || word === '-h')
}

/** How many words name a command. */
function findLongestCommand(named: readonly string[], ids: ReadonlyMap<string, string>): number {
  for (let count = named.length; count > 0; count--) if (ids.has(named.slice(0, count).join(':'))) return count
  return 0
}

/**
 * The page that the words name; nothing named is the whole program.
 * @param flag what stands behind the words, where a command was meant
 * @throws CommandError where there is no such page, or a command is missing
 */
async function showHelp(named: readonly string[], ids: ReadonlyMap<string, string>, flag?: string): Promise<number> {
  const { renderHelp: helpText } = await import('./help/help.ts')
  const count = findLongestCommand(named, ids)
  const text = count > 0 ? helpText([ids.get(named.slice(0, count).join(':')) ?? '']) : helpText(named)
  if (text === undefined) throw unknownCommandError(named, ids)
  if (flag !== undefined) throw noCommandError(named, flag)
  process.stdout.write(text)
  return EXIT.done
}

function noCommandError(named: readonly string[], flag: string): CommandError {
  const near = findNearest(flag.replace(/^-+/, ''), ['help', 'version']).map((word) => `controller --${word}`)
  const page = ['controller', ...named, '--help'].join(' ')
  return makeUsageError(`${flag} stands there without a command`, { hint: near.length > 0 ? near.join(', ') : page })
}

function unknownCommandError(named: readonly string[], ids: ReadonlyMap<string, string>): CommandError {
  const [noun = '', verb = ''] = named
  const known = [...ids.keys()]
  const verbs = known.flatMap((id) => (id.startsWith(`${noun}:`) ? id.slice(noun.length + 1) : []))
  const nouns = known.map((id) => id.split(':')[0] ?? '')
  const near =
    verbs.length > 0 && verb !== ''
      ? findNearest(verb, verbs).map((word) => `controller ${noun} ${word}`)
      : findNearest(noun, nouns).map((word) => ['controller', word, ...named.slice(1)].join(' '))
  const fallback = verbs.length > 0 ? `controller ${noun} --help` : 'controller --help'
  return makeUsageError(`there is no command "${named.join(' ')}"`, {
    hint: near.length > 0 ? near.join(', ') : fallback,
  })
}
