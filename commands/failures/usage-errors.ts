// Describes the mistakes of a command line, which the parser of oclif finds, in the words of this program.
import { stripVTControlCharacters } from 'node:util'
import type { Errors } from '@oclif/core'
import { findNearest } from '../../src/foundation/nearest.ts'
import { toCommandLine } from '../foundation/command-lines.ts'
import type { FailedAttempt, Failure } from './failure-text.ts'

export function toHelpCommand({ command }: FailedAttempt): string {
  return toCommandLine(command, ['--help'])
}

export type ParserError = Errors.CLIError & {
  flags?: string[]
  args?: ({ name?: string } | string)[]
  /** The arguments that the command has, and the words that were read. */
  parse?: { readonly input: { readonly args: object }; readonly output: { readonly raw: readonly { type: string }[] } }
}

/** The short flags of the `ziti` command line that others are typed for here. */
const ZITI_FLAGS: Readonly<Record<string, string>> = { '-a': 'role', '-p': 'password-file' }

/** The error of the parser, in one sentence. */
export function describeUsage(error: ParserError, attempt: FailedAttempt): Failure {
  const help = toHelpCommand(attempt)
  if (error.flags && /^Nonexistent/i.test(error.message)) return describeUnknownFlag(error, error.flags, attempt)
  if (error.args && /^Unexpected/i.test(error.message)) {
    return describeUnexpected(error.args as string[], attempt)
  }
  if (error.args && /^Missing/i.test(error.message)) {
    const names = error.args.map((arg) => (typeof arg === 'string' ? arg : (arg.name ?? '')).toUpperCase())
    return { code: 'USAGE', message: `missing argument: ${names.join(' and ')}`, hint: help }
  }
  const sentences = listSentences(error.message)
  const [first = ''] = sentences
  const foreignWord = sentences.length === 1 ? describeForeignWord(first, help) : undefined
  if (foreignWord) return foreignWord
  const mistakes = sentences.map(describeSentence)
  const [field] = mistakes.flatMap((mistake) => mistake.field ?? [])
  const message = [...new Set(mistakes.map((mistake) => mistake.message))].join('; ')
  return { code: 'USAGE', message, ...(field === undefined ? {} : { field }), hint: help }
}

/** The sentences of a message, without what frames them. That of a value continues below the flag. */
function listSentences(message: string): string[] {
  const lines = stripVTControlCharacters(message)
    .split('\n')
    .map((line) => line.trim())
  const sentences = lines.filter(
    (line) => line !== '' && !line.startsWith('See more help') && !/^The following errors? occurred:$/.test(line),
  )
  return sentences[0]?.startsWith('Parsing --') ? [sentences.join(' ')] : sentences
}

function describeUnexpected(unexpected: readonly string[], attempt: FailedAttempt): Failure {
  return {
    code: 'USAGE',
    message: `unexpected argument: ${unexpected.join(' ')}`,
    hint: placeUnexpected(unexpected, attempt) ?? toHelpCommand(attempt),
  }
}

/** The command line with a flag before `--`, or a filter behind its flag; undefined if the words are neither. */
function placeUnexpected(unexpected: readonly string[], attempt: FailedAttempt): string | undefined {
  const { command, argv, flags } = attempt
  const [first = ''] = unexpected
  const end = argv.indexOf('--')
  if (end !== -1 && /^-./.test(first)) {
    const names = argv.slice(end + 1, argv.length - unexpected.length)
    return toDashForm([...argv.slice(0, end), ...unexpected], names, attempt)
  }
  if (!flags.includes('filter') || unexpected.length > 1 || !/[=<>]/.test(first)) return undefined
  const words = argv.flatMap((word) => (word === first ? ['--filter', word] : [word]))
  return toCommandLine(command, words)
}

