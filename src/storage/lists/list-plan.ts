// The plan of a list: predicate, order and window, parsed and limited.
import { ControllerError, errors } from '../../foundation/errors.ts'
import { parseQuery, parseSort } from '../filter/parse.ts'
import type { Predicate, Query, SortKey } from '../filter/tree.ts'

const DEFAULT_LIMIT = 10
const MAX_LIMIT = 500
const MAX_OFFSET = 100_000

const NO_QUERY: Query = { predicate: undefined, sort: [], skip: undefined, limit: undefined }

/** The parameters of a list, as a caller sends them. */
export interface ListParameters {
  readonly filter?: string | undefined
  readonly sort?: string | undefined
  readonly limit?: number | undefined
  readonly offset?: number | undefined
  readonly roleFilter?: readonly string[]
  readonly roleSemantic?: 'AllOf' | 'AnyOf'
}

/** The parsed parameters of a list. */
export interface ListPlan {
  /** The texts that predicate and order were parsed from. */
  readonly texts: Pick<ListParameters, 'filter' | 'sort'>
  readonly predicate: Predicate | undefined
  readonly order: RequestedOrder
  /** The number of rows; `none` means all. */
  readonly limit: number | 'none'
  readonly offset: number
  readonly roleFilter: readonly string[]
  readonly roleSemantic: 'AllOf' | 'AnyOf'
}

/** The order; `isParameter` if it was a parameter of its own and not part of the filter, which determines its errors. */
interface RequestedOrder {
  readonly keys: readonly SortKey[]
  readonly isParameter: boolean
}

/**
 * Reads a list's parameters. Sort, skip and limit inside the filter win over the parameters.
 * @param defaultLimit the number of rows if the caller sets no limit
 * @throws INVALID_FILTER, INVALID_SORT_IDENTIFIER
 */
export function planList(parameters: ListParameters, defaultLimit: number | 'none' = DEFAULT_LIMIT): ListPlan {
  const query = parameters.filter ? parseQuery(parameters.filter) : NO_QUERY
  const { filter, sort } = parameters
  return {
    texts: { filter, sort },
    predicate: query.predicate,
    order: readRequestedOrder(query, parameters.sort),
    limit: clampLimit(query.limit ?? parameters.limit ?? defaultLimit),
    offset: Math.min(Math.max(query.skip ?? parameters.offset ?? 0, 0), MAX_OFFSET),
    roleFilter: parameters.roleFilter ?? [],
    roleSemantic: parameters.roleSemantic ?? 'AllOf',
  }
}

function readRequestedOrder({ sort }: Query, parameter: string | undefined): RequestedOrder {
  if (sort.length > 0 || !parameter) return { keys: sort, isParameter: false }
  return { keys: withSortParameterErrors(() => parseSort(parameter)), isParameter: true }
}

/** Parses or compiles a `sort` parameter, and converts its filter errors to sort errors. */
export function withSortParameterErrors<T>(read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof ControllerError) || error.code !== 'INVALID_FILTER') throw error
    throw errors.INVALID_SORT_IDENTIFIER({ ...error.publicCause, code: 'INVALID_SORT_IDENTIFIER' })
  }
}

function clampLimit(limit: number | 'none'): number | 'none' {
  if (limit === 'none' || limit === -1) return 'none'
  if (limit <= 0) return DEFAULT_LIMIT
  return Math.min(limit, MAX_LIMIT)
}
