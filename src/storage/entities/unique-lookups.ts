// Lists by an equality with a unique value, such as a name: most clients find records in this way, so it costs one prepared
// statement, or none if the record is cached. Their results are not: a script that looks up thousands of names would replace the
// pages that other clients poll.
import type { CompiledQuery } from 'kysely'
import type { FilterSource, FilterSymbol } from '../../definitions/model/filter-symbols.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import type { ListPlan } from '../lists/list-plan.ts'
import { type PreparedStatement, prepareStatement } from '../prepared-queries.ts'
import type { Context } from '../transactions/context.ts'
import { selectRows } from './subtypes.ts'

/** An equality of a symbol, whose values are unique, with one of them. */
interface UniqueEquality {
  readonly symbol: FilterSymbol
  readonly value: string
}

/** Returns the equality that the whole predicate of the plan consists of, so that an index finds the only record that can match. */
export function findUniqueEquality(
  { symbols }: FilterSource,
  predicate: ListPlan['predicate'],
): UniqueEquality | undefined {
  if (predicate?.kind !== 'compare' || predicate.operator !== '=') return undefined
  const { left, right } = predicate
  if (left.kind !== 'symbol' || right.kind !== 'string') return undefined
  const symbol = symbols.get(left.name)
  return symbol?.isUnique ? { symbol, value: right.value } : undefined
}

/** The same if it is all that the plan asks for: a list of at most one record. */
export function findUniqueLookup(
  { predicate, order, offset, roleFilter }: ListPlan,
  source: FilterSource,
): UniqueEquality | undefined {
  if (order.keys.length > 0 || offset > 0 || roleFilter.length > 0) return undefined
  const equality = findUniqueEquality(source, predicate)
  return equality && isPlainText(equality.symbol) ? equality : undefined
}

/** By resource and column. */
const statements = new Map<string, PreparedStatement<[string], { n: number }>>()

/** The statement for the only record that can match. */
export function compileUniqueLookup(
  { db }: Pick<Context, 'db'>,
  resource: AnyResource,
  { symbol: { column }, value }: UniqueEquality,
): CompiledQuery<{ n: number }> {
  const key = `${resource.plural} ${column}`
  let statement = statements.get(key)
  if (!statement) {
    statement = prepareStatement(
      (handle, parameter) => selectRows(handle, resource).select('n').where(column, '=', parameter) as never,
    )
    statements.set(key, statement)
  }
  return statement(db, value)
}

/** Whether literals are compared with the column as they are. */
function isPlainText({ type, set, path, values, constant, trueIds, namedIn }: FilterSymbol): boolean {
  return type === 'string' && !(set || path || values || trueIds || namedIn) && constant === undefined
}
