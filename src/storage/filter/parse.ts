// Parses a query into its syntax tree: predicate, sort, skip and limit, in this order.
import { LRUCache } from 'lru-cache'
import type { ControllerError } from '../../foundation/errors.ts'
import { filterError } from './filter-error.ts'
import { type Token, tokenize } from './tokens.ts'
import type { Comparison, Literal, Operand, Predicate, Query, SetArgument, SortKey, SymbolNode } from './tree.ts'

// Deeper nesting has no use and would exhaust the stack.
const MAX_DEPTH = 64

const MAX_CACHE_BYTES = 2 * 1024 * 1024
// The worst case is a list of digits: each digit, with its comma, becomes a literal.
const TREE_BYTES_PER_CHARACTER = 32

const cache = new LRUCache<string, Query>({
  maxSize: MAX_CACHE_BYTES,
  sizeCalculation: (_query, text) => (TREE_BYTES_PER_CHARACTER + 2) * text.length,
})

/** Parses a query. The trees of recent texts are cached. @throws INVALID_FILTER with line and column */
export function parseQuery(text: string): Query {
  const cached = cache.get(text)
  if (cached) return cached
  const query = new Parser(tokenize(text)).parseWholeQuery()
  cache.set(text, query)
  return query
}

/** Parses what may follow `sort by`. @throws INVALID_FILTER with line and column */
export function parseSort(text: string): readonly SortKey[] {
  return new Parser(tokenize(text)).parseWholeSort()
}

