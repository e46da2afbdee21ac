// Every command of the controller that a document shows exists, with its flags and arguments, as the manifest lists them.
import type { Command } from '@oclif/core'
import { describe, expect, it } from 'vitest'
import { helpPages } from '../../commands/help/pages.ts'
import { commands } from '../world/manifest.ts'
import {
  type DocumentCommand,
  listBlockCommands,
  listNamedCommands,
  PAGES,
  REFERENCE_PAGES,
} from './document-commands.ts'

const commandsByName = new Map(
  Object.values(commands).flatMap((command) => [command.id, ...command.aliases].map((id) => [id, command] as const)),
)

/** Text that stands for something of the reader's, or for arguments that are left out. */
const isPlaceholder = (word: string) => /^[A-Z][A-Z_-]*$|…/.test(word)

function findCommand(words: readonly string[]): [Command.Cached | undefined, rest: readonly string[]] {
  for (let length = Math.min(words.length, 3); length > 0; length--) {
    const command = commandsByName.get(words.slice(0, length).join(':'))
    if (command) return [command, words.slice(length)]
  }
  return [undefined, words]
}

/** The first mistake in a command line of the controller, or undefined. */
function findMistake({ words: [, ...words], isWhole }: DocumentCommand): string | undefined {
  if (words[0] === '--version') return words.length > 1 ? 'more than the version' : undefined
  if (words[0] === 'help') return words[1] && words[1] in helpPages ? undefined : `no page of help: ${words[1]}`
  if (isPlaceholder(words[0] ?? '')) return undefined
  const [command, rest] = findCommand(words)
  if (!command) return `no command: ${words.join(' ')}`

  const flags = new Set<string>()
  const args: string[] = []
  for (let at = 0; at < rest.length; at++) {
    const word = rest[at] ?? ''
    if (!/^-./.test(word)) {
      if (!word.includes('…')) args.push(word)
      continue
    }
    if (word === '--help') continue
    const [name = '', inlineValue] = word.split('=')
    const flag = findFlag(command, name)
    if (!flag) return `no flag: ${word}`
    flags.add(flag.name)
    if (flag.type === 'boolean') continue
    const value = inlineValue ?? rest[++at]
    // A sentence may name a flag without the value that the reader chooses.
    if (value === undefined) return isWhole ? `no value: ${word}` : undefined
    const isOption = flag.options === undefined || isPlaceholder(value) || flag.options.includes(value)
    if (!isOption) return `not an option of ${word}: ${value}`
  }
  const allowed = Object.values(command.args)
  if (command.strict !== false && args.length > allowed.length) return `too many arguments: ${args.join(' ')}`
  if (!isWhole) return undefined
  const missingArgs = allowed.filter(({ required }, index) => required && index >= args.length)
  const missingFlags = Object.values(command.flags).filter(({ required, name }) => required && !flags.has(name))
  const missing = [...missingArgs, ...missingFlags].map(({ name }) => name)
  return missing.length > 0 ? `missing: ${missing.join(', ')}` : undefined
}

/** The flag of a word such as `--role`, `--no-role`, `-o`. */
function findFlag({ flags }: Command.Cached, word: string) {
  return Object.values(flags).find(
    (flag) =>
      [flag.name, ...(flag.aliases ?? [])].some((name) => word === `--${name}`) ||
      (flag.char !== undefined && word === `-${flag.char}`) ||
      (flag.type === 'boolean' && flag.allowNo && word === `--no-${flag.name}`),
  )
}

describe.each([...PAGES, ...REFERENCE_PAGES])('%s', (page) => {
  it('shows commands, flags and arguments that exist', () => {
    const isOfController = ({ words: [program = ''] }: DocumentCommand) => /^(?:bin\/)?controller$/.test(program)
    const mistakes = [...listBlockCommands(page), ...listNamedCommands(page)]
      .filter(isOfController)
      .flatMap((command) => {
        const mistake = findMistake(command)
        return mistake === undefined ? [] : [`${command.page}:${command.line}: ${mistake} in: ${command.text}`]
      })

    expect(mistakes).toEqual([])
  })
})

describe('the check itself', () => {
  const check = (text: string, isWhole = true) =>
    findMistake({ page: '', line: 1, text, words: text.split(' '), isWhole })

  it.each([
    ['controller identity make laptop', /no command/],
    ['controller identity create laptop --colour red', /no flag: --colour/],
    ['controller identity list -o xml', /not an option of -o: xml/],
    ['controller service get web mail', /too many arguments/],
    ['controller policy advise laptop --bind --identity', /no flag/],
    ['controller help nothing', /no page of help/],
  ])('finds what is wrong with: %s', (text, mistake) => {
    expect(check(text)).toMatch(mistake)
  })

  it('asks of a block what it does not ask of a sentence: everything that is required', () => {
    expect(check('controller service get')).toMatch(/missing: /)
    expect(check('controller service get', false)).toBeUndefined()
  })
})
