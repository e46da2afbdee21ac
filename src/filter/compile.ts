// From the tree of a query to SQL conditions, by the types of the symbols it names.
import { type Kysely, type SqlBool, sql } from 'kysely'
import type { FilterSource, FilterSymbol } from '../model/filter-symbols.ts'
import type { Database } from '../store/database.ts'
import { type SqlDialect, sqlDialect } from '../store/dialects/sql-dialect.ts'
import {
  COUNT,
  type Column,
  type ComparisonNode,
  type Condition,
  compileBooleanTest,
  compileTest,
  type Test,
} from './comparisons.ts'
import { filterError } from './filter-error.ts'
import { linkedSource } from './linked-source.ts'
import { compileSet, type SetSql, type SetSymbol } from './sets.ts'
import { compileTagCondition, parseTagKey } from './tags.ts'
import type { Operand, Position, Predicate, Query, SetArgument, SortKey, SymbolNode } from './tree.ts'

// What it costs to look at one record, in comparisons of two numbers: about 50 ns each, measured on 100,000 records.
const COST = {
  comparison: 1,
  /** Looks for a text in another. */
  contains: 2,
  /** The same with a call back into JavaScript, which alone knows the upper case of all letters. */
  icontains: 10,
  /** Takes a member out of a JSON object. */
  tag: 8,
  /** Goes through the members of a JSON array, or asks an index for one of them. */
  set: 8,
  /** Counts all this. */
  guard: 4,
  /** Is a query of its own over all that a policy may match. */
  matched: 200,
} as const

// A thousand comparisons of ids or names, or a hundred searches in text of any language, are more than any client sends.
const MAX_COST = 4_000

const TRUE = sql<SqlBool>`1 = 1`
const FALSE = sql<SqlBool>`1 = 0`

/** What a compiled predicate needs beside its condition. */
export interface CompiledFilter {
  readonly condition: Condition
  /** The tables that it reads beside the source's own. */
  readonly tables: ReadonlySet<string>
  /** What looking at one record costs, see `COST`. */
  readonly cost: number
}

/** What a list is sorted by. */
export interface OrderTerm {
  readonly expression: Column
  readonly isDescending: boolean
}

export interface CompilerOptions {
  /** The set tests that few records pass: the set's table is asked first, instead of each record in turn. */
  readonly narrow?: ReadonlySet<Predicate>
  /** Conditions count what they cost, see `SqlDialect.guard`. */
  readonly isGuarded?: boolean
}

const NONE: ReadonlySet<Predicate> = new Set()

/** Compiles predicates for one source. */
export class FilterCompiler {
  readonly #db: Kysely<Database>
  readonly #words: SqlDialect
  readonly #source: FilterSource
  readonly #narrow: ReadonlySet<Predicate>
  readonly #isGuarded: boolean
  readonly #tables = new Set<string>()
  #cost = 0

  constructor(db: Kysely<Database>, source: FilterSource, { narrow = NONE, isGuarded = false }: CompilerOptions = {}) {
    this.#db = db
    this.#isGuarded = isGuarded
    this.#words = sqlDialect(db)
    this.#source = source
    this.#narrow = narrow
  }

