// Completes the words of a command line for the shells; it is fast, and never fails.
import { type Command, Config, type Interfaces } from '@oclif/core'
import { Profiles } from '../client/profiles.ts'
import { loadApiDescription } from '../foundation/description.ts'
import { findLongestCommand, takeNames } from '../framework/command-words.ts'
import { helpPages } from '../help/pages.ts'
import { hasControls } from '../terminal/text.ts'

/** A completion, with its description. */
export interface Candidate {
  readonly word: string
  readonly text: string
}

/**
 * The completions, one per line, each with its description after a tab.
 * @param argv `[--fresh|--last] -- WORD…`: the words up to the cursor; completes the last word, or with `--fresh` a new word
 * @param options by which oclif finds the commands
 */
export async function complete(argv: readonly string[], options: Interfaces.LoadOptions): Promise<string> {
  const at = argv.indexOf('--')
  const words = argv.slice(at + 1)
  if (argv.slice(0, at).includes('--fresh')) words.push('')
  const current = words.at(-1) ?? ''
  const config = await Config.load(options)
  const candidates = await listCandidates(config, words.slice(0, -1), current).catch(() => [])
  return (
    candidates
      // A name with control characters could write to the terminal.
      .filter(({ word }) => word.startsWith(current) && !hasControls(word))
      .map(({ word, text }) => `${word}\t${text.replace(/\s+/g, ' ')}\n`)
      .join('')
  )
}

async function listCandidates(config: Config, words: readonly string[], current: string): Promise<Candidate[]> {
  const names = takeNames(words)
  const longest = findLongestCommand(names, config)
  const command = longest && config.findCommand(longest.id)
  if (!command) return listSubWords(config, names[0] === 'help' ? names.slice(1) : names, names[0] === 'help')
  const rest = words.slice(longest.count)
  const openFlag = findOpenFlag(command, rest)
  if (openFlag) return listFlagValues(openFlag, config)
  if (current.startsWith('-')) return listFlags(command, rest)
  const below = rest.length === 0 ? listSubWords(config, names, false) : []
  return [...below, ...(await listArguments(command, rest, config))]
}

/** The next words of commands that begin with these names. */
function listSubWords(config: Config, names: readonly string[], isHelp: boolean): Candidate[] {
  const prefix = names.map((word) => `${word}:`).join('')
  const summaries = new Map<string, string>()
  for (const { id, aliases, summary = '', hidden } of config.commands) {
    // Other names of topics are completed only behind the first word.
    if (hidden || !id.startsWith(prefix) || (prefix === '' && aliases.includes(id))) continue
    const [word = '', deeper] = id.slice(prefix.length).split(':')
    summaries.set(word, deeper === undefined ? summary : (config.findTopic(word)?.description ?? ''))
  }
  if (prefix === '' && isHelp) for (const [name, { summary }] of Object.entries(helpPages)) summaries.set(name, summary)
  if (prefix === '' && !isHelp) summaries.set('help', 'Help on a command or a topic.')
  return [...summaries].sort().map(([word, text]) => ({ word, text }))
}

function listFlags({ flags }: Command.Cached, rest: readonly string[]): Candidate[] {
  const used = new Set(rest)
  return Object.values(flags)
    .filter((flag) => !flag.hidden && (isRepeatable(flag) || !used.has(`--${flag.name}`)))
    .flatMap((flag) => {
      const { name, description: text = '' } = flag
      const words = flag.type === 'boolean' && flag.allowNo ? [`--${name}`, `--no-${name}`] : [`--${name}`]
      return words.map((word) => ({ word, text }))
    })
}

function isRepeatable(flag: Command.Flag.Cached): boolean {
  return flag.type === 'option' && flag.multiple === true
}

/** The flag whose value comes next. */
function findOpenFlag({ flags }: Command.Cached, rest: readonly string[]): Command.Flag.Cached | undefined {
  const last = rest.at(-1) ?? ''
  if (!last.startsWith('-')) return undefined
  return Object.values(flags).find(
    ({ name, char, aliases = [], type }) =>
      type === 'option' &&
      (last === `--${name}` || last === `-${char}` || aliases.some((alias) => last === `--${alias}`)),
  )
}

async function listFlagValues(flag: Command.Flag.Cached, config: Config): Promise<Candidate[]> {
  if (flag.type === 'option' && flag.options) return flag.options.map((word) => ({ word, text: '' }))
  return flag.name === 'profile' ? listProfileNames() : fetchRecordNames(flag.name, config)
}

async function listArguments(command: Command.Cached, rest: readonly string[], config: Config): Promise<Candidate[]> {
  const argumentCount = rest.filter(
    (word, at) => !word.startsWith('-') && !findOpenFlag(command, rest.slice(0, at)),
  ).length
  const all = Object.values(command.args)
  const last = all.at(-1)
  const argument = all[argumentCount] ?? (last?.multiple ? last : undefined)
  if (!argument) return []
  if (argument.options) return argument.options.map((word) => ({ word, text: '' }))
  return argument.name === 'profile' ? listProfileNames() : fetchRecordNames(argument.name, config)
}

function listProfileNames(): Candidate[] {
  const profiles = Profiles.open(process.env)
  return profiles.names.map((word) => ({ word, text: profiles.get(word)?.url ?? '' }))
}

// A longer list or a longer wait is not useful while typing.
const MAX_NAMES = 200
const TIMEOUT_MS = 1_000

/**
 * The names of the records of a resource, from the current controller. @throws UnreachableError if the request takes
 * too long
 */
async function fetchRecordNames(noun: string, { version }: Config): Promise<Candidate[]> {
  const resource = Object.values(loadApiDescription().resources).find(({ name }) => name === noun)
  if (!resource?.isNamed) return []
  const { connect } = await import('../client/connection.ts')
  const client = await connect({}, { version, isPublic: false, base: undefined, notice: () => {} })
  const timer = setTimeout(() => void client.close(), TIMEOUT_MS)
  try {
    const { data } = await client.call('GET', `${resource.path}?limit=${MAX_NAMES}&sort=name`)
    return (data as { name: string }[]).map(({ name }) => ({ word: name, text: '' }))
  } finally {
    clearTimeout(timer)
    await client.close()
  }
}
