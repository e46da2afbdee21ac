// Conditions on tags: users' own keys, whose values have whatever type the literal beside them asks for.
import { type SqlBool, sql } from 'kysely'
import type { SqlDialect } from '../store/dialects/sql-dialect.ts'
import { type Column, type ComparisonNode, type Condition, isEquality, toNeedle } from './comparisons.ts'
import type { Literal, Position } from './tree.ts'

const PREFIX = 'tags.'

/** The key that a symbol names: all that follows the first dot, so that keys may hold dots. */
export function parseTagKey(symbolName: string): string | undefined {
  return symbolName.startsWith(PREFIX) ? symbolName.slice(PREFIX.length) : undefined
}

/** The condition that a comparison makes of one tag; false where the tag is missing, as `not` needs it. */
export function compileTagCondition(
  words: SqlDialect,
  node: ComparisonNode,
  tags: Column,
  key: string,
  at: Position,
): Condition {
  const tag = new Tag(words, tags, key)
  return sql<SqlBool>`coalesce(${conditionOf(words, node, tag, at)}, false)`
}

/** One tag as text, as number, and its type. */
class Tag {
  readonly text: Column
  readonly number: Column
  readonly type: Column

  constructor(words: SqlDialect, tags: Column, key: string) {
    const path = [key]
    this.text = words.memberText(tags, path)
    this.type = words.memberType(tags, path)
    this.number = sql`case when ${this.type} in ('integer', 'real') then ${words.member(tags, path)} end`
  }
}

function conditionOf(words: SqlDialect, node: ComparisonNode, tag: Tag, at: Position): Condition {
  switch (node.kind) {
    case 'in':
      return membership(words, node.values, tag)
    case 'between':
      if (node.low.kind !== 'number' || node.high.kind !== 'number') return NEVER
      return sql<SqlBool>`(${tag.number} >= ${node.low.value} and ${tag.number} < ${node.high.value})`
    case 'compare':
      return comparison(words, node, tag, at)
  }
}

// Tags hold no date-times, so nothing compares with one, and everything differs from it.
const NEVER = sql<SqlBool>`1 = 0`
const ALWAYS = sql<SqlBool>`1 = 1`

function membership(words: SqlDialect, literals: readonly Literal[], tag: Tag): Condition {
  const kind = literals[0]?.kind
  if (kind === 'date') return NEVER
  const values = literals.map((literal) => (literal as { value: string | number }).value)
  return words.isOneOf(kind === 'number' ? tag.number : tag.text, values)
}

function comparison(
  words: SqlDialect,
  { operator, right }: Extract<ComparisonNode, { kind: 'compare' }>,
  tag: Tag,
  at: Position,
): Condition {
  if (operator === 'contains') return words.contains(tag.text, toNeedle(right))
  if (operator === 'icontains') return words.containsIgnoringCase(tag.text, toNeedle(right))
  switch (right.kind) {
    case 'null':
      return operator === '=' ? sql<SqlBool>`${tag.text} is null` : sql<SqlBool>`${tag.text} is not null`
    case 'boolean': {
      // A tag that is missing or no boolean counts as false.
      const isTrue = sql<SqlBool>`coalesce(${tag.type} = 'true', false)`
      return right.value === isEquality(operator, 'true and false', at) ? isTrue : sql<SqlBool>`not ${isTrue}`
    }
    case 'date':
      return operator === '!=' ? ALWAYS : NEVER
    default: {
      const value = right.kind === 'number' ? tag.number : tag.text
      return operator === '!='
        ? sql<SqlBool>`${value} is distinct from ${right.value}`
        : sql<SqlBool>`${value} ${sql.raw(operator)} ${right.value}`
    }
  }
}
