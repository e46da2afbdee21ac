// From the words of a query to its tree: predicate, sort, skip and limit, in this order.
import { LRUCache } from 'lru-cache'
import type { ControllerError } from '../errors.ts'
import { filterError } from './filter-error.ts'
import { type Token, tokenize } from './tokens.ts'
import type { Comparison, Literal, Operand, Predicate, Query, SetArgument, SortKey, SymbolNode } from './tree.ts'

// Deep nesting has no use and would only fill the stack.
const MAX_DEPTH = 64

const MAX_CACHE_BYTES = 2 * 1024 * 1024
// The densest text is a list of digits: each of them, with its comma, becomes a literal.
const TREE_BYTES_PER_CHARACTER = 32

const cache = new LRUCache<string, Query>({
  maxSize: MAX_CACHE_BYTES,
  sizeCalculation: (_query, text) => (TREE_BYTES_PER_CHARACTER + 2) * text.length,
})

/** Parses a query. The trees of recent texts are cached. @throws INVALID_FILTER with line and column */
export function parseQuery(text: string): Query {
  const cached = cache.get(text)
  if (cached) return cached
  const query = new Parser(tokenize(text)).wholeQuery()
  cache.set(text, query)
  return query
}

/** Parses what may follow `sort by`. @throws INVALID_FILTER with line and column */
export function parseSort(text: string): readonly SortKey[] {
  return new Parser(tokenize(text)).wholeSort()
}

const SIGNS: Readonly<Record<string, Comparison>> = { '=': '=', '!=': '!=', '<': '<', '<=': '<=', '>': '>', '>=': '>=' }

class Parser {
  readonly #tokens: readonly Token[]
  #next = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  wholeQuery(): Query {
    if (this.#current.kind === 'end') throw this.#unexpected('a query')
    const query = this.#query()
    this.#end()
    return query
  }

  wholeSort(): readonly SortKey[] {
    const keys = this.#sortKeys()
    this.#end()
    return keys
  }

  // ---- clauses ----

