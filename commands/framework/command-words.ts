// The words of a command line that should name a command: how far they do, and what was meant if they do not.
import type { Interfaces } from '@oclif/core'
import { findNearest } from '../../src/foundation/nearest.ts'
import { type CommandError, makeUsageError } from '../foundation/exit-codes.ts'
import { toTypedCommand } from '../foundation/naming.ts'

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

/** The words before the commands of the `ziti` command line, which this one does not have. */
const ZITI_TOPICS: readonly string[] = ['edge', 'fabric']

/** The error if no command has these names, with the commands that resemble them. */
export function unknownCommandError(names: readonly string[], config: Interfaces.Config): CommandError {
  const words = ZITI_TOPICS.includes(names[0] ?? '') ? names.slice(1) : names
  const [noun = ''] = words
  const meant = findMeantCommand(words, config)
  const near = meant === undefined ? findNearestCommands(words, config.commandIDs) : [meant]
  const fallback = listVerbs(noun, config.commandIDs).length > 0 ? `controller ${noun} --help` : 'controller --help'
  return makeUsageError(`unknown command: ${names.join(' ')}`, {
    hint: near.length > 0 ? near.join(', ') : fallback,
  })
}

/** The command that the words name, or that they name with the verb before the noun: `list identities`. */
function findMeantCommand(words: readonly string[], config: Interfaces.Config): string | undefined {
  const [verb = '', noun = ''] = words
  const id = findLongestCommand(words, config)?.id ?? `${noun}:${verb}`
  // A command is listed before its aliases.
  const command = config.commands.find((other) => other.id === id || other.aliases.includes(id))
  return command && `controller ${toTypedCommand(command.id)}`
}

function findNearestCommands([noun = '', verb = '']: readonly string[], commandIds: readonly string[]): string[] {
  const verbs = listVerbs(noun, commandIds)
  if (verbs.length === 0 || verb === '') {
    const near = findNearestNouns(noun, verb, commandIds)
    // A noun and a verb may be typed as one word: `policy-advise`.
    const hyphen = noun.lastIndexOf('-')
    const [head, tail] = [noun.slice(0, hyphen), noun.slice(hyphen + 1)]
    const isCompound = near.length === 0 && hyphen > 0 && listVerbs(head, commandIds).length > 0
    return isCompound ? findNearestCommands([head, tail], commandIds) : near
  }
  const near = findNearest(verb, verbs).map((word) => `controller ${noun} ${word}`)
  return near.length > 0 ? near : findCommandsByVerb(verb, commandIds)
}

function listVerbs(noun: string, commandIds: readonly string[]): string[] {
  return commandIds.flatMap((id) => (id.startsWith(`${noun}:`) ? id.slice(noun.length + 1) : []))
}

/** A verb of more nouns than these says too little. */
const MAX_PROPOSED_VERBS = 3

/** The commands with this verb, if they are few. */
function findCommandsByVerb(verb: string, commandIds: readonly string[]): string[] {
  const ids = commandIds.filter((id) => id.split(':')[1] === verb)
  return ids.length <= MAX_PROPOSED_VERBS ? ids.map((id) => `controller ${toTypedCommand(id)}`) : []
}

/** Commands with a noun that is similar, and the verb that is typed, or the most similar one; else the nouns alone. */
function findNearestNouns(noun: string, verb: string, commandIds: readonly string[]): string[] {
  const nouns = findNearest(
    noun,
    commandIds.map((id) => id.split(':')[0] ?? ''),
  )
  const commands = nouns.flatMap((word) => {
    const verbs = listVerbs(word, commandIds)
    const [nearestVerb] = verbs.includes(verb) ? [verb] : findNearest(verb, verbs)
    return nearestVerb === undefined ? [] : `controller ${word} ${nearestVerb}`
  })
  if (commands.length > 0) return commands
  // The word may be a verb without its noun: `backup` of `db backup`.
  const verbs = verb === '' ? findCommandsByVerb(noun, commandIds) : []
  return verbs.length > 0 ? verbs : nouns.map((word) => `controller ${word}`)
}