function describeUnknownFlag({ parse }: ParserError, unknownFlags: readonly string[], attempt: FailedAttempt): Failure {
  const [unknown = ''] = unknownFlags
  const zitiFlag = ZITI_FLAGS[unknown]
  const near =
    zitiFlag !== undefined && attempt.flags.includes(zitiFlag)
      ? [zitiFlag]
      : findNearest(unknown.replace(/^-+/, ''), attempt.flags)
  const flags = near.length > 0 ? near.map((flag) => `--${flag}`).join(', ') : toHelpCommand(attempt)
  const takesName = parse !== undefined && Object.keys(parse.input.args).length > 0
  const hasName = parse?.output.raw.some(({ type }) => type === 'arg')
  const others = attempt.argv.filter((word) => word !== unknown && word !== '--')
  return {
    code: 'USAGE',
    message: `unknown flag: ${unknownFlags.join(', ')}`,
    hint:
      /^-[^-]/.test(unknown) && takesName && !hasName && zitiFlag === undefined
        ? `for a name that begins with a dash, ${toDashForm(others, [unknown], attempt)}; ${flags}`
        : flags,
  }
}

/** The command line with names that may begin with a dash. */
function toDashForm(flags: readonly string[], names: readonly string[], { command }: FailedAttempt): string {
  return `with all flags before --: ${toCommandLine(command, [...flags, '--', ...names])}`
}

/** The failure if the parser says that a flag or an argument is none of its words; the hint is the word that it resembles. */
function describeForeignWord(sentence: string, help: string): Failure | undefined {
  const [subject = '', list] = sentence.split(' to be one of: ')
  if (list === undefined || !subject.startsWith('Expected ')) return undefined
  const [, flag, value = ''] = /^(?:(--[^=]+)=)?(.*)/s.exec(subject.slice('Expected '.length)) ?? []
  const near = findNearest(value, list.split(', ')).map((word) => (flag === undefined ? word : `${flag} ${word}`))
  return {
    code: 'USAGE',
    message: `${flag === undefined ? value : `${flag} ${value}`} is not one of ${list}`,
    ...(flag === undefined ? {} : { field: flag.slice(2) }),
    hint: near.length > 0 ? near.join(', ') : help,
  }
}

interface UsageMistake {
  readonly message: string
  /** The flag. */
  readonly field?: string | undefined
}

/** The messages of the parser about a flag, and this program's messages in their place, by the words of the form. */
const FORMS: readonly (readonly [form: RegExp, describe: (flag: string, words: string) => string])[] = [
  [
    /^Parsing --(\S+) Expected an integer but received: (.*)$/s,
    (flag, value) => `--${flag} must be a whole number, not ${value}`,
  ],
  [
    /^Parsing --(\S+) Expected an integer greater than or equal to (\S+) .*$/s,
    (flag, least) => `--${flag} must be at least ${least}`,
  ],
  [
    /^Parsing --(\S+) Expected an integer less than or equal to (\S+) .*$/s,
    (flag, most) => `--${flag} must be at most ${most}`,
  ],
  [/^Flag --(\S+) can only be specified once$/, (flag) => `--${flag} is set twice, and takes one value`],
  [/^Flag --(\S+) expects one of these values: (.*)$/, (flag, list) => `--${flag} requires a value: one of ${list}`],
  [/^Flag --(\S+) expects a value$/, (flag) => `--${flag} requires a value`],
  [/^Missing required flag (\S+)$/, (flag) => `missing flag: --${flag}`],
  [/^All of the following must be provided when using --(\S+): (.*)$/, (flag, list) => `--${flag} requires ${list}`],
]

function describeSentence(sentence: string): UsageMistake {
  // Each of the two flags is a sentence of its own, with the other one.
  const [, excluded, other] = /^--([^=\s]+)(?:=.*)? cannot also be provided when using --(\S+)$/s.exec(sentence) ?? []
  if (excluded !== undefined && other !== undefined) {
    const [first, second] = [excluded, other].sort()
    return { message: `--${first} and --${second} exclude each other`, field: first }
  }
  for (const [form, describe] of FORMS) {
    const [, flag, words = ''] = form.exec(sentence) ?? []
    if (flag !== undefined) return { message: describe(flag, words), field: flag }
  }
  return { message: sentence }
}
