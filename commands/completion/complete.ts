// Completes the words of a command line for the shells; it is fast, and never fails.
import { loadApiDescription } from '../api/description.ts'
import { Profiles } from '../client/profiles.ts'
import { helpPages } from '../help/pages.ts'
import { loadManifest, type ManifestCommand, type ManifestFlag, mapCommandIds } from '../manifest.ts'

/** A completion, with its description. */
export interface Candidate {
  readonly word: string
  readonly text: string
}

/**
 * The completions, one per line, each with its description after a tab.
 * @param argv `[--fresh|--last] -- WORD…`: the words up to the cursor; completes the last word, or with `--fresh` a new word
 */
export async function complete(argv: readonly string[]): Promise<string> {
  const at = argv.indexOf('--')
  const words = argv.slice(at + 1)
  if (argv.slice(0, at).includes('--fresh')) words.push('')
  const current = words.at(-1) ?? ''
  const candidates = await listCandidates(words.slice(0, -1), current).catch(() => [])
  return candidates
    .filter(({ word }) => word.startsWith(current))
    .map(({ word, text }) => `${word}\t${text.replace(/\s+/g, ' ')}\n`)
    .join('')
}

async function listCandidates(words: readonly string[], current: string): Promise<Candidate[]> {
  const ids = mapCommandIds(loadManifest())
  const firstFlag = words.findIndex((word) => word.startsWith('-'))
  const names = firstFlag === -1 ? words : words.slice(0, firstFlag)
  const count = [...names.keys()].reverse().find((last) => ids.has(names.slice(0, last + 1).join(':')))
  const id = count === undefined ? undefined : ids.get(names.slice(0, count + 1).join(':'))
  const command = id === undefined ? undefined : loadManifest().commands[id]
  if (!command || count === undefined)
    return listSubWords(names[0] === 'help' ? names.slice(1) : names, names[0] === 'help')
  const rest = words.slice(count + 1)
  const openFlag = findOpenFlag(command, rest)
  if (openFlag) return listFlagValues(openFlag)
  if (current.startsWith('-')) return listFlags(command, rest)
  const below = rest.length === 0 ? listSubWords(names, false) : []
  return [...below, ...(await listArguments(command, rest))]
}

/** The next words of commands that begin with these names. */
function listSubWords(names: readonly string[], isHelp: boolean): Candidate[] {
  const { commands, topics } = loadManifest()
  const prefix = names.map((word) => `${word}:`).join('')
  const summaries = new Map<string, string>()
  for (const { id, aliases, summary, hidden } of Object.values(commands)) {
    if (hidden) continue
    for (const commandId of [id, ...(prefix === '' ? [] : aliases)]) {
      if (!commandId.startsWith(prefix)) continue
      const [word = '', deeper] = commandId.slice(prefix.length).split(':')
      if (word !== '') summaries.set(word, deeper === undefined ? summary : (topics[word]?.summary ?? ''))
    }
  }
  if (prefix === '' && isHelp) for (const [name, { summary }] of Object.entries(helpPages)) summaries.set(name, summary)
  if (prefix === '' && !isHelp) summaries.set('help', 'Help on a command or a topic.')
  return [...summaries].sort().map(([word, text]) => ({ word, text }))
}

function listFlags({ flags }: ManifestCommand, rest: readonly string[]): Candidate[] {
  const used = new Set(rest)
  return Object.values(flags)
    .filter(({ name, multiple, hidden }) => !hidden && (multiple || !used.has(`--${name}`)))
    .flatMap(({ name, description = '', allowNo }) => [
      { word: `--${name}`, text: description },
      ...(allowNo ? [{ word: `--no-${name}`, text: description }] : []),
    ])
}

/** The flag whose value comes next. */
function findOpenFlag({ flags }: ManifestCommand, rest: readonly string[]): ManifestFlag | undefined {
  const last = rest.at(-1) ?? ''
  if (!last.startsWith('-')) return undefined
  return Object.values(flags).find(
    ({ name, char, aliases = [], type }) =>
      type === 'option' &&
      (last === `--${name}` || last === `-${char}` || aliases.some((alias) => last === `--${alias}`)),
  )
}

async function listFlagValues({ name, options }: ManifestFlag): Promise<Candidate[]> {
  if (options) return options.map((word) => ({ word, text: '' }))
  if (name === 'profile') return listProfileNames()
  return fetchRecordNames(name)
}

async function listArguments(command: ManifestCommand, rest: readonly string[]): Promise<Candidate[]> {
  const argumentCount = rest.filter(
    (word, at) => !word.startsWith('-') && !findOpenFlag(command, rest.slice(0, at)),
  ).length
  const all = Object.values(command.args)
  const last = all.at(-1)
  const argument = all[argumentCount] ?? (last?.multiple ? last : undefined)
  if (!argument) return []
  if (argument.options) return argument.options.map((word) => ({ word, text: '' }))
  return argument.name === 'profile' ? listProfileNames() : fetchRecordNames(argument.name)
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
async function fetchRecordNames(noun: string): Promise<Candidate[]> {
  const resource = Object.values(loadApiDescription().resources).find(({ name }) => name === noun)
  if (!resource?.isNamed) return []
  const { connect } = await import('../connection.ts')
  const client = await connect(
    {},
    { version: loadManifest().version, isPublic: false, base: undefined, notice: () => {} },
  )
  const timer = setTimeout(() => void client.close(), TIMEOUT_MS)
  try {
    const { data } = await client.call('GET', `/${resource.plural}?limit=${MAX_NAMES}&sort=name`)
    return (data as { name: string }[]).map(({ name }) => ({ word: name, text: '' }))
  } finally {
    clearTimeout(timer)
    await client.close()
  }
}