  /** @throws INVALID_FILTER for unknown symbols, for types that do not go together, and for what would cost too much */
  compile(predicate: Predicate): CompiledFilter {
    const condition = this.#predicate(predicate, false)
    return { condition: this.#guarded(condition), tables: this.#tables, cost: this.#cost }
  }

  /** What to sort by, the source's key last, so that pages never overlap. @throws INVALID_FILTER for what has no order */
  order(keys: readonly SortKey[]): OrderTerm[] {
    const order: OrderTerm[] = []
    const { key } = this.#source
    const seen = new Set<FilterSymbol>()
    for (const { symbol: node, isDescending } of keys) {
      const symbol = this.#symbol(node)
      if (symbol.set || symbol.namedIn || symbol.type === 'tags')
        throw filterError(`lists cannot be sorted by "${node.name}",`, node.at)
      // What all records have in common, or were sorted by already, puts nothing before anything else.
      if (symbol.constant !== undefined || seen.has(symbol)) continue
      seen.add(symbol)
      order.push({ expression: this.#column(symbol), isDescending })
      if (symbol.column === key.column) return order
    }
    return [...order, { expression: sql.ref(`${this.#source.table}.${key.column}`), isDescending: key.isDescending }]
  }

  // ---- predicates ----

  /** `isNegated`: the condition stands below a `not`, where SQL's unknown must be false. */
  #predicate(node: Predicate, isNegated: boolean): Condition {
    switch (node.kind) {
      case 'and':
      case 'or':
        return joinBalanced(
          node.terms.map((term) => this.#predicate(term, isNegated)),
          node.kind,
        )
      case 'not':
        return sql<SqlBool>`not (${this.#predicate(node.term, true)})`
      case 'constant':
        return node.value ? TRUE : FALSE
      case 'symbol':
        return this.#bareSymbol(node)
      case 'isEmpty':
        return this.#isEmpty(node.set)
      default:
        return this.#comparing(node, isNegated)
    }
  }

  #bareSymbol(node: SymbolNode): Condition {
    const symbol = this.#symbol(node)
    this.#addCost(COST.comparison, node.at)
    if (symbol.type !== 'boolean' || symbol.set)
      throw filterError(`"${node.name}" alone is neither true nor false,`, node.at)
    return compileBooleanTest(this.#column(symbol), true, symbol.isNullable)
  }

  #comparing(node: ComparisonNode, isNegated: boolean): Condition {
    const { left } = node
    this.#addCost(costOf(node), placeOf(left))
    switch (left.kind) {
      case 'symbol':
        return this.#plain(node, left, isNegated)
      case 'count':
        return compileTest(this.#words, node, COUNT, left.set.symbol.at)(this.#count(left.set))
      default:
        return this.#quantified(node, left.kind, left.symbol)
    }
  }

  #plain(node: ComparisonNode, left: SymbolNode, isNegated: boolean): Condition {
    const symbol = this.#symbol(left)
    if (symbol.set) throw filterError(`"${symbol.name}" is a set: use it in anyOf, allOf, count or isEmpty,`, left.at)
    const key = parseTagKey(left.name)
    if (key !== undefined) {
      this.#addCost(COST.tag, left.at)
      return compileTagCondition(this.#words, node, sql.ref(`${this.#source.table}.${symbol.column}`), key, left.at)
    }
    const test = compileTest(this.#words, node, symbol, left.at)
    const condition = symbol.namedIn ? this.#named(symbol.namedIn, symbol, test) : test(this.#column(symbol))
    return isNegated && symbol.isNullable ? sql<SqlBool>`coalesce(${condition}, false)` : condition
  }

  /** Names are asked of the table they lie in, once for all records that refer there. */
  #named(table: string, symbol: FilterSymbol, test: Test): Condition {
    this.#tables.add(table)
    const found = sql`select id from ${sql.table(table)} where ${this.#guarded(test(sql.ref(`${table}.name`)))}`
    return sql<SqlBool>`${this.#column(symbol)} in (${found})`
  }

  #quantified(node: ComparisonNode, quantifier: 'anyOf' | 'allOf', symbolNode: SymbolNode): Condition {
    const symbol = this.#setSymbol(symbolNode, quantifier)
    const set = this.#setSql(symbol)
    const test = compileTest(this.#words, node, symbol, symbolNode.at)
    if (quantifier === 'allOf') return sql<SqlBool>`not ${set.some((value) => sql<SqlBool>`not (${test(value)})`)}`
    const isEqual =
      (node.kind === 'compare' && node.operator === '=' && node.right.kind !== 'null') || node.kind === 'in'
    return isEqual ? set.someEqual(test, this.#narrow.has(node)) : set.some(test)
  }

  // ---- sets ----

  #isEmpty({ symbol, query }: SetArgument): Condition {
    const set = this.#setSql(this.#setSymbol(symbol, 'isEmpty'))
    return query ? sql<SqlBool>`not exists (${this.#subQuery(symbol, query)})` : set.isEmpty
  }

  #count({ symbol, query }: SetArgument): Column {
    const set = this.#setSql(this.#setSymbol(symbol, 'count'))
    return query ? sql`(select count(*) from (${this.#subQuery(symbol, query)}) as found)` : set.count
  }

  /** The records that a set names, as far as they match the inner query. */
  #subQuery(node: SymbolNode, { predicate, skip, limit }: Query): Column {
    const symbol = this.#setSymbol(node, 'from')
    if (!symbol.set.linked) throw filterError(`"${node.name}" names no records that could be asked about,`, node.at)
    const target = linkedSource(this.#source, symbol.set.linked)
    this.#tables.add(target.table)
    const inner = new FilterCompiler(this.#db, target, { isGuarded: this.#isGuarded })
    const condition = predicate ? inner.compile(predicate).condition : TRUE
    for (const table of inner.#tables) this.#tables.add(table)
    this.#addCost(inner.#cost, node.at)
    const own = sql.ref(`${target.table}.n`)
    const found = sql`select 1 from (${this.#setSql(symbol).keys}) as named join ${sql.table(target.table)} on ${own} = named.n where ${condition}`
    return applyWindow(found, skip, limit)
  }

  #setSymbol(node: SymbolNode, takes: string): SetSymbol {
    const symbol = this.#symbol(node)
    if (!symbol.set) throw filterError(`"${node.name}" is no set, and ${takes} takes sets,`, node.at)
    this.#addCost(symbol.set.kind === 'matched' ? COST.matched : COST.set, node.at)
    return symbol as SetSymbol
  }

  #setSql(symbol: SetSymbol): SetSql {
    const set = compileSet(this.#words, this.#source, symbol)
    for (const table of set.tables) this.#tables.add(table)
    return set
  }

  /** The condition, counting what everything costs that was compiled so far. */
  #guarded(condition: Condition): Condition {
    if (!this.#isGuarded) return condition
    return sql<SqlBool>`(${this.#words.guard(COST.guard + this.#cost)} and ${condition})`
  }

  #addCost(cost: number, at: Position): void {
    this.#cost += cost
    if (this.#cost > MAX_COST) throw filterError('the query asks too much of each record', at)
  }

  // ---- symbols and columns ----

  #symbol(node: SymbolNode): FilterSymbol {
    const { symbols } = this.#source
    const symbol = symbols.get(parseTagKey(node.name) === undefined ? node.name : 'tags')
    if (!symbol || (symbol.type === 'tags' && node.name === 'tags'))
      throw filterError(`"${node.name}" is not a field of this list,`, node.at)
    return symbol
  }

  #column(symbol: FilterSymbol): Column {
    if (symbol.constant !== undefined) return symbol.constant ? sql`1` : sql`0`
    const column = sql.ref(`${this.#source.table}.${symbol.column}`)
    return symbol.path ? this.#words.member(column, symbol.path) : column
  }
}

/** What one comparison of a value costs. Any number of values in a list is one look into a table. */
function costOf(node: ComparisonNode): number {
  if (node.kind !== 'compare') return COST.comparison
  const { operator } = node
  return operator === 'contains' || operator === 'icontains' ? COST[operator] : COST.comparison
}

function placeOf(operand: Operand): Position {
  return operand.kind === 'symbol' ? operand.at : operand.kind === 'count' ? operand.set.symbol.at : operand.symbol.at
}

/**
 * Conditions joined pair by pair. In a plain chain each term would lie one level deeper than the next, and SQLite takes
 * no more than a thousand levels.
 */
function joinBalanced(terms: readonly Condition[], operator: 'and' | 'or'): Condition {
  if (terms.length <= 2) return sql<SqlBool>`(${sql.join(terms, sql.raw(` ${operator} `))})`
  const middle = Math.ceil(terms.length / 2)
  return joinBalanced(
    [joinBalanced(terms.slice(0, middle), operator), joinBalanced(terms.slice(middle), operator)],
    operator,
  )
}

function applyWindow(query: Column, skip: number | undefined, limit: Query['limit']): Column {
  const isAll = limit === undefined || limit === 'none' || limit < 0
  if (isAll && !skip) return query
  return sql`${query} limit ${isAll ? Number.MAX_SAFE_INTEGER : limit} offset ${Math.max(skip ?? 0, 0)}`
}
