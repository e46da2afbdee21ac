// Compiles conditions on tags: user-defined keys, whose values compare by the type of the literal.
import type { SqlBool } from 'kysely'
import { sqlText } from '../lists/sql-text.ts'
import type { SqlDialect } from '../sql-dialect.ts'
import { type Column, type ComparisonNode, type Condition, isEquality, toNeedle } from './comparisons.ts'
import type { Literal, Position } from './tree.ts'

const PREFIX = 'tags.'

/** Returns the tag key of a symbol: everything after the first dot, so keys may contain dots. */
export function parseTagKey(symbolName: string): string | undefined {
  return symbolName.startsWith(PREFIX) ? symbolName.slice(PREFIX.length) : undefined
}

/** Compiles a comparison of one tag. The condition is false if the tag is missing, so that `not` inverts it. */
export function compileTagCondition(
  sqlDialect: SqlDialect,
  node: ComparisonNode,
  tags: Column,
  key: string,
  at: Position,
): Condition {
  const tag = new Tag(sqlDialect, tags, key)
  return sqlText<SqlBool>`coalesce(${compileCondition(sqlDialect, node, tag, at)}, false)`
}

/** One tag as text, as number, and its type. */
class Tag {
  readonly text: Column
  readonly number: Column
  readonly type: Column

  constructor(sqlDialect: SqlDialect, tags: Column, key: string) {
    const path = [key]
    this.text = sqlDialect.memberText(tags, path)
    this.type = sqlDialect.memberType(tags, path)
    this.number = sqlText`case when ${this.type} in ('integer', 'real') then ${sqlDialect.member(tags, path)} end`
  }
}

function compileCondition(sqlDialect: SqlDialect, node: ComparisonNode, tag: Tag, at: Position): Condition {
  switch (node.kind) {
    case 'in':
      return compileTagMembership(sqlDialect, node.values, tag)
    case 'between':
      if (node.low.kind !== 'number' || node.high.kind !== 'number') return NEVER
      return sqlText<SqlBool>`(${tag.number} >= ${node.low.value} and ${tag.number} < ${node.high.value})`
    case 'compare':
      return compileTagComparison(sqlDialect, node, tag, at)
  }
}

// Tags hold no date-times: no tag equals one, and every tag differs from it.
const NEVER = sqlText<SqlBool>`1 = 0`
const ALWAYS = sqlText<SqlBool>`1 = 1`

function compileTagMembership(sqlDialect: SqlDialect, literals: readonly Literal[], tag: Tag): Condition {
  const kind = literals[0]?.kind
  if (kind === 'date') return NEVER
  const values = literals.map((literal) => (literal as { value: string | number }).value)
  return sqlDialect.isOneOf(kind === 'number' ? tag.number : tag.text, values)
}

function compileTagComparison(
  sqlDialect: SqlDialect,
  { operator, right }: Extract<ComparisonNode, { kind: 'compare' }>,
  tag: Tag,
  at: Position,
): Condition {
  if (operator === 'contains') return sqlDialect.contains(tag.text, toNeedle(right))
  if (operator === 'icontains') return sqlDialect.containsIgnoringCase(tag.text, toNeedle(right))
  switch (right.kind) {
    case 'null':
      return operator === '=' ? sqlText<SqlBool>`${tag.text} is null` : sqlText<SqlBool>`${tag.text} is not null`
    case 'boolean': {
      // A tag that is missing or not a boolean counts as false.
      const isTrue = sqlText<SqlBool>`coalesce(${tag.type} = 'true', false)`
      return right.value === isEquality(operator, 'true and false', at) ? isTrue : sqlText<SqlBool>`not ${isTrue}`
    }
    case 'date':
      return operator === '!=' ? ALWAYS : NEVER
    default: {
      const value = right.kind === 'number' ? tag.number : tag.text
      return operator === '!='
        ? sqlText<SqlBool>`${value} is distinct from ${right.value}`
        : sqlText<SqlBool>`${value} ${sqlText.raw(operator)} ${right.value}`
    }
  }
}
