// From the tree of a query to SQL conditions, by the types of the symbols it names.
import { type Expression, type Kysely, type SqlBool, sql } from 'kysely'
import { errors } from '../errors.ts'
import type { AnyResource } from '../resources/define.ts'
import { resourceOf } from '../resources/index.ts'
import type { Database } from '../store/database.ts'
import { type SqlDialect, wordsOf } from '../store/dialects/dialect.ts'
import { setTableName } from '../store/rows.ts'
import { filterFault } from './faults.ts'
import { type FilterSymbol, symbolsOf } from './symbols.ts'
import type { Comparison, Literal, Operand, Position, Predicate, SetArgument, SortKey, SymbolNode } from './tree.ts'

type Condition = Expression<SqlBool>
type Column = Expression<unknown>

const TRUE = sql<SqlBool>`1 = 1`
const FALSE = sql<SqlBool>`1 = 0`

/** What a compiled predicate needs beside its condition. */
export interface Compiled {
  readonly condition: Condition
  /** The tables that it reads beside the resource's own. */
  readonly tables: ReadonlySet<string>
}

/** A test of one value: the same for a column and for the elements of a set. */
type Test = (value: Column, isNullable: boolean) => Condition

/**
 * Compiles predicates for one resource. `narrow` names the set tests (by their node) that few records pass: they are
 * asked of the set's table first, instead of each record in turn.
 */
export class FilterCompiler {
  readonly #db: Kysely<Database>
  readonly #words: SqlDialect
  readonly #resource: AnyResource
  readonly #narrow: ReadonlySet<Predicate>
  readonly #tables = new Set<string>()

  constructor(db: Kysely<Database>, resource: AnyResource, narrow: ReadonlySet<Predicate> = new Set()) {
    this.#db = db
    this.#words = wordsOf(db)
    this.#resource = resource
    this.#narrow = narrow
  }

  /** @throws INVALID_FILTER for unknown symbols, and for types that do not go together */
  compile(predicate: Predicate): Compiled {
    return { condition: this.#predicate(predicate, false), tables: this.#tables }
  }

  // ---- predicates ----

  /** `isNegated`: the condition stands below a `not`, where SQL's unknown must be false. */
  #predicate(node: Predicate, isNegated: boolean): Condition {
    switch (node.kind) {
      case 'and':
      case 'or': {
        const terms = node.terms.map((term) => this.#predicate(term, isNegated))
        return sql<SqlBool>`(${sql.join(terms, node.kind === 'and' ? sql` and ` : sql` or `)})`
      }
      case 'not':
        return sql<SqlBool>`not (${this.#predicate(node.term, true)})`
      case 'constant':
        return node.value ? TRUE : FALSE
      case 'symbol':
        return this.#bareSymbol(node)
      case 'isEmpty':
        return this.#isEmpty(node.set)
      default:
        return this.#test(node, isNegated)
    }
  }

  #bareSymbol(node: SymbolNode): Condition {
    const symbol = this.#symbol(node)
    if (symbol.type !== 'boolean' || symbol.isSet)
      throw filterFault(`"${node.name}" alone is neither true nor false,`, node.at)
    return this.#equalsBoolean(symbol, this.#column(symbol), true)
  }

