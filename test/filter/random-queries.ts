// Random queries of the filter language, each with what it means: written from the grammar, apart from what is tested.
import type { Random } from '../world/random.ts'

/** A record as a query sees it: plain values by symbol, sets as arrays, tags as they are. */
export type Seen = Readonly<Record<string, unknown>> & { readonly tags: Readonly<Record<string, unknown>> }

/** A symbol of a list, and values that literals may be made from. */
export interface Known {
  readonly type: 'string' | 'number' | 'boolean' | 'date' | 'set' | 'tags'
  readonly name: string
  readonly values: readonly unknown[]
  /** Records that a set names, for sub-queries: what they are, and how to find them. */
  readonly inner?: { readonly symbols: readonly Known[]; find(id: string): Seen | undefined }
}

export interface Generated {
  readonly text: string
  passes(record: Seen): boolean
}

const upper = (text: string) => text.toUpperCase()

/** Order by bytes of UTF-8, as the documents promise; JavaScript compares by UTF-16. */
export function compareText(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function compare(operator: string, order: number): boolean {
  return { '=': order === 0, '!=': order !== 0, '<': order < 0, '<=': order <= 0, '>': order > 0, '>=': order >= 0 }[
    operator
  ] as boolean
}

const OPERATORS = ['=', '!=', '<', '<=', '>', '>='] as const

export class QueryMaker {
  readonly #random: Random
  readonly #symbols: readonly Known[]

  constructor(random: Random, symbols: readonly Known[]) {
    this.#random = random
    this.#symbols = symbols
  }

  /** expr = unary [ (and | or) expr ], `and` and `or` alike, grouping to the right; `not` takes all that follows. */
  expression(depth = 0): Generated {
    const random = this.#random
    if (random.oneIn(6)) {
      const inner = this.expression(depth + 1)
      return { text: `${this.#word('not')}${this.#space()}${inner.text}`, passes: (record) => !inner.passes(record) }
    }
    const left = this.#primary(depth)
    if (depth > 3 || random.oneIn(2)) return left
    const right = this.expression(depth + 1)
    const isAnd = random.oneIn(2)
    return {
      text: `${left.text}${this.#space()}${this.#word(isAnd ? 'and' : 'or')}${this.#space()}${right.text}`,
      passes: (record) =>
        isAnd ? left.passes(record) && right.passes(record) : left.passes(record) || right.passes(record),
    }
  }

  #primary(depth: number): Generated {
    const random = this.#random
    if (depth < 4 && random.oneIn(5)) {
      const inner = this.expression(depth + 1)
      return { text: `(${this.#gap()}${inner.text}${this.#gap()})`, passes: inner.passes }
    }
    if (random.oneIn(20))
      return random.oneIn(2) ? { text: 'true', passes: () => true } : { text: 'FALSE', passes: () => false }
    const symbol = random.pick(this.#symbols)
    if (symbol.type === 'set') return this.#setTest(symbol, depth)
    if (symbol.type === 'tags') return this.#tagTest()
    if (symbol.type === 'boolean') return this.#booleanTest(symbol)
    const { name } = symbol
    const { text, holds } = this.#test(symbol)
    return { text: `${name}${text}`, passes: (record) => holds(record[name]) }
  }

  /** A test of a symbol as text, and its result for a value. */
  #test(symbol: Known): { text: string; holds(value: unknown): boolean } {
    const random = this.#random
    if (random.oneIn(12)) {
      const isNull = random.oneIn(2)
      return {
        text: `${this.#gap()}${isNull ? '=' : '!='}${this.#gap()}null`,
        holds: (value) => ((value ?? null) === null) === isNull,
      }
    }
    switch (symbol.type) {
      case 'string':
        return this.#stringTest(symbol)
      case 'number':
        return this.#numberTest(symbol, String)
      default:
        return this.#numberTest(symbol, (value) => `datetime(${new Date(value).toISOString()})`)
    }
  }

  #stringTest(symbol: Known): { text: string; holds(value: unknown): boolean } {
    const random = this.#random
    const literal = () => {
      const value = String(random.pick(symbol.values) ?? 'x')
      return random.oneIn(4)
        ? Array.from(value)
            .slice(0, random.below(value.length + 1))
            .join('')
        : value
    }
    const ofText = (holds: (value: string) => boolean) => (value: unknown) => typeof value === 'string' && holds(value)
    if (random.oneIn(4)) {
      const [isNegated, isFolded] = [random.oneIn(3), random.oneIn(2)]
      const needle = Array.from(literal()).slice(0, 3).join('')
      const typedNeedle = isFolded && random.oneIn(2) ? needle.toLowerCase() : needle
      const holds = ofText((value) =>
        isFolded ? upper(value).includes(upper(typedNeedle)) : value.includes(typedNeedle),
      )
      const word = this.#word(isFolded ? 'icontains' : 'contains')
      const text = `${this.#space()}${isNegated ? `not${this.#space()}` : ''}${word}${this.#space()}${quoted(typedNeedle)}`
      return { text, holds: (value) => holds(value) !== isNegated }
    }
    if (random.oneIn(4)) {
      const values = Array.from({ length: 1 + random.below(3) }, literal)
      const isNegated = random.oneIn(3)
      const text = `${this.#space()}${isNegated ? 'not ' : ''}${this.#word('in')}${this.#space()}[${values.map(quoted).join(', ')}]`
      return { text, holds: (value) => ofText((found) => values.includes(found))(value) !== isNegated }
    }
    const operator = random.pick(OPERATORS)
    const operand = literal()
    const holds = ofText((value) => compare(operator, compareText(value, operand)))
    // A missing value differs from every other one.
    return {
      text: `${this.#gap()}${operator}${this.#gap()}${quoted(operand)}`,
      holds: (value) => (value === null || value === undefined ? operator === '!=' : holds(value)),
    }
  }

  #numberTest(symbol: Known, shown: (value: number) => string): { text: string; holds(value: unknown): boolean } {
    const random = this.#random
    const literal = () => ((random.pick(symbol.values) as number | null) ?? 0) + random.pick([0, 0, 0, 1, -1])
    const ofNumber = (holds: (value: number) => boolean) => (value: unknown) =>
      typeof value === 'number' && holds(value)
    if (random.oneIn(4)) {
      const [low, high] = [literal(), literal()]
      const isNegated = random.oneIn(3)
      const text = ` ${isNegated ? 'not ' : ''}${this.#word('between')} ${shown(low)} and ${shown(high)}`
      return { text, holds: (value) => ofNumber((found) => found >= low && found < high)(value) !== isNegated }
    }
    if (random.oneIn(4)) {
      const values = Array.from({ length: 1 + random.below(3) }, literal)
      const isNegated = random.oneIn(3)
      const text = ` ${isNegated ? 'not ' : ''}in [${values.map(shown).join(',')}]`
      return { text, holds: (value) => ofNumber((found) => values.includes(found))(value) !== isNegated }
    }
    const operator = random.pick(OPERATORS)
    const operand = literal()
    const holds = ofNumber((value) => compare(operator, value - operand))
    return {
      text: `${this.#gap()}${operator}${this.#gap()}${shown(operand)}`,
      holds: (value) => (value === null || value === undefined ? operator === '!=' : holds(value)),
    }
  }

  #booleanTest({ name }: Known): Generated {
    const random = this.#random
    if (random.oneIn(3)) return { text: name, passes: (record) => record[name] === true }
    const [wanted, isEqual] = [random.oneIn(2), random.oneIn(2)]
    return {
      text: `${name}${this.#gap()}${isEqual ? '=' : '!='}${this.#gap()}${wanted}`,
      passes: (record) => ((record[name] === true) === wanted) === isEqual,
    }
  }

  #setTest(symbol: Known, depth: number): Generated {
    const random = this.#random
    const { name } = symbol
    const elements = (record: Seen) => record[name] as readonly string[]
    if (random.oneIn(4)) return this.#countTest(name, (record) => elements(record).length)
    if (random.oneIn(5))
      return { text: `${this.#word('isEmpty')}(${name})`, passes: (record) => elements(record).length === 0 }
    if (symbol.inner && depth < 3 && random.oneIn(2)) return this.#subQuery(symbol, symbol.inner)
    const isAny = random.oneIn(2)
    const { text, holds } = this.#stringTest(symbol)
    // `not in` and the like are the opposite of the whole: nothing in the set passes what is not negated.
    const isNegated = /^\s+not\s/.test(text)
    const one = isNegated ? (value: string) => !holds(value) : holds
    const all = (record: Seen) => (isAny ? elements(record).some(one) : elements(record).every(one))
    return {
      text: `${this.#word(isAny ? 'anyOf' : 'allOf')}(${this.#gap()}${name}${this.#gap()})${text}`,
      passes: (record) => all(record) !== isNegated,
    }
  }

  #subQuery({ name }: Known, { symbols, find }: NonNullable<Known['inner']>): Generated {
    const query = new QueryMaker(this.#random, symbols).expression(3)
    const findMatches = (record: Seen) =>
      (record[name] as readonly string[]).flatMap((id) => find(id) ?? []).filter((inner) => query.passes(inner))
    const argument = `from ${name} where ${query.text}`
    if (this.#random.oneIn(2))
      return { text: `isEmpty(${argument})`, passes: (record) => findMatches(record).length === 0 }
    return this.#countTest(argument, (record) => findMatches(record).length)
  }

  #countTest(argument: string, count: (record: Seen) => number): Generated {
    const { text, holds } = this.#numberTest({ type: 'number', name: 'count', values: [0, 1, 2, 3] }, String)
    return { text: `${this.#word('count')}(${argument})${text}`, passes: (record) => holds(count(record)) }
  }

  #tagTest(): Generated {
    const random = this.#random
    const key = random.pick(['site', 'floor', 'on', 'none', 'a.b', 'room-1'])
    const value = (record: Seen) => record.tags[key] ?? null
    const at = `tags.${key}`
    if (random.oneIn(4)) {
      const [wanted, isEqual] = [random.oneIn(2), random.oneIn(2)]
      return {
        text: `${at} ${isEqual ? '=' : '!='} ${wanted}`,
        passes: (record) => ((value(record) === true) === wanted) === isEqual,
      }
    }
    if (random.oneIn(2)) {
      const { text, holds } = this.#numberTest({ type: 'number', name: at, values: [0, 1, 2, 5, 2.5] }, String)
      return {
        text: `${at}${text}`,
        passes: (record) => holds(typeof value(record) === 'number' ? value(record) : null),
      }
    }
    const { text, holds } = this.#stringTest({
      type: 'string',
      name: at,
      values: ['north', 'south', 'true', '5', '2.5'],
    })
    const readView = (record: Seen) => (value(record) === null ? null : String(value(record)))
    return { text: `${at}${text}`, passes: (record) => holds(readView(record)) }
  }

  // ---- how it is written ----

  #word(word: string): string {
    return this.#random.pick([word, word, word.toUpperCase(), word.toLowerCase()])
  }

  #space(): string {
    return this.#random.pick([' ', ' ', '  ', '\t', '\n'])
  }

  #gap(): string {
    return this.#random.pick(['', '', ' ', '\t'])
  }
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&').replace(/\n/g, '\\n').replace(/\t/g, '\\t')}"`
}