const SIGNS: Readonly<Record<string, Comparison>> = { '=': '=', '!=': '!=', '<': '<', '<=': '<=', '>': '>', '>=': '>=' }

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  parseWholeQuery(): Query {
    if (this.#current.kind === 'end') throw this.toSyntaxError('a query')
    const query = this.#parseQuery()
    this.#expectEnd()
    return query
  }

  parseWholeSort(): readonly SortKey[] {
    const keys = this.#parseSortKeys()
    this.#expectEnd()
    return keys
  }

  // ---- clauses ----

  #parseQuery(): Query {
    const isClause = this.#isKeyword('sort') || this.#isKeyword('skip') || this.#isKeyword('limit')
    const predicate = isClause ? undefined : this.#parsePredicate()
    const sort = this.#isKeyword('sort') ? this.#parseSort() : []
    const skip = this.#isKeyword('skip') ? this.#parseSkip() : undefined
    const limit = this.#isKeyword('limit') ? this.#parseLimit() : undefined
    return { predicate, sort, skip, limit }
  }

  #parseSort(): readonly SortKey[] {
    this.#expectKeyword('sort')
    this.#expectKeyword('by')
    return this.#parseSortKeys()
  }

  #parseSortKeys(): SortKey[] {
    const keys = [this.#parseSortKey()]
    while (this.#takeSign(',')) keys.push(this.#parseSortKey())
    return keys
  }

  #parseSortKey(): SortKey {
    const symbol = this.#parseSymbol()
    const isDescending = this.#isKeyword('desc')
    if (isDescending || this.#isKeyword('asc')) this.#next += 1
    return { symbol, isDescending }
  }

  #parseSkip(): number {
    this.#expectKeyword('skip')
    return this.#parseInteger('skip')
  }

  #parseLimit(): number | 'none' {
    this.#expectKeyword('limit')
    if (this.#isKeyword('none')) {
      this.#next += 1
      return 'none'
    }
    return this.#parseInteger('limit')
  }

  #parseInteger(clause: string): number {
    const token = this.#take()
    if (token.kind !== 'literal' || token.literal.kind !== 'number') throw this.toSyntaxError('a number', token)
    if (!Number.isSafeInteger(token.literal.value))
      throw filterError(`${clause} needs a whole number, not ${token.text},`, token.at)
    return token.literal.value
  }

  // ---- predicates ----

  /** `and` and `or` have the same precedence and are right-associative, as in OpenZiti. */
  #parsePredicate(): Predicate {
    const depth = this.#depth
    this.#enterLevel()
    const terms = [this.#parseTerm()]
    const operators: ('and' | 'or')[] = []
    for (;;) {
      const token = this.#current
      if (token.kind !== 'keyword' || (token.word !== 'and' && token.word !== 'or')) break
      this.#expectKeyword(token.word)
      // The terms after a different operator belong to its right operand, one level deeper.
      if (operators.length > 0 && operators.at(-1) !== token.word) this.#enterLevel()
      operators.push(token.word)
      terms.push(this.#parseTerm())
    }
    this.#depth = depth
    return operators.reduceRight<Predicate>((right, operator, at) => {
      const left = terms[at] as Predicate
      return right.kind === operator
        ? { kind: operator, terms: [left, ...right.terms] }
        : { kind: operator, terms: [left, right] }
    }, terms.at(-1) as Predicate)
  }

  #enterLevel(): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw filterError('nested too deeply', this.#current.at)
  }

  #parseTerm(): Predicate {
    if (this.#isKeyword('not')) {
      this.#next += 1
      this.#expectSpaceAfter('not')
      // `not` takes the whole rest of the expression: `not a and b` is `not (a and b)`.
      return { kind: 'not', term: this.#parsePredicate() }
    }
    if (this.#takeSign('(')) {
      const inner = this.#parsePredicate()
      this.#expectSign(')')
      return inner
    }
    if (this.#isKeyword('isempty')) {
      this.#next += 1
      return { kind: 'isEmpty', set: this.#parseInBrackets(() => this.#parseSetArgument()) }
    }
    const token = this.#current
    if (token.kind === 'literal' && token.literal.kind === 'boolean') {
      this.#next += 1
      return { kind: 'constant', value: token.literal.value }
    }
    return this.#parseComparison()
  }

  #parseComparison(): Predicate {
    const left = this.#parseOperand()
    const token = this.#current
    if (token.kind === 'sign' && SIGNS[token.sign]) {
      this.#next += 1
      return this.#parseRelation(left, SIGNS[token.sign] as Comparison)
    }
    const isNegated = this.#isKeyword('not') && this.#isOperator(this.#tokens[this.#next + 1])
    if (isNegated) this.#expectKeyword('not')
    const predicate = this.#parseWordOperator(left)
    if (predicate) return isNegated ? { kind: 'not', term: predicate } : predicate
    if (left.kind === 'symbol') return left
    throw this.toSyntaxError('a comparison')
  }

  #parseRelation(left: Operand, operator: Comparison): Predicate {
    const token = this.#current
    const right = this.#parseLiteral()
    const isOrdered = operator !== '=' && operator !== '!='
    if (isOrdered && (right.kind === 'boolean' || right.kind === 'null')) {
      throw filterError(`${operator} does not compare with ${token.text}`, token.at)
    }
    return { kind: 'compare', left, operator, right }
  }

  #parseWordOperator(left: Operand): Predicate | undefined {
    if (this.#isKeyword('contains') || this.#isKeyword('icontains')) {
      const operator = this.#take().text.toLowerCase() as 'contains' | 'icontains'
      this.#expectSpaceAfter(operator)
      const token = this.#current
      const right = this.#parseLiteral()
      if (right.kind !== 'string' && !(right.kind === 'number' && operator === 'contains')) {
        throw filterError(`${operator} does not compare with ${token.text}`, token.at)
      }
      return { kind: 'compare', left, operator, right }
    }
    if (this.#isKeyword('in')) {
      this.#expectKeyword('in')
      return { kind: 'in', left, values: this.#parseArray() }
    }
    if (this.#isKeyword('between')) {
      this.#expectKeyword('between')
      const low = this.#parseBound()
      this.#expectKeyword('and')
      const at = this.#current.at
      const high = this.#parseBound()
      if (low.kind !== high.kind) throw filterError('the bounds of between are of two kinds', at)
      return { kind: 'between', left, low, high }
    }
    return undefined
  }

  #parseArray(): Literal[] {
    this.#expectSign('[')
    const values: Literal[] = []
    do {
      const token = this.#current
      const literal = this.#parseLiteral()
      const first = values[0]
      if (literal.kind === 'boolean' || literal.kind === 'null' || (first && first.kind !== literal.kind)) {
        throw filterError(`${token.text} does not fit into this list`, token.at)
      }
      values.push(literal)
    } while (this.#takeSign(','))
    this.#expectSign(']')
    return values
  }

  #parseBound(): Literal {
    const token = this.#current
    const literal = this.#parseLiteral()
    if (literal.kind !== 'number' && literal.kind !== 'date') {
      throw filterError(`between takes numbers or date-times, not ${token.text},`, token.at)
    }
    return literal
  }

  // ---- operands ----

  #parseOperand(): Operand {
    if (this.#isKeyword('anyof') || this.#isKeyword('allof')) {
      const kind = this.#take().text.toLowerCase() === 'anyof' ? 'anyOf' : 'allOf'
      return { kind, symbol: this.#parseInBrackets(() => this.#parseSymbol()) }
    }
    if (this.#isKeyword('count')) {
      this.#next += 1
      return { kind: 'count', set: this.#parseInBrackets(() => this.#parseSetArgument()) }
    }
    return this.#parseSymbol()
  }

  #parseSetArgument(): SetArgument {
    if (!this.#isKeyword('from')) return { symbol: this.#parseSymbol() }
    this.#next += 1
    this.#expectSpaceAfter('from')
    const symbol = this.#parseSymbol()
    this.#expectKeyword('where')
    return { symbol, query: this.#parseQuery() }
  }

  #parseInBrackets<T>(inner: () => T): T {
    if (this.#current.hasSpaceBefore) throw this.toSyntaxError('( directly after the function')
    this.#expectSign('(')
    const value = inner()
    this.#expectSign(')')
    return value
  }

  #parseSymbol(): SymbolNode {
    const token = this.#take()
    if (token.kind !== 'symbol') throw this.toSyntaxError('the name of a field', token)
    return { kind: 'symbol', name: token.text, at: token.at }
  }

  #parseLiteral(): Literal {
    const token = this.#take()
    if (token.kind !== 'literal') throw this.toSyntaxError('a value', token)
    return token.literal
  }

  // ---- tokens ----

  get #current(): Token {
    return this.#tokens[this.#next] as Token
  }

  #take(): Token {
    const token = this.#current
    if (token.kind !== 'end') this.#next += 1
    return token
  }

  #isKeyword(word: string): boolean {
    const token = this.#current
    return token.kind === 'keyword' && token.word === word
  }

  #isOperator(token: Token | undefined): boolean {
    return token?.kind === 'keyword' && ['in', 'between', 'contains', 'icontains'].includes(token.word)
  }

  /** Consumes a keyword with white space on both sides. */
  #expectKeyword(word: string): void {
    if (!this.#isKeyword(word) || !this.#current.hasSpaceBefore) throw this.toSyntaxError(`"${word}"`)
    this.#next += 1
    this.#expectSpaceAfter(word)
  }

  #expectSpaceAfter(word: string): void {
    if (!this.#current.hasSpaceBefore) throw this.toSyntaxError(`a space after "${word}"`)
  }

  #takeSign(sign: string): boolean {
    const token = this.#current
    if (token.kind !== 'sign' || token.sign !== sign) return false
    this.#next += 1
    return true
  }

  #expectSign(sign: string): void {
    if (!this.#takeSign(sign)) throw this.toSyntaxError(sign)
  }

  #expectEnd(): void {
    if (this.#current.kind !== 'end') throw this.toSyntaxError('the end')
  }

  toSyntaxError(expected: string, token: Token = this.#current): ControllerError {
    return filterError(`${expected} expected, ${token.kind === 'end' ? 'the end' : `"${token.text}"`} found`, token.at)
  }
}
