// Compiles the syntax tree of a query to SQL conditions, by the types of its symbols.
import type { Kysely, SqlBool } from 'kysely'
import type { FilterSource, FilterSymbol } from '../../definitions/model/filter-symbols.ts'
import type { Database } from '../database.ts'
import { ALWAYS, joinConditions, sqlText } from '../lists/sql-text.ts'
import { getSqlDialect, type PlanningCosts, type SqlDialect } from '../sql-dialect.ts'
import {
  COUNT_SYMBOL,
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

const FALSE = sqlText<SqlBool>`1 = 0`

/** A compiled predicate. */
export interface CompiledFilter {
  readonly condition: Condition
  /** The tables that it reads besides the table of its source. */
  readonly tables: ReadonlySet<string>
  /** The cost of testing one record, see `PlanningCosts`. */
  readonly cost: number
}

/** One term of an `order by` clause. */
export interface OrderTerm {
  readonly expression: Column
  readonly isDescending: boolean
}

export interface CompilerOptions {
  /** The set tests that few records pass: these search the set's table first, instead of testing each record. */
  readonly narrow?: ReadonlySet<Predicate>
  /** Conditions count their cost as they run, see `SqlDialect.guard`. */
  readonly isGuarded?: boolean
}

const NONE: ReadonlySet<Predicate> = new Set()

/** Compiles predicates for one source. */
export class FilterCompiler {
  readonly #db: Kysely<Database>
  readonly #sqlDialect: SqlDialect
  readonly #costs: PlanningCosts['ofTest']
  readonly #source: FilterSource
  readonly #narrow: ReadonlySet<Predicate>
  readonly #isGuarded: boolean
  readonly #tables = new Set<string>()
  #cost = 0

  constructor(db: Kysely<Database>, source: FilterSource, { narrow = NONE, isGuarded = false }: CompilerOptions = {}) {
    this.#db = db
    this.#isGuarded = isGuarded
    this.#sqlDialect = getSqlDialect(db)
    this.#costs = this.#sqlDialect.costs.ofTest
    this.#source = source
    this.#narrow = narrow
  }

  /** @throws INVALID_FILTER if a symbol is unknown, types are not comparable, or the condition costs too much */
  compile(predicate: Predicate): CompiledFilter {
    const condition = this.#compilePredicate(predicate, false)
    return { condition: this.#guard(condition), tables: this.#tables, cost: this.#cost }
  }

  /** The sort order, with the source's key last so that pages never overlap. @throws INVALID_FILTER if a symbol has no order */
  compileOrder(keys: readonly SortKey[]): OrderTerm[] {
    const compileOrder: OrderTerm[] = []
    const { key } = this.#source
    const sortedSymbols = new Set<FilterSymbol>()
    for (const { symbol: node, isDescending } of keys) {
      const symbol = this.#findSymbol(node)
      if (symbol.set || symbol.namedIn || symbol.type === 'tags')
        throw filterError(`lists cannot be sorted by "${node.name}",`, node.at)
      // A constant, or a symbol that is a sort key already, does not change the order.
      if (symbol.constant !== undefined || sortedSymbols.has(symbol)) continue
      sortedSymbols.add(symbol)
      compileOrder.push({ expression: this.#toColumn(symbol), isDescending })
      if (symbol.column === key.column && !symbol.trueIds) return compileOrder
    }
    return [
      ...compileOrder,
      { expression: sqlText.ref(`${this.#source.table}.${key.column}`), isDescending: key.isDescending },
    ]
  }

  // ---- predicates ----

  /** @param isNegated the condition is below a `not`, so an unknown in SQL must become false */
  #compilePredicate(node: Predicate, isNegated: boolean): Condition {
    switch (node.kind) {
      case 'and':
      case 'or':
        return joinConditions(
          node.terms.map((term) => this.#compilePredicate(term, isNegated)),
          node.kind,
        )
      case 'not':
        return sqlText<SqlBool>`not (${this.#compilePredicate(node.term, true)})`
      case 'constant':
        return node.value ? ALWAYS : FALSE
      case 'symbol':
        return this.#compileSymbol(node)
      case 'isEmpty':
        return this.#compileIsEmpty(node.set)
      default:
        return this.#compileComparison(node, isNegated)
    }
  }

  #compileSymbol(node: SymbolNode): Condition {
    const symbol = this.#findSymbol(node)
    this.#addCost(this.#costs.comparison, node.at)
    if (symbol.type !== 'boolean' || symbol.set)
      throw filterError(`"${node.name}" alone is neither true nor false,`, node.at)
    return compileBooleanTest(this.#toColumn(symbol), true, symbol.isNullable)
  }

  #compileComparison(node: ComparisonNode, isNegated: boolean): Condition {
    const { left } = node
    this.#addCost(this.#estimateCost(node), findPosition(left))
    switch (left.kind) {
      case 'symbol':
        return this.#compilePlain(node, left, isNegated)
      case 'count':
        return compileTest(this.#sqlDialect, node, COUNT_SYMBOL, left.set.symbol.at)(this.#compileCount(left.set))
      default:
        return this.#compileQuantified(node, left.kind, left.symbol)
    }
  }

  #compilePlain(node: ComparisonNode, left: SymbolNode, isNegated: boolean): Condition {
    const symbol = this.#findSymbol(left)
    if (symbol.set) throw filterError(`"${symbol.name}" is a set: use it in anyOf, allOf, count or isEmpty,`, left.at)
    const key = parseTagKey(left.name)
    if (key !== undefined) {
      this.#addCost(this.#costs.tag, left.at)
      return compileTagCondition(
        this.#sqlDialect,
        node,
        sqlText.ref(`${this.#source.table}.${symbol.column}`),
        key,
        left.at,
      )
    }
    const test = compileTest(this.#sqlDialect, node, symbol, left.at)
    const condition = symbol.namedIn ? this.#compileNamed(symbol.namedIn, symbol, test) : test(this.#toColumn(symbol))
    return isNegated && symbol.isNullable ? sqlText<SqlBool>`coalesce(${condition}, false)` : condition
  }

  /** Finds the ids by name once, in the table of the referenced records, instead of once a record. */
  #compileNamed(table: string, symbol: FilterSymbol, test: Test): Condition {
    this.#tables.add(table)
    const ids = sqlText`select id from ${sqlText.table(table)} where ${this.#guard(test(sqlText.ref(`${table}.name`)))}`
    return sqlText<SqlBool>`${this.#toColumn(symbol)} in (${ids})`
  }

  #compileQuantified(node: ComparisonNode, quantifier: 'anyOf' | 'allOf', symbolNode: SymbolNode): Condition {
    const symbol = this.#findSetSymbol(symbolNode, quantifier)
    const set = this.#compileSet(symbol)
    const test = compileTest(this.#sqlDialect, node, symbol, symbolNode.at)
    if (quantifier === 'allOf')
      return sqlText<SqlBool>`not ${set.some((value) => sqlText<SqlBool>`not (${test(value)})`)}`
    const isEqual =
      (node.kind === 'compare' && node.operator === '=' && node.right.kind !== 'null') || node.kind === 'in'
    return isEqual ? set.someEqual(test, this.#narrow.has(node)) : set.some(test)
  }

  // ---- sets ----

  #compileIsEmpty({ symbol, query }: SetArgument): Condition {
    const set = this.#compileSet(this.#findSetSymbol(symbol, 'isEmpty'))
    return query ? sqlText<SqlBool>`not exists (${this.#compileSubQuery(symbol, query)})` : set.isEmpty
  }

  #compileCount({ symbol, query }: SetArgument): Column {
    const set = this.#compileSet(this.#findSetSymbol(symbol, 'count'))
    return query ? sqlText`(select count(*) from (${this.#compileSubQuery(symbol, query)}) as matches)` : set.count
  }

  /** Selects the records of a set that match the inner query. */
  #compileSubQuery(node: SymbolNode, { predicate, skip, limit }: Query): Column {
    const symbol = this.#findSetSymbol(node, 'from')
    if (!symbol.set.linked)
      throw filterError(`"${node.name}" does not refer to records, so it takes no query,`, node.at)
    const target = linkedSource(this.#source, symbol.set.linked)
    this.#tables.add(target.table)
    const inner = new FilterCompiler(this.#db, target, { isGuarded: this.#isGuarded })
    const condition = predicate ? inner.compile(predicate).condition : ALWAYS
    for (const table of inner.#tables) this.#tables.add(table)
    this.#addCost(inner.#cost, node.at)
    const own = sqlText.ref(`${target.table}.n`)
    const matches = sqlText`select 1 from (${this.#compileSet(symbol).keys}) as named join ${sqlText.table(target.table)} on ${own} = named.n where ${condition}`
    return applyWindow(matches, skip, limit)
  }

  #findSetSymbol(node: SymbolNode, takes: string): SetSymbol {
    const symbol = this.#findSymbol(node)
    if (!symbol.set) throw filterError(`"${node.name}" is not a set, and ${takes} takes sets,`, node.at)
    this.#addCost(symbol.set.kind === 'matched' ? this.#costs.matched : this.#costs.set, node.at)
    return symbol as SetSymbol
  }

  #compileSet(symbol: SetSymbol): SetSql {
    const set = compileSet(this.#sqlDialect, this.#source, symbol)
    for (const table of set.tables) this.#tables.add(table)
    return set
  }

  /** Wraps a condition so that it counts the cost of everything compiled so far. */
  #guard(condition: Condition): Condition {
    if (!this.#isGuarded) return condition
    return sqlText<SqlBool>`(${this.#sqlDialect.guard(this.#costs.guard + this.#cost)} and ${condition})`
  }

  /** The cost of one comparison. A list of any length costs one look-up in a table. */
  #estimateCost(node: ComparisonNode): number {
    if (node.kind !== 'compare') return this.#costs.comparison
    const { operator } = node
    return operator === 'contains' || operator === 'icontains' ? this.#costs[operator] : this.#costs.comparison
  }

  #addCost(cost: number, at: Position): void {
    this.#cost += cost
    if (this.#cost > this.#sqlDialect.costs.maxOfTests)
      throw filterError('the query costs too much for each record', at)
  }

  // ---- symbols and columns ----

  #findSymbol(node: SymbolNode): FilterSymbol {
    const { symbols } = this.#source
    const symbol = symbols.get(parseTagKey(node.name) === undefined ? node.name : 'tags')
    if (!symbol || (symbol.type === 'tags' && node.name === 'tags'))
      throw filterError(`"${node.name}" is not a field of this list,`, node.at)
    return symbol
  }

  #toColumn(symbol: FilterSymbol): Column {
    if (symbol.constant !== undefined) return symbol.constant ? sqlText`1` : sqlText`0`
    const column = sqlText.ref(`${this.#source.table}.${symbol.column}`)
    if (symbol.trueIds) return sqlText`case when ${this.#sqlDialect.isOneOf(column, symbol.trueIds)} then 1 else 0 end`
    return symbol.path ? this.#sqlDialect.member(column, symbol.path) : column
  }
}

function findPosition(operand: Operand): Position {
  return operand.kind === 'symbol' ? operand.at : operand.kind === 'count' ? operand.set.symbol.at : operand.symbol.at
}

function applyWindow(query: Column, skip: number | undefined, limit: Query['limit']): Column {
  const isAll = limit === undefined || limit === 'none' || limit < 0
  if (isAll && !skip) return query
  return sqlText`${query} limit ${isAll ? Number.MAX_SAFE_INTEGER : limit} offset ${Math.max(skip ?? 0, 0)}`
}
