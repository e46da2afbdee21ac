// Tests of one value against literals, by the type of the symbol: the same for columns, set elements and counts.
import { type Expression, type SqlBool, sql } from 'kysely'
import type { FilterSymbol } from '../model/filter-symbols.ts'
import type { SqlDialect } from '../store/dialects/sql-dialect.ts'
import { filterError } from './filter-error.ts'
import type { Comparison, Literal, Position, Predicate } from './tree.ts'

export type Condition = Expression<SqlBool>
export type Column = Expression<unknown>

/** A predicate that compares something with literals. */
export type ComparisonNode = Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>

/** What a test needs to know of the values it is for. */
export type TypedSymbol = Pick<FilterSymbol, 'name' | 'type' | 'isNullable' | 'values'>

/** A condition on one value. */
export type Test = (value: Column) => Condition

/** The number of elements of a set. */
export const COUNT: TypedSymbol = { name: 'count', type: 'integer', isNullable: false }

/** The test that a predicate makes of values of its type. @throws INVALID_FILTER where the types do not go together */
export function compileTest(words: SqlDialect, node: ComparisonNode, typed: TypedSymbol, at: Position): Test {
  switch (node.kind) {
    case 'compare':
      return comparison(words, node.operator, node.right, typed, at)
    case 'in':
      return membership(words, node.values, typed, at)
    case 'between':
      return range(node.low, node.high, typed, at)
  }
}

/** A boolean that is missing counts as false. */
export function compileBooleanTest(value: Column, wanted: boolean, isNullable: boolean): Condition {
  const known = isNullable ? sql`coalesce(${value}, 0)` : value
  return sql<SqlBool>`${known} = ${wanted ? 1 : 0}`
}

/** `=` and `!=` are all that true and false, and names for groups of values, can be compared by. */
export function isEquality(operator: Comparison, what: string, at: Position): boolean {
  if (operator !== '=' && operator !== '!=') throw filterError(`${operator} does not compare ${what}`, at)
  return operator === '='
}

/** The text that `contains` looks for. */
export function toNeedle(literal: Literal): string {
  return literal.kind === 'number' ? literal.text : (literal as { value: string }).value
}

function comparison(words: SqlDialect, operator: Comparison, literal: Literal, typed: TypedSymbol, at: Position): Test {
  if (literal.kind === 'null') {
    return (value) => (operator === '=' ? sql<SqlBool>`${value} is null` : sql<SqlBool>`${value} is not null`)
  }
  if (operator === 'contains' || operator === 'icontains') return containment(words, operator, literal, typed, at)
  const found = comparable(typed, literal, at)
  if (Array.isArray(found)) return groupTest(words, isEquality(operator, `"${typed.name}"`, at), found)
  if (typed.type === 'boolean') {
    const wanted = (found === 1) === isEquality(operator, 'true and false', at)
    return (value) => compileBooleanTest(value, wanted, typed.isNullable)
  }
  // A missing value differs from every other one.
  if (operator === '!=' && typed.isNullable) return (value) => sql<SqlBool>`${value} is distinct from ${found}`
  return (value) => sql<SqlBool>`${value} ${sql.raw(operator)} ${found}`
}

function groupTest(words: SqlDialect, isEqual: boolean, stored: readonly string[]): Test {
  return (value) => {
    const isOne = words.isOneOf(value, stored)
    return isEqual ? isOne : sql<SqlBool>`not (${isOne})`
  }
}

function containment(
  words: SqlDialect,
  operator: 'contains' | 'icontains',
  literal: Literal,
  typed: TypedSymbol,
  at: Position,
): Test {
  const isNumber = typed.type === 'integer'
  if (typed.type !== 'string' && !(isNumber && operator === 'contains')) {
    throw filterError(`${operator} is for text, and "${typed.name}" is none,`, at)
  }
  const needle = toNeedle(literal)
  return (value) => {
    const text = isNumber ? words.asText(value) : value
    return operator === 'contains' ? words.contains(text, needle) : words.containsIgnoringCase(text, needle)
  }
}

function membership(words: SqlDialect, literals: readonly Literal[], typed: TypedSymbol, at: Position): Test {
  if (typed.type === 'boolean') throw filterError(`"${typed.name}" is true or false: compare it with =,`, at)
  const values = literals.flatMap((literal) => comparable(typed, literal, at))
  return (value) => words.isOneOf(value, values)
}

/** The lower bound belongs to the range, the upper one does not. */
function range(low: Literal, high: Literal, typed: TypedSymbol, at: Position): Test {
  if (typed.type !== 'integer' && typed.type !== 'date') {
    throw filterError(`between is for numbers and date-times, and "${typed.name}" is neither,`, at)
  }
  const from = comparable(typed, low, at)
  const to = comparable(typed, high, at)
  return (value) => sql<SqlBool>`(${value} >= ${from} and ${value} < ${to})`
}

/** A literal as the value that a symbol of its type is compared with; an array where it stands for several. */
function comparable(typed: TypedSymbol, literal: Literal, at: Position): string | number | string[] {
  const key = literal.kind === 'string' || literal.kind === 'number' ? literal.value : undefined
  const stored = key === undefined ? undefined : typed.values?.get(String(key))
  if (stored) return [...stored]
  switch (typed.type) {
    case 'string':
      if (literal.kind === 'string') return literal.value
      if (literal.kind === 'number') return literal.text
      break
    case 'integer':
      if (literal.kind === 'number') return literal.value
      break
    case 'boolean':
      if (literal.kind === 'boolean') return literal.value ? 1 : 0
      break
    case 'date':
      if (literal.kind === 'date') return literal.value
      break
    default:
  }
  const what = `"${typed.name}" is a ${toTypeName(typed.type)} and does not compare with a ${toTypeName(literal.kind)},`
  throw filterError(what, at)
}

const TYPE_NAMES: Readonly<Record<string, string>> = { string: 'text', integer: 'number', date: 'date-time' }

function toTypeName(type: string): string {
  return TYPE_NAMES[type] ?? type
}
