// The syntax tree of the filter language of lists.
import type { Instant } from '../../foundation/clock.ts'

/** A position in the text; line and column count from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

export type Literal =
  | { readonly kind: 'string'; readonly value: string }
  | { readonly kind: 'number'; readonly value: number; readonly text: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
  | { readonly kind: 'date'; readonly value: Instant }
  | { readonly kind: 'null' }

export interface SymbolNode {
  readonly kind: 'symbol'
  readonly name: string
  readonly at: Position
}

/** The argument of `count` and `isEmpty`: a set, or a query over the records it refers to. */
export interface SetArgument {
  readonly symbol: SymbolNode
  readonly query?: Query
}

export type Operand =
  | SymbolNode
  | { readonly kind: 'anyOf' | 'allOf'; readonly symbol: SymbolNode }
  | { readonly kind: 'count'; readonly set: SetArgument }

export type Comparison = '=' | '!=' | '<' | '<=' | '>' | '>=' | 'contains' | 'icontains'

export type Predicate =
  | { readonly kind: 'and' | 'or'; readonly terms: readonly Predicate[] }
  | { readonly kind: 'not'; readonly term: Predicate }
  | { readonly kind: 'constant'; readonly value: boolean }
  | SymbolNode
  | { readonly kind: 'isEmpty'; readonly set: SetArgument }
  | { readonly kind: 'compare'; readonly left: Operand; readonly operator: Comparison; readonly right: Literal }
  | { readonly kind: 'in'; readonly left: Operand; readonly values: readonly Literal[] }
  | { readonly kind: 'between'; readonly left: Operand; readonly low: Literal; readonly high: Literal }

export interface SortKey {
  readonly symbol: SymbolNode
  readonly isDescending: boolean
}

export interface Query {
  readonly predicate: Predicate | undefined
  readonly sort: readonly SortKey[]
  readonly skip: number | undefined
  readonly limit: number | 'none' | undefined
}
