// The words of a command line that should name a command: how far they do, and what was meant if they do not.
import type { Interfaces } from '@oclif/core'
import { findNearest } from '../../src/foundation/nearest.ts'
import { type CommandError, makeUsageError } from '../foundation/exit-codes.ts'

/** The id of the command that the first words name, and how many they are; undefined if they name none. */
export function findLongestCommand(
  words: readonly string[],
  config: Interfaces.Config,
): { readonly id: string; readonly count: number } | undefined {
  for (let count = words.length; count > 0; count--) {
    const id = words.slice(0, count).join(':')
    if (config.findCommand(id)) return { id, count }
  }
  return undefined
}

/** The words before the first flag. */
export function takeNames(words: readonly string[]): string[] {
  const end = words.findIndex((word) => word.startsWith('-'))
  return end === -1 ? [...words] : words.slice(0, end)
}

/** The error if a flag stands where a command should. */
export function missingCommandError(names: readonly string[], flag: string): CommandError {
  const near = findNearest(flag.replace(/^-+/, ''), ['help', 'version']).map((word) => `controller --${word}`)
  const page = ['controller', ...names, '--help'].join(' ')
  return makeUsageError(`missing command before ${flag}`, { hint: near.length > 0 ? near.join(', ') : page })
}

/** The error if no command has these names, with the commands that resemble them. */
export function unknownCommandError(names: readonly string[], commandIds: readonly string[]): CommandError {
  const [noun = '', verb = ''] = names
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
