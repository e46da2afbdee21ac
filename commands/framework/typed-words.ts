// Brings the words after a command into the form that the parser accepts: choices in their own case, and values of flags that are
// typed without one.
import type { Interfaces } from '@oclif/core'

/** The words that a command accepts. */
export interface AcceptedWords {
  readonly flags?: Interfaces.FlagInput
  readonly args?: Interfaces.ArgInput
  /** By flag: the value that it has if it is typed without one. */
  readonly optionalValues?: Readonly<Record<string, string>>
}

/** A flag as it is typed: its name, and its value if that is part of the same word. */
const FLAG = /^(--[^=]+|-[a-z])(=?)(.*)$/is

/** The words as the parser accepts them; all others are returned unchanged. */
export function normalizeWords(argv: readonly string[], accepted: AcceptedWords): string[] {
  const { flags = {}, args = {}, optionalValues = {} } = accepted
  const choices = Object.values(args).map(({ options }) => options)
  const words: string[] = []
  const rest = [...argv]
  let areFlagsOver = false
  for (let word = rest.shift(); word !== undefined; word = rest.shift()) {
    const [, typed = '', sign = '', value = ''] = areFlagsOver ? [] : (FLAG.exec(word) ?? [])
    const name = findFlagName(typed, flags)
    const flag = name === undefined ? undefined : flags[name]
    const [next] = rest
    if (word === '--') areFlagsOver = true
    if (areFlagsOver || !word.startsWith('-')) words.push(word === '--' ? word : toChoice(word, choices.shift()))
    else if (name === undefined || flag?.type !== 'option') words.push(word)
    else if (sign !== '' || value !== '') words.push(`${typed}${sign}${toChoice(value, flag.options)}`)
    else if (optionalValues[name] !== undefined && (next === undefined || next.startsWith('-')))
      words.push(`${typed}=${optionalValues[name]}`)
    else words.push(word, ...rest.splice(0, 1).map((text) => toChoice(text, flag.options)))
  }
  return words
}

function findFlagName(typed: string, flags: Interfaces.FlagInput): string | undefined {
  return Object.keys(flags).find((name) => {
    const { char, aliases = [] } = flags[name] ?? {}
    return typed === `-${char}` || [name, ...aliases].some((word) => typed === `--${word}`)
  })
}

/** The choice that differs from the word by its case only, else the word. */
function toChoice(word: string, options: readonly string[] | undefined): string {
  if (!options || options.includes(word)) return word
  return options.find((option) => option.toLowerCase() === word.toLowerCase()) ?? word
}