  #query(): Query {
    const isClause = this.#isKeyword('sort') || this.#isKeyword('skip') || this.#isKeyword('limit')
    const predicate = isClause ? undefined : this.#predicate()
    const sort = this.#isKeyword('sort') ? this.#sort() : []
    const skip = this.#isKeyword('skip') ? this.#skip() : undefined
    const limit = this.#isKeyword('limit') ? this.#limit() : undefined
    return {
      ...(predicate ? { predicate } : {}),
      sort,
      ...(skip === undefined ? {} : { skip }),
      ...(limit === undefined ? {} : { limit }),
    }
  }

  #sort(): readonly SortKey[] {
    this.#apartKeyword('sort')
    this.#apartKeyword('by')
    return this.#sortKeys()
  }

  #sortKeys(): SortKey[] {
    const keys = [this.#sortKey()]
    while (this.#takeSign(',')) keys.push(this.#sortKey())
    return keys
  }

  #sortKey(): SortKey {
    const symbol = this.#symbol()
    const isDescending = this.#isKeyword('desc')
    if (isDescending || this.#isKeyword('asc')) this.#next += 1
    return { symbol, isDescending }
  }

  #skip(): number {
    this.#apartKeyword('skip')
    return this.#wholeNumber('skip')
  }

  #limit(): number | 'none' {
    this.#apartKeyword('limit')
    if (this.#isKeyword('none')) {
      this.#next += 1
      return 'none'
    }
    return this.#wholeNumber('limit')
  }

  #wholeNumber(clause: string): number {
    const token = this.#take()
    if (token.kind !== 'literal' || token.literal.kind !== 'number') throw this.#unexpected('a number', token)
    if (!Number.isSafeInteger(token.literal.value))
      throw filterError(`${clause} needs a whole number, not ${token.text},`, token.at)
    return token.literal.value
  }

  // ---- predicates ----

  /** `and` and `or` have the same precedence and group to the right, as the peer's clients know it. */
  #predicate(): Predicate {
    const depth = this.#depth
    this.#deepen()
    const terms = [this.#term()]
    const operators: ('and' | 'or')[] = []
    for (;;) {
      const token = this.#current
      if (token.kind !== 'keyword' || (token.word !== 'and' && token.word !== 'or')) break
      this.#apartKeyword(token.word)
      // What follows another operator belongs to its right side, one level further in.
      if (operators.length > 0 && operators.at(-1) !== token.word) this.#deepen()
      operators.push(token.word)
      terms.push(this.#term())
    }
    this.#depth = depth
    return operators.reduceRight<Predicate>((right, operator, at) => {
      const left = terms[at] as Predicate
      return right.kind === operator
        ? { kind: operator, terms: [left, ...right.terms] }
        : { kind: operator, terms: [left, right] }
    }, terms.at(-1) as Predicate)
  }

  #deepen(): void {
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) throw filterError('nested too deeply', this.#current.at)
  }

  #term(): Predicate {
    if (this.#isKeyword('not')) {
      this.#next += 1
      this.#apart('not')
      // `not` takes the whole rest of the expression: `not a and b` is `not (a and b)`.
      return { kind: 'not', term: this.#predicate() }
    }
    if (this.#takeSign('(')) {
      const inner = this.#predicate()
      this.#sign(')')
      return inner
    }
    if (this.#isKeyword('isempty')) {
      this.#next += 1
      return { kind: 'isEmpty', set: this.#inBrackets(() => this.#setArgument()) }
    }
    const token = this.#current
    if (token.kind === 'literal' && token.literal.kind === 'boolean') {
      this.#next += 1
      return { kind: 'constant', value: token.literal.value }
    }
    return this.#comparison()
  }

  #comparison(): Predicate {
    const left = this.#operand()
    const token = this.#current
    if (token.kind === 'sign' && SIGNS[token.sign]) {
      this.#next += 1
      return this.#relation(left, SIGNS[token.sign] as Comparison)
    }
    const isNegated = this.#isKeyword('not') && this.#isOperator(this.#tokens[this.#next + 1])
    if (isNegated) this.#apartKeyword('not')
    const predicate = this.#wordOperator(left)
    if (predicate) return isNegated ? { kind: 'not', term: predicate } : predicate
    if (left.kind === 'symbol') return left
    throw this.#unexpected('a comparison')
  }

  #relation(left: Operand, operator: Comparison): Predicate {
    const token = this.#current
    const right = this.#literal()
    const isOrdered = operator !== '=' && operator !== '!='
    if (isOrdered && (right.kind === 'boolean' || right.kind === 'null')) {
      throw filterError(`${operator} does not compare with ${token.text}`, token.at)
    }
    return { kind: 'compare', left, operator, right }
  }

  #wordOperator(left: Operand): Predicate | undefined {
    if (this.#isKeyword('contains') || this.#isKeyword('icontains')) {
      const operator = this.#take().text.toLowerCase() as 'contains' | 'icontains'
      this.#apart(operator)
      const token = this.#current
      const right = this.#literal()
      if (right.kind !== 'string' && !(right.kind === 'number' && operator === 'contains')) {
        throw filterError(`${operator} does not compare with ${token.text}`, token.at)
      }
      return { kind: 'compare', left, operator, right }
    }
    if (this.#isKeyword('in')) {
      this.#apartKeyword('in')
      return { kind: 'in', left, values: this.#array() }
    }
    if (this.#isKeyword('between')) {
      this.#apartKeyword('between')
      const low = this.#bound()
      this.#apartKeyword('and')
      const at = this.#current.at
      const high = this.#bound()
      if (low.kind !== high.kind) throw filterError('the bounds of between are of two kinds', at)
      return { kind: 'between', left, low, high }
    }
    return undefined
  }

  #array(): Literal[] {
    this.#sign('[')
    const values: Literal[] = []
    do {
      const token = this.#current
      const literal = this.#literal()
      const first = values[0]
      if (literal.kind === 'boolean' || literal.kind === 'null' || (first && first.kind !== literal.kind)) {
        throw filterError(`${token.text} does not fit into this list`, token.at)
      }
      values.push(literal)
    } while (this.#takeSign(','))
    this.#sign(']')
    return values
  }

  #bound(): Literal {
    const token = this.#current
    const literal = this.#literal()
    if (literal.kind !== 'number' && literal.kind !== 'date') {
      throw filterError(`between takes numbers or date-times, not ${token.text},`, token.at)
    }
    return literal
  }

  // ---- operands ----

  #operand(): Operand {
    if (this.#isKeyword('anyof') || this.#isKeyword('allof')) {
      const kind = this.#take().text.toLowerCase() === 'anyof' ? 'anyOf' : 'allOf'
      return { kind, symbol: this.#inBrackets(() => this.#symbol()) }
    }
    if (this.#isKeyword('count')) {
      this.#next += 1
      return { kind: 'count', set: this.#inBrackets(() => this.#setArgument()) }
    }
    return this.#symbol()
  }

  #setArgument(): SetArgument {
    if (!this.#isKeyword('from')) return { symbol: this.#symbol() }
    this.#next += 1
    this.#apart('from')
    const symbol = this.#symbol()
    this.#apartKeyword('where')
    return { symbol, query: this.#query() }
  }

  #inBrackets<T>(inner: () => T): T {
    if (this.#current.isApart) throw this.#unexpected('( directly after the function')
    this.#sign('(')
    const value = inner()
    this.#sign(')')
    return value
  }

  #symbol(): SymbolNode {
    const token = this.#take()
    if (token.kind !== 'symbol') throw this.#unexpected('the name of a field', token)
    return { kind: 'symbol', name: token.text, at: token.at }
  }

  #literal(): Literal {
    const token = this.#take()
    if (token.kind !== 'literal') throw this.#unexpected('a value', token)
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

  /** A keyword with white space on both sides. */
  #apartKeyword(word: string): void {
    if (!this.#isKeyword(word) || !this.#current.isApart) throw this.#unexpected(`"${word}"`)
    this.#next += 1
    this.#apart(word)
  }

  #apart(word: string): void {
    if (!this.#current.isApart) throw this.#unexpected(`a space after "${word}"`)
  }

  #takeSign(sign: string): boolean {
    const token = this.#current
    if (token.kind !== 'sign' || token.sign !== sign) return false
    this.#next += 1
    return true
  }

  #sign(sign: string): void {
    if (!this.#takeSign(sign)) throw this.#unexpected(sign)
  }

  #end(): void {
    if (this.#current.kind !== 'end') throw this.#unexpected('the end')
  }

  #unexpected(wanted: string, token: Token = this.#current): ControllerError {
    return filterError(`${wanted} expected, ${token.kind === 'end' ? 'the end' : `"${token.text}"`} found`, token.at)
  }
}
