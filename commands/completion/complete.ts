// What may follow the words that were typed so far: asked by the shells, so it must be quick and never complains.

import { loadApiDescription } from '../api/description.ts'
import { Profiles } from '../client/profiles.ts'
import { helpPages } from '../help/pages.ts'
import { loadManifest, type ManifestCommand, type ManifestFlag, mapCommandIds } from '../manifest.ts'

/** A word that may follow, with what it is. */
export interface Candidate {
  readonly word: string
  readonly text: string
}

/** @param argv `[--fresh|--last] -- WORD…`: the words up to the cursor; the last one is completed, or with `--fresh` a new one */
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

async function listCandidates(done: readonly string[], current: string): Promise<Candidate[]> {
  const ids = mapCommandIds(loadManifest())
  const firstFlag = done.findIndex((word) => word.startsWith('-'))
  const named = firstFlag === -1 ? done : done.slice(0, firstFlag)
  const count = [...named.keys()].reverse().find((last) => ids.has(named.slice(0, last + 1).join(':')))
  const id = count === undefined ? undefined : ids.get(named.slice(0, count + 1).join(':'))
  const command = id === undefined ? undefined : loadManifest().commands[id]
  if (!command || count === undefined)
    return subWords(named[0] === 'help' ? named.slice(1) : named, named[0] === 'help')
  const rest = done.slice(count + 1)
  const asking = flagBefore(command, rest)
  if (asking) return valuesOf(asking)
  if (current.startsWith('-')) return flagsOf(command, rest)
  const below = rest.length === 0 ? subWords(named, false) : []
  return [...below, ...(await argumentsOf(command, rest))]
}

/** The words that may come next on the way to a command. */
function subWords(named: readonly string[], isHelp: boolean): Candidate[] {
  const { commands, topics } = loadManifest()
  const prefix = named.map((word) => `${word}:`).join('')
  const found = new Map<string, string>()
  for (const { id, aliases, summary, hidden } of Object.values(commands)) {
    if (hidden) continue
    for (const known of [id, ...(prefix === '' ? [] : aliases)]) {
      if (!known.startsWith(prefix)) continue
      const [word = '', deeper] = known.slice(prefix.length).split(':')
      if (word !== '') found.set(word, deeper === undefined ? summary : (topics[word]?.summary ?? ''))
    }
  }
  if (prefix === '' && isHelp) for (const [name, { summary }] of Object.entries(helpPages)) found.set(name, summary)
  if (prefix === '' && !isHelp) found.set('help', 'What a command does, and what all have in common.')
  return [...found].sort().map(([word, text]) => ({ word, text }))
}

function flagsOf({ flags }: ManifestCommand, rest: readonly string[]): Candidate[] {
  const used = new Set(rest)
  return Object.values(flags)
    .filter(({ name, multiple, hidden }) => !hidden && (multiple || !used.has(`--${name}`)))
    .flatMap(({ name, description = '', allowNo }) => [
      { word: `--${name}`, text: description },
      ...(allowNo ? [{ word: `--no-${name}`, text: description }] : []),
    ])
}

/** The flag whose value is typed just now. */
function flagBefore({ flags }: ManifestCommand, rest: readonly string[]): ManifestFlag | undefined {
  const last = rest.at(-1) ?? ''
  if (!last.startsWith('-')) return undefined
  return Object.values(flags).find(
    ({ name, char, aliases = [], type }) =>
      type === 'option' &&
      (last === `--${name}` || last === `-${char}` || aliases.some((alias) => last === `--${alias}`)),
  )
}

async function valuesOf({ name, options }: ManifestFlag): Promise<Candidate[]> {
  if (options) return options.map((word) => ({ word, text: '' }))
  if (name === 'profile') return profileNames()
  return recordNames(name)
}

async function argumentsOf(command: ManifestCommand, rest: readonly string[]): Promise<Candidate[]> {
  const given = rest.filter((word, at) => !word.startsWith('-') && !flagBefore(command, rest.slice(0, at))).length
  const argument = Object.values(command.args)[given]
  if (!argument) return []
  if (argument.options) return argument.options.map((word) => ({ word, text: '' }))
  return argument.name === 'profile' ? profileNames() : recordNames(argument.name)
}

function profileNames(): Candidate[] {
  const profiles = Profiles.open(process.env)
  return profiles.names.map((word) => ({ word, text: profiles.get(word)?.url ?? '' }))
}

// So many are as much as a person looks through, and so long as one waits after a key.
const MAX_NAMES = 200
const PATIENCE_MILLISECONDS = 1_000

/** Names of the records of a resource, asked of the current controller; none where that takes too long. */
async function recordNames(noun: string): Promise<Candidate[]> {
  const resource = Object.values(loadApiDescription().resources).find(({ name }) => name === noun)
  if (!resource?.isNamed) return []
  const { connect } = await import('../connection.ts')
  const client = await connect(
    {},
    { version: loadManifest().version, isPublic: false, base: undefined, notice: () => {} },
  )
  const patience = setTimeout(() => void client.close(), PATIENCE_MILLISECONDS)
  try {
    const { data } = await client.call('GET', `/${resource.plural}?limit=${MAX_NAMES}&sort=name`)
    return (data as { name: string }[]).map(({ name }) => ({ word: name, text: '' }))
  } finally {
    clearTimeout(patience)
    await client.close()
  }
}
