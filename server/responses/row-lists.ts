// Lists of records that operations render from rows, because what they show is not what the resource itself shows.
import type { FilterSource } from '../../src/definitions/model/filter-symbols.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { getRecordTable } from '../../src/storage/entities/record-tables.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { list, queryRows, type Restriction } from '../../src/storage/lists/lists.ts'
import type { Call } from '../api/operation.ts'
import { listParameters } from '../api/query.ts'
import type { Response } from '../api/responses.ts'
import { respondWithListing } from './lists.ts'

export interface RowList {
  readonly resource: AnyResource
  /** The symbols that the list can be filtered and sorted by. */
  readonly source: FilterSource
  readonly restrictions: readonly Restriction[]
  /** Returns JSON text of each row, in their order. */
  render(rows: readonly AnyRow[]): readonly string[] | Promise<readonly string[]>
}

/** Returns the response that lists records, by the parameters of the call. */
export function respondWithRowList(call: Call, { resource, source, restrictions, render }: RowList): Promise<Response> {
  const { store } = call.controller
  const { context } = call
  return respondWithListing(call, planList(listParameters(call.query) as ListParameters), {
    filterableFields: source.filterableFields,
    render,
    async fetchPage(plan) {
      const { keys, ...window } = await list(store, context, { resource, plan, restrictions, source })
      const rows = await getRecordTable(resource).findByKeys(context.db, keys)
      const byKey = new Map(rows.map((row) => [row.n, row]))
      return { ...window, items: keys.flatMap((key) => byKey.get(key) ?? []) }
    },
    stream: { query: (plan) => queryRows(store, context, { resource, plan, restrictions, source }), render },
  })
}
