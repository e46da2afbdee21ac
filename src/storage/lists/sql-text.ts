// SQL that is composed as text. Kysely composes trees of frozen objects and compiles them: for a list that cost more than running
// its statements. Statements that are compiled once are Kysely's.
import { type Expression, type OperationNode, RawNode, type SqlBool, ValueNode } from 'kysely'

/** A piece of SQL with its parameters. It is an expression of Kysely too, for statements that are built by it. */
export class SqlText<T = unknown> implements Expression<T> {
  /** The SQL before, between and after the parameters. */
  readonly pieces: readonly string[]
  readonly parameters: readonly unknown[]

  constructor(pieces: readonly string[], parameters: readonly unknown[]) {
    this.pieces = pieces
    this.parameters = parameters
  }

  get expressionType(): T | undefined {
    return undefined
  }

  toOperationNode(): OperationNode {
    return RawNode.create(
      this.pieces,
      this.parameters.map((value) => ValueNode.create(value)),
    )
  }
}

/** Composes SQL: a value that is SQL is inserted, any other one becomes a parameter. */
export function sqlText<T = unknown>(strings: TemplateStringsArray, ...values: readonly unknown[]): SqlText<T> {
  const pieces = [strings[0] ?? '']
  const parameters: unknown[] = []
  for (const [at, value] of values.entries()) {
    if (value instanceof SqlText) append(pieces, parameters, value)
    else {
      parameters.push(value)
      pieces.push('')
    }
    pieces[pieces.length - 1] += strings[at + 1] ?? ''
  }
  return new SqlText<T>(pieces, parameters)
}

/** A column, with its table before a dot if it is named. */
sqlText.ref = (name: string): SqlText => new SqlText([name.split('.').map(quoteName).join('.')], [])

sqlText.table = (name: string): SqlText => new SqlText([quoteName(name)], [])

/** Text of this program, never of a caller. */
sqlText.raw = (text: string): SqlText => new SqlText([text], [])

/** A number as part of the text. */
sqlText.lit = (value: number): SqlText => new SqlText([String(value)], [])

sqlText.join = (items: readonly SqlText[], separator: SqlText = COMMA): SqlText => {
  const pieces = ['']
  const parameters: unknown[] = []
  for (const [at, item] of items.entries()) {
    if (at > 0) append(pieces, parameters, separator)
    append(pieces, parameters, item)
  }
  return new SqlText(pieces, parameters)
}

const COMMA = sqlText`, `

/** The condition that every row meets, see `toWhere`. */
export const ALWAYS = sqlText<SqlBool>`1 = 1`

/**
 * The `where` clause of these conditions. `ALWAYS` is left out: without a condition, SQLite counts all rows of a table by the
 * sizes of its pages, which takes 15 µs for 100,000 rows instead of 870.
 */
export function toWhere(conditions: readonly SqlText<SqlBool>[]): SqlText {
  const restrictive = conditions.filter((condition) => condition !== ALWAYS)
  return restrictive.length === 0 ? sqlText`` : sqlText` where ${sqlText.join(restrictive, sqlText` and `)}`
}

/**
 * Joins conditions as a balanced tree, because a database counts a chain of a thousand terms as a thousand levels, and rejects
 * it.
 */
export function joinConditions(terms: readonly SqlText<SqlBool>[], operator: 'and' | 'or'): SqlText<SqlBool> {
  if (terms.length <= 2) return sqlText<SqlBool>`(${sqlText.join(terms, sqlText.raw(` ${operator} `))})`
  const middle = Math.ceil(terms.length / 2)
  const halves = [terms.slice(0, middle), terms.slice(middle)]
  return joinConditions(
    halves.map((half) => joinConditions(half, operator)),
    operator,
  )
}

function append(pieces: string[], parameters: unknown[], text: SqlText): void {
  const [first = '', ...others] = text.pieces
  pieces[pieces.length - 1] += first
  pieces.push(...others)
  parameters.push(...text.parameters)
}

function quoteName(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