  #test(node: Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>, isNegated: boolean): Condition {
    const { left } = node
    if (left.kind === 'count') return this.#testOf(node, countType, left)(this.#count(left.set), false)
    const symbol = this.#symbol(left.kind === 'symbol' ? left : left.symbol)
    const at = left.kind === 'symbol' ? left.at : left.symbol.at
    if (left.kind === 'symbol') {
      if (symbol.isSet) throw filterFault(`"${symbol.name}" is a set: use it in anyOf, allOf, count or isEmpty,`, at)
      const condition = this.#testOf(node, symbol, left)(this.#column(symbol, left.name), symbol.isNullable)
      return isNegated && symbol.isNullable ? sql<SqlBool>`coalesce(${condition}, false)` : condition
    }
    if (!symbol.isSet) throw filterFault(`"${symbol.name}" is no set, and ${left.kind} takes sets,`, at)
    const test = this.#testOf(node, symbol, left)
    if (left.kind === 'allOf')
      return sql<SqlBool>`not exists (${this.#elements(symbol)} where not (${test(VALUE, false)}))`
    const isEquality = (node.kind === 'compare' && node.operator === '=') || node.kind === 'in'
    return isEquality
      ? this.#anyEqual(symbol, test, node)
      : sql<SqlBool>`exists (${this.#elements(symbol)} where ${test(VALUE, false)})`
  }

  /** Equality with an element is asked of the set's own table, which is ordered by value. */
  #anyEqual(symbol: FilterSymbol, test: Test, node: Predicate): Condition {
    const table = setTableName(this.#resource, symbol.column)
    this.#tables.add(table)
    const own = sql.ref(`${this.#resource.table}.n`)
    const members = sql`select n from ${sql.table(table)} where ${test(sql.ref(`${table}.value`), false)}`
    return this.#narrow.has(node)
      ? sql<SqlBool>`${own} in (${members})`
      : sql<SqlBool>`exists (${members} and ${sql.ref(`${table}.n`)} = ${own})`
  }

  #elements(symbol: FilterSymbol) {
    return sql`select 1 from ${this.#words.elements(this.#column(symbol))}`
  }

  // ---- sets ----

  #isEmpty(set: SetArgument): Condition {
    if (set.query) return sql<SqlBool>`not exists (${this.#subQuery(set)})`
    return sql<SqlBool>`${this.#words.elementCount(this.#column(this.#set(set.symbol)))} = 0`
  }

  #count(set: SetArgument): Column {
    if (set.query) return sql`(select count(*) from (${this.#subQuery(set)}) as found)`
    return this.#words.elementCount(this.#column(this.#set(set.symbol)))
  }

  #set(node: SymbolNode): FilterSymbol {
    const symbol = this.#symbol(node)
    if (!symbol.isSet) throw filterFault(`"${node.name}" is no set,`, node.at)
    return symbol
  }

  /** The records that a set names, as far as they match the inner query. */
  #subQuery({ symbol: node, query }: SetArgument) {
    const symbol = this.#set(node)
    if (!symbol.linked) throw filterFault(`"${node.name}" names no records that could be asked about,`, node.at)
    const target = resourceOf(symbol.linked)
    this.#tables.add(target.table)
    const inner = new FilterCompiler(this.#db, target)
    const condition = query?.predicate ? inner.compile(query.predicate).condition : TRUE
    for (const table of inner.#tables) this.#tables.add(table)
    const ids = sql`(select value from ${this.#words.elements(this.#column(symbol))})`
    const limit = typeof query?.limit === 'number' ? sql` limit ${query.limit}` : sql``
    return sql`select 1 from ${sql.table(target.table)} where ${sql.ref(`${target.table}.id`)} in ${ids} and ${condition}${limit}`
  }

  // ---- symbols and columns ----

  #symbol(node: SymbolNode): FilterSymbol {
    const symbol = this.#find(node.name)
    if (!symbol) throw filterFault(`"${node.name}" is not a field of this list,`, node.at)
    return symbol
  }

  #find(name: string): FilterSymbol | undefined {
    const symbols = symbolsOf(this.#resource)
    if (name.startsWith('tags.')) return symbols.get('tags')
    const symbol = symbols.get(name)
    return symbol?.type === 'tags' ? undefined : symbol
  }

  #column(symbol: FilterSymbol, name = symbol.name): Column {
    if (symbol.constant !== undefined) return symbol.constant ? sql`1` : sql`0`
    const column = sql.ref(`${this.#resource.table}.${symbol.column}`)
    if (symbol.type === 'tags') return new TagColumn(column, [name.slice('tags.'.length)], this.#words).text
    return symbol.path ? this.#words.member(column, symbol.path) : column
  }

  // ---- tests ----

  #testOf(node: Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>, symbol: Typed, left: Operand): Test {
    const at = left.kind === 'symbol' ? left.at : left.kind === 'count' ? left.set.symbol.at : left.symbol.at
    if (symbol.type === 'tags' && left.kind === 'symbol') return this.#tagTest(node, left)
    switch (node.kind) {
      case 'compare':
        return this.#comparison(node.operator, node.right, symbol, at)
      case 'in':
        return this.#membership(node.values, symbol, at)
      case 'between':
        return this.#range(node.low, node.high, symbol, at)
    }
  }

  #comparison(operator: Comparison, literal: Literal, symbol: Typed, at: Position): Test {
    if (literal.kind === 'null') {
      return (value) => (operator === '=' ? sql<SqlBool>`${value} is null` : sql<SqlBool>`${value} is not null`)
    }
    if (operator === 'contains' || operator === 'icontains') return this.#containment(operator, literal, symbol, at)
    const found = comparable(symbol, literal, at)
    if (Array.isArray(found)) return this.#aliasTest(operator, found, symbol, at)
    if (symbol.type === 'boolean') {
      if (operator !== '=' && operator !== '!=') throw filterFault(`${operator} does not compare true and false,`, at)
      return (value) => this.#equalsBoolean(symbol, value, (found === 1) === (operator === '='))
    }
    return (value, isNullable) => {
      if (operator === '!=' && isNullable) return sql<SqlBool>`${value} is distinct from ${found}`
      return sql<SqlBool>`${value} ${sql.raw(operator)} ${found}`
    }
  }

  #aliasTest(operator: Comparison, stored: readonly string[], symbol: Typed, at: Position): Test {
    if (operator !== '=' && operator !== '!=') throw filterFault(`"${symbol.name}" has no order,`, at)
    return (value) => {
      const isOne = this.#words.isOneOf(value, stored)
      return operator === '=' ? isOne : sql<SqlBool>`not (${isOne})`
    }
  }

  #equalsBoolean(symbol: Pick<FilterSymbol, 'isNullable'>, value: Column, wanted: boolean): Condition {
    // A missing boolean counts as false.
    const known = symbol.isNullable ? sql`coalesce(${value}, 0)` : value
    return sql<SqlBool>`${known} = ${wanted ? 1 : 0}`
  }

  #containment(operator: 'contains' | 'icontains', literal: Literal, symbol: Typed, at: Position): Test {
    const isNumber = symbol.type === 'integer'
    if (symbol.type !== 'string' && !(isNumber && operator === 'contains')) {
      throw filterFault(`${operator} is for text, and "${symbol.name}" is none,`, at)
    }
    const needle = literal.kind === 'number' ? literal.text : (literal as { value: string }).value
    return (value) => {
      const text = isNumber ? this.#words.asText(value) : value
      return operator === 'contains'
        ? this.#words.contains(text, needle)
        : this.#words.containsIgnoringCase(text, needle)
    }
  }

  #membership(literals: readonly Literal[], symbol: Typed, at: Position): Test {
    const values = literals.flatMap((literal) => comparable(symbol, literal, at))
    if (symbol.type === 'boolean') throw filterFault(`"${symbol.name}" is true or false: compare it with =,`, at)
    return (value) => this.#words.isOneOf(value, values)
  }

  #range(low: Literal, high: Literal, symbol: Typed, at: Position): Test {
    if (symbol.type !== 'integer' && symbol.type !== 'date') {
      throw filterFault(`between is for numbers and date-times, and "${symbol.name}" is neither,`, at)
    }
    const from = comparable(symbol, low, at)
    const to = comparable(symbol, high, at)
    // The lower bound belongs to the range, the upper one does not.
    return (value) => sql<SqlBool>`(${value} >= ${from} and ${value} < ${to})`
  }

  // ---- tags: the literal decides the type ----

  #tagTest(node: Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>, left: SymbolNode): Test {
    const column = sql.ref(`${this.#resource.table}.tags`)
    const tag = new TagColumn(column, [left.name.slice('tags.'.length)], this.#words)
    const test = this.#tagCondition(node, tag, left.at)
    return () => sql<SqlBool>`coalesce(${test}, false)`
  }

  #tagCondition(
    node: Extract<Predicate, { kind: 'compare' | 'in' | 'between' }>,
    tag: TagColumn,
    at: Position,
  ): Condition {
    if (node.kind === 'in') {
      const kind = node.values[0]?.kind
      if (kind === 'date') return FALSE
      const values = node.values.map((literal) => (literal as { value: string | number }).value)
      return this.#words.isOneOf(kind === 'number' ? tag.number : tag.text, values)
    }
    if (node.kind === 'between') {
      if (node.low.kind !== 'number' || node.high.kind !== 'number') return FALSE
      return sql<SqlBool>`(${tag.number} >= ${node.low.value} and ${tag.number} < ${node.high.value})`
    }
    const { operator, right } = node
    if (operator === 'contains')
      return this.#words.contains(tag.text, right.kind === 'number' ? right.text : (right as { value: string }).value)
    if (operator === 'icontains') return this.#words.containsIgnoringCase(tag.text, (right as { value: string }).value)
    switch (right.kind) {
      case 'null':
        return operator === '=' ? sql<SqlBool>`${tag.text} is null` : sql<SqlBool>`${tag.text} is not null`
      case 'boolean': {
        if (operator !== '=' && operator !== '!=') throw filterFault(`${operator} does not compare true and false,`, at)
        // A tag that is missing or no boolean counts as false.
        const isTrue = sql<SqlBool>`coalesce(${tag.type} = 'true', false)`
        return right.value === (operator === '=') ? isTrue : sql<SqlBool>`not ${isTrue}`
      }
      case 'date':
        return operator === '!=' ? TRUE : FALSE
      default: {
        const value = right.kind === 'number' ? tag.number : tag.text
        return operator === '!='
          ? sql<SqlBool>`${value} is distinct from ${right.value}`
          : sql<SqlBool>`${value} ${sql.raw(operator)} ${right.value}`
      }
    }
  }

  // ---- order ----

  /** The columns to sort by, `id` last, so that pages never overlap. @throws INVALID_FILTER for what has no order */
  order(keys: readonly SortKey[]): { column: string; expression: Column; isDescending: boolean }[] {
    const order: { column: string; expression: Column; isDescending: boolean }[] = []
    for (const { symbol: node, isDescending } of keys) {
      const symbol = this.#symbol(node)
      if (symbol.isSet || symbol.type === 'tags')
        throw filterFault(`lists cannot be sorted by "${node.name}",`, node.at)
      if (symbol.constant !== undefined) continue
      order.push({ column: symbol.column, expression: this.#column(symbol), isDescending })
      if (symbol.column === 'id') return order
    }
    return [...order, { column: 'id', expression: sql.ref(`${this.#resource.table}.id`), isDescending: false }]
  }
}

type Typed = Pick<FilterSymbol, 'name' | 'type' | 'isNullable' | 'values'>

const VALUE = sql.ref('value')
const countType: Typed = { name: 'count', type: 'integer', isNullable: false }

/** One key of the tags, as text, as number, and its type. */
class TagColumn {
  readonly text: Column
  readonly number: Column
  readonly type: Column

  constructor(column: Column, path: readonly string[], words: SqlDialect) {
    this.text = words.memberText(column, path)
    this.type = words.memberType(column, path)
    this.number = sql`case when ${this.type} in ('integer', 'real') then ${words.member(column, path)} end`
  }
}

/** A literal as the value that a symbol of its type is compared with; an array where it stands for several. */
function comparable(symbol: Typed, literal: Literal, at: Position): string | number | string[] {
  const key = literal.kind === 'string' || literal.kind === 'number' ? literal.value : undefined
  const stored = key === undefined ? undefined : symbol.values?.[key]
  if (stored) return [...stored]
  switch (symbol.type) {
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
  throw filterFault(
    `"${symbol.name}" is a ${wordFor(symbol.type)} and does not compare with a ${wordFor(literal.kind)},`,
    at,
  )
}

function wordFor(type: string): string {
  return { string: 'text', integer: 'number', boolean: 'boolean', date: 'date-time', null: 'null' }[type] ?? type
}

/** The error for a `sort` parameter that cannot be used. */
export function sortFault(cause: unknown, message: string) {
  return errors.INVALID_SORT_IDENTIFIER({ code: 'INVALID_SORT_IDENTIFIER', message }, { cause })
}
