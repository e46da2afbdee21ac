// The hooks that oclif runs: before it looks for a command, if it finds none, and before it reads the words after one.
import type { Hook } from '@oclif/core'
import { makeUsageError } from './foundation/exit-codes.ts'
import { toTypedCommand } from './foundation/naming.ts'
import { findLongestCommand, missingCommandError, unknownCommandError } from './framework/command-words.ts'
import { type AcceptedWords, normalizeWords } from './framework/typed-words.ts'

/** Rejects a flag after a topic, for which oclif would show the help of the topic. */
export const init: Hook.Init = async ({ id = '', argv, config }) => {
  const [flag] = argv
  const isHelp = argv.some((word) => word === '--help' || word === '-h')
  if (flag === undefined || isHelp || config.findCommand(id) || !config.findTopic(id)) return
  throw missingCommandError(id.split(':'), flag)
}

/** Says what was meant. */
export const commandNotFound: Hook.CommandNotFound = async ({ id, config }) => {
  if (id.startsWith('-')) throw missingCommandError([], id)
  const words = id.split(':')
  const command = findLongestCommand(words, config)
  if (!command) throw unknownCommandError(words, config)
  const typed = `controller ${toTypedCommand(command.id)}`
  const extra = words.slice(command.count).join(' ')
  throw makeUsageError(`unexpected argument: ${extra}`, { hint: `${typed} --help` })
}

/** Lets people type choices in any case, and some flags without their value. */
export const preparse: Hook.Preparse = async ({ argv, options }) => normalizeWords(argv, options as AcceptedWords)
