// The filter source of a sub-query: what it may use of the records that a set names.
import { type FilterSource, limitSource } from '../../definitions/model/filter-symbols.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'

const SHOWN_BY_SETS: ReadonlySet<string> = new Set(['id'])

/** The records that a set of `source` names, as its sub-queries see them. */
export function linkedSource(source: FilterSource, plural: string): FilterSource {
  const { filterSource } = getCompiledResource(plural)
  return source.isLimited ? limitSource(filterSource, SHOWN_BY_SETS) : filterSource
}
