// Compiles comparisons of one value with literals, by the type of the symbol: for columns, set elements and counts alike.
import type { SqlBool } from 'kysely'
import type { FilterSymbol } from '../../definitions/model/filter-symbols.ts'
import { type SqlText, sqlText } from '../lists/sql-text.ts'
import type { SqlDialect } from '../sql-dialect.ts'
import { filterError } from './filter-error.ts'
import type { Comparison, Literal, Position, Predicate } from './tree.ts'

export type Condition = SqlText<SqlBool>
export type Column = SqlText

/** A predicate that compares something with literals. */
export type ComparisonNode = Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>

/** The part of a symbol that a comparison depends on. */
export type TypedSymbol = Pick<FilterSymbol, 'name' | 'type' | 'isNullable' | 'values'>

/** A condition on one value. */
export type Test = (value: Column) => Condition

/** The number of elements of a set. */
export const COUNT_SYMBOL: TypedSymbol = { name: 'count', type: 'integer', isNullable: false }

/** Compiles a predicate to a test of values. @throws INVALID_FILTER if the types are not comparable */
export function compileTest(sqlDialect: SqlDialect, node: ComparisonNode, typed: TypedSymbol, at: Position): Test {
  switch (node.kind) {
    case 'compare':
      return compileComparison(sqlDialect, node.operator, node.right, typed, at)
    case 'in':
      return compileMembership(sqlDialect, node.values, typed, at)
    case 'between':
      return compileRange(node.low, node.high, typed, at)
  }
}

/** A boolean that is missing counts as false. */
export function compileBooleanTest(value: Column, expected: boolean, isNullable: boolean): Condition {
  const operand = isNullable ? sqlText`coalesce(${value}, 0)` : value
  return sqlText<SqlBool>`${operand} = ${expected ? 1 : 0}`
}

/** Whether the operator is `=`. @throws INVALID_FILTER unless it is `=` or `!=`: booleans and value groups have no order */
export function isEquality(operator: Comparison, what: string, at: Position): boolean {
  if (operator !== '=' && operator !== '!=') throw filterError(`${operator} does not compare ${what}`, at)
  return operator === '='
}

/** Returns the text that `contains` searches for. */
export function toNeedle(literal: Literal): string {
  return literal.kind === 'number' ? literal.text : (literal as { value: string }).value
}

function compileComparison(
  sqlDialect: SqlDialect,
  operator: Comparison,
  literal: Literal,
  typed: TypedSymbol,
  at: Position,
): Test {
  if (literal.kind === 'null') {
    return (value) => (operator === '=' ? sqlText<SqlBool>`${value} is null` : sqlText<SqlBool>`${value} is not null`)
  }
  if (operator === 'contains' || operator === 'icontains')
    return compileContainment(sqlDialect, operator, literal, typed, at)
  const operand = toComparable(typed, literal, at)
  if (Array.isArray(operand)) return compileGroupTest(sqlDialect, isEquality(operator, `"${typed.name}"`, at), operand)
  if (typed.type === 'boolean') {
    const expected = (operand === 1) === isEquality(operator, 'true and false', at)
    return (value) => compileBooleanTest(value, expected, typed.isNullable)
  }
  // A missing value differs from every other one.
  if (operator === '!=' && typed.isNullable) return (value) => sqlText<SqlBool>`${value} is distinct from ${operand}`
  return (value) => sqlText<SqlBool>`${value} ${sqlText.raw(operator)} ${operand}`
}

function compileGroupTest(sqlDialect: SqlDialect, isEqual: boolean, values: readonly string[]): Test {
  return (value) => {
    const isOne = sqlDialect.isOneOf(value, values)
    return isEqual ? isOne : sqlText<SqlBool>`not (${isOne})`
  }
}

function compileContainment(
  sqlDialect: SqlDialect,
  operator: 'contains' | 'icontains',
  literal: Literal,
  typed: TypedSymbol,
  at: Position,
): Test {
  const isNumber = typed.type === 'integer'
  if (typed.type !== 'string' && !(isNumber && operator === 'contains')) {
    throw filterError(`${operator} is for text, and "${typed.name}" is not text,`, at)
  }
  const needle = toNeedle(literal)
  return (value) => {
    const text = isNumber ? sqlDialect.asText(value) : value
    return operator === 'contains' ? sqlDialect.contains(text, needle) : sqlDialect.containsIgnoringCase(text, needle)
  }
}

function compileMembership(
  sqlDialect: SqlDialect,
  literals: readonly Literal[],
  typed: TypedSymbol,
  at: Position,
): Test {
  if (typed.type === 'boolean') throw filterError(`"${typed.name}" is true or false: compare it with =,`, at)
  const values = literals.flatMap((literal) => toComparable(typed, literal, at))
  return (value) => sqlDialect.isOneOf(value, values)
}

/** The lower bound is inclusive, the upper bound exclusive. */
function compileRange(low: Literal, high: Literal, typed: TypedSymbol, at: Position): Test {
  if (typed.type !== 'integer' && typed.type !== 'date') {
    throw filterError(`between is for numbers and date-times, and "${typed.name}" is neither,`, at)
  }
  const from = toComparable(typed, low, at)
  const to = toComparable(typed, high, at)
  return (value) => sqlText<SqlBool>`(${value} >= ${from} and ${value} < ${to})`
}

/** Converts a literal to the value to compare with; to an array if it names a group of values. */
function toComparable(typed: TypedSymbol, literal: Literal, at: Position): string | number | string[] {
  const key = literal.kind === 'string' || literal.kind === 'number' ? literal.value : undefined
  const storedValues = key === undefined ? undefined : typed.values?.get(String(key))
  if (storedValues) return [...storedValues]
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
