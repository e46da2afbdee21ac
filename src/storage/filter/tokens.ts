// Splits the text of a query into tokens: words, numbers, strings and signs.
import { parseTime } from '../../foundation/clock.ts'
import { filterError } from './filter-error.ts'
import type { Literal, Position } from './tree.ts'

const KEYWORDS = new Set([
  ...['and', 'or', 'not', 'in', 'between', 'contains', 'icontains', 'anyof', 'allof', 'count', 'isempty', 'true'],
  ...['false', 'null', 'sort', 'by', 'asc', 'desc', 'skip', 'limit', 'none', 'from', 'where'],
])

export type Token = {
  readonly at: Position
  /** White space, or the beginning of the text, precedes it. */
  readonly hasSpaceBefore: boolean
  /** The word or sign as the client wrote it, for messages. */
  readonly text: string
} & (
  | { readonly kind: 'keyword'; readonly word: string }
  | { readonly kind: 'symbol' }
  | { readonly kind: 'literal'; readonly literal: Literal }
  | { readonly kind: 'sign'; readonly sign: string }
  | { readonly kind: 'end' }
)

// No legitimate query comes near these; both bound the parser and the SQL statement.
const MAX_TEXT_LENGTH = 16_384
const MAX_TOKENS = 4_000

const SPACE = /[ \t\r\n]+/y
// The first part of a symbol has only letters and underscores; the part after a dot is a user-defined key.
const WORD = /[A-Za-z][A-Za-z_]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![A-Za-z0-9_.])/y
// biome-ignore lint/suspicious/noControlCharactersInRegex: the grammar excludes just these
const STRING = /"(?:[^"\\\u0000-\u001f]|\\["\\fnrt])*"/y
// Also matches an unclosed bracket: searching for it after each of many such words would be quadratic.
const DATETIME = /datetime\(([^)]*)(\)?)/y
const SIGN = /<=|>=|!=|[=<>()[\],]/y
const ESCAPES: Readonly<Record<string, string>> = { f: '\f', n: '\n', r: '\r', t: '\t' }

/** @throws INVALID_FILTER at the first character that does not belong to a token */
export function tokenize(text: string): Token[] {
  const start = { line: 1, column: 1 }
  if (text.length > MAX_TEXT_LENGTH)
    throw filterError(`a query may have ${MAX_TEXT_LENGTH} characters, this one has more,`, start)
  const lines = new Lines(text)
  const tokens: Token[] = []
  let offset = 0
  let hasSpaceBefore = true
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = offset
    const match = pattern.exec(text) ?? undefined
    if (match) offset += match[0].length
    return match
  }
  while (offset < text.length) {
    if (take(SPACE)) {
      hasSpaceBefore = true
      continue
    }
    const at = lines.toPosition(offset)
    tokens.push(readToken(take, at, hasSpaceBefore, text, offset))
    if (tokens.length > MAX_TOKENS)
      throw filterError(`a query may have ${MAX_TOKENS} words and signs, this one has more,`, at)
    hasSpaceBefore = false
  }
  tokens.push({ kind: 'end', at: lines.toPosition(offset), hasSpaceBefore: true, text: 'the end' })
  return tokens
}

function readToken(
  take: (pattern: RegExp) => RegExpExecArray | undefined,
  at: Position,
  hasSpaceBefore: boolean,
  text: string,
  offset: number,
): Token {
  const date = take(DATETIME)
  if (date) {
    const dateText = (date[1] ?? '').trim()
    if (!date[2]) throw filterError('a date-time that does not end,', at)
    const value = parseTime(dateText)
    if (value === undefined) throw filterError(`"${clipToken(dateText)}" is not an RFC 3339 date-time`, at)
    return { kind: 'literal', literal: { kind: 'date', value }, at, hasSpaceBefore, text: date[0] }
  }
  const word = take(WORD)?.[0]
  if (word !== undefined) return toWordToken(word, at, hasSpaceBefore)
  const number = take(NUMBER)?.[0]
  if (number !== undefined) {
    if (!Number.isFinite(Number(number))) throw filterError(`${clipToken(number)} is too large a number`, at)
    return {
      kind: 'literal',
      literal: { kind: 'number', value: Number(number), text: number },
      at,
      hasSpaceBefore,
      text: number,
    }
  }
  const string = take(STRING)?.[0]
  if (string !== undefined) {
    return {
      kind: 'literal',
      literal: { kind: 'string', value: unescapeString(string) },
      at,
      hasSpaceBefore,
      text: string,
    }
  }
  const sign = take(SIGN)?.[0]
  if (sign !== undefined) return { kind: 'sign', sign, at, hasSpaceBefore, text: sign }
  const character = String.fromCodePoint(text.codePointAt(offset) ?? 0)
  if (character === '"')
    throw filterError('a string that does not end, or holds an escape or character that it may not,', at)
  throw filterError(`the character ${JSON.stringify(character)} has no meaning`, at)
}

function toWordToken(word: string, at: Position, hasSpaceBefore: boolean): Token {
  const lower = word.toLowerCase()
  if (!KEYWORDS.has(lower)) return { kind: 'symbol', at, hasSpaceBefore, text: word }
  if (lower === 'true' || lower === 'false') {
    return {
      kind: 'literal',
      literal: { kind: 'boolean', value: lower === 'true' },
      at,
      hasSpaceBefore,
      text: word,
    }
  }
  if (lower === 'null') return { kind: 'literal', literal: { kind: 'null' }, at, hasSpaceBefore, text: word }
  return { kind: 'keyword', word: lower, at, hasSpaceBefore, text: word }
}

function unescapeString(quoted: string): string {
  return quoted.slice(1, -1).replace(/\\(.)/g, (_, escaped: string) => ESCAPES[escaped] ?? escaped)
}

function clipToken(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}

/** Converts ascending offsets to lines and columns in one pass. */
class Lines {
  readonly #text: string
  #offset = 0
  #line = 1
  #lineStart = 0

  constructor(text: string) {
    this.#text = text
  }

  toPosition(offset: number): Position {
    for (; this.#offset < offset; this.#offset++) {
      if (this.#text[this.#offset] === '\n') {
        this.#line += 1
        this.#lineStart = this.#offset + 1
      }
    }
    return { line: this.#line, column: offset - this.#lineStart + 1 }
  }
}
