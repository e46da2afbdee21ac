// Regular expressions that clients send: matched in time proportional to the expression and the text, whatever they are.
// The engine's own expressions can take exponential time, so this is an automaton that follows all alternatives at once.

/** An error in an expression. */
export class PatternError extends Error {
  override readonly name = 'PatternError'
}

/** A state of the automaton. */
type State =
  | { readonly kind: 'match' }
  | { readonly kind: 'character'; readonly test: CharacterTest; readonly next: State }
  | { readonly kind: 'split'; readonly branches: State[] }
  | { readonly kind: 'start' | 'end'; readonly next: State }

type CharacterTest = (character: string) => boolean

/** Part of an expression: makes the states that match it before `next`. */
type Part = (next: State) => State

const MAX_LENGTH = 200
const NOTHING: Part = (next) => next
const CLASSES: Readonly<Record<string, CharacterTest>> = {
  d: (character) => character >= '0' && character <= '9',
  w: (character) => /^[A-Za-z0-9_]$/.test(character),
  s: (character) => /^[\t\n\f\r ]$/.test(character),
}

/**
 * An expression with the usual syntax: `. [] ^ $ * + ? | () (?:)`, `\d \w \s` and their negations, and escaped characters.
 * Counted repetition, back references and flags are not among it.
 * @throws PatternError
 */
export class LinearPattern {
  readonly #first: State

  constructor(source: string) {
    if (source.length > MAX_LENGTH) throw new PatternError(`has more than ${MAX_LENGTH} characters`)
    this.#first = new Parser([...source]).parse()({ kind: 'match' })
  }

  /** Whether any part of the text matches. */
  test(text: string): boolean {
    const characters = [...text]
    let states = new Set<State>()
    for (let at = 0; at <= characters.length; at++) {
      const place = { isStart: at === 0, isEnd: at === characters.length }
      if (enter(this.#first, place, states)) return true
      const character = characters[at]
      if (character === undefined) return false
      const following = new Set<State>()
      const nextPlace = { isStart: false, isEnd: at + 1 === characters.length }
      for (const state of states) {
        if (state.kind === 'character' && state.test(character) && enter(state.next, nextPlace, following)) return true
      }
      states = following
    }
    return false
  }
}

/** Adds a state and those that follow without a character. Returns whether the match is among them. */
function enter(first: State, { isStart, isEnd }: { isStart: boolean; isEnd: boolean }, states: Set<State>): boolean {
  const waiting = [first]
  for (let state = waiting.pop(); state; state = waiting.pop()) {
    if (states.has(state)) continue
    states.add(state)
    if (state.kind === 'match') return true
    if (state.kind === 'split') waiting.push(...state.branches)
    else if ((state.kind === 'start' && isStart) || (state.kind === 'end' && isEnd)) waiting.push(state.next)
  }
  return false
}

class Parser {
  readonly #source: readonly string[]
  #at = 0

  constructor(source: readonly string[]) {
    this.#source = source
  }

  parse(): Part {
    const whole = this.#parseAlternatives()
    if (this.#peek() !== undefined) throw new PatternError('has a ) without its (')
    return whole
  }

  #peek(): string | undefined {
    return this.#source[this.#at]
  }

  /** Passes over a character, if it comes next. */
  #skip(character: string): boolean {
    if (this.#peek() !== character) return false
    this.#at += 1
    return true
  }

  #take(): string {
    const character = this.#peek()
    if (character === undefined) throw new PatternError('ends too early')
    this.#at += 1
    return character
  }

  #parseAlternatives(): Part {
    const alternatives = [this.#parseSequence()]
    while (this.#skip('|')) alternatives.push(this.#parseSequence())
    const [only] = alternatives
    if (only && alternatives.length === 1) return only
    return (next) => ({ kind: 'split', branches: alternatives.map((alternative) => alternative(next)) })
  }

  #parseSequence(): Part {
    let sequence = NOTHING
    for (let next = this.#peek(); next !== undefined && next !== '|' && next !== ')'; next = this.#peek()) {
      const [before, part] = [sequence, this.#parseRepeated()]
      sequence = (following) => before(part(following))
    }
    return sequence
  }

  #parseRepeated(): Part {
    let part = this.#parseSingle()
    for (let mark = this.#peek(); mark === '*' || mark === '+' || mark === '?'; mark = this.#peek()) {
      this.#at += 1
      // A mark that asks for few repetitions changes what is matched, not whether anything is.
      this.#skip('?')
      part = repeatNode(part, mark)
    }
    if (this.#peek() === '{') throw new PatternError('has a counted repetition, which is not supported: escape {')
    return part
  }

  #parseSingle(): Part {
    const character = this.#take()
    if (character === '(') return this.#parseGroup()
    if (character === '[') return toPart(this.#parseSet())
    if (character === '.') return toPart((candidate) => candidate !== '\n')
    if (character === '^') return (next) => ({ kind: 'start', next })
    if (character === '$') return (next) => ({ kind: 'end', next })
    if (character === '\\') return toPart(this.#parseEscape())
    if ('*+?'.includes(character)) throw new PatternError(`has a ${character} that repeats nothing`)
    return toPart((candidate) => candidate === character)
  }

  #parseGroup(): Part {
    if (this.#skip('?') && !this.#skip(':')) throw new PatternError('has a group of an unknown kind')
    const inside = this.#parseAlternatives()
    if (!this.#skip(')')) throw new PatternError('has a ( without its )')
    return inside
  }

  /** Parses what follows a backslash: a class, or a character that stands for itself. */
  #parseEscape(): CharacterTest {
    const character = this.#take()
    const lowerCase = character.toLowerCase()
    const inClass = Object.hasOwn(CLASSES, lowerCase) ? CLASSES[lowerCase] : undefined
    if (inClass) return character === lowerCase ? inClass : (candidate) => !inClass(candidate)
    if (/^[A-Za-z0-9]$/.test(character)) throw new PatternError(`has \\${character}, which is not supported`)
    return (candidate) => candidate === character
  }

  #parseSet(): CharacterTest {
    const isNegated = this.#skip('^')
    const tests: CharacterTest[] = []
    // A bracket that comes first stands for itself.
    for (let isFirst = true; isFirst || this.#peek() !== ']'; isFirst = false) tests.push(this.#parseRange())
    this.#at += 1
    return (candidate) => tests.some((test) => test(candidate)) !== isNegated
  }

  #parseRange(): CharacterTest {
    const low = this.#take()
    if (low === '\\') return this.#parseEscape()
    const [dash, high] = [this.#peek(), this.#source[this.#at + 1]]
    if (dash !== '-' || high === undefined || high === ']') return (candidate) => candidate === low
    this.#at += 2
    if (high < low || high === '\\') throw new PatternError(`has the range ${low}-${high}, which is empty`)
    return (candidate) => candidate >= low && candidate <= high
  }
}

function toPart(test: CharacterTest): Part {
  return (next) => ({ kind: 'character', test, next })
}

function repeatNode(part: Part, mark: '*' | '+' | '?'): Part {
  return (next) => {
    if (mark === '?') return { kind: 'split', branches: [part(next), next] }
    const split: State = { kind: 'split', branches: [next] }
    const inside = part(split)
    split.branches.push(inside)
    return mark === '+' ? inside : split
  }
}
