// Lists of records that operations render from rows, because what they show is not what the resource itself shows.
import type { FilterSource } from '../../src/definitions/model/filter-symbols.ts'
import type { AnyResource, AnyRow } from '../../src/definitions/resources/define.ts'
import { getRecordTable } from '../../src/storage/entities/record-tables.ts'
import { type ListParameters, planList } from '../../src/storage/lists/list-plan.ts'
import { list, queryRows, type Restriction } from '../../src/storage/lists/lists.ts'
import type { Call } from '../operations/operation.ts'
import { listParameters } from '../requests/query.ts'
import { streamList } from './list-stream.ts'
import { listResponse, type Response } from './responses.ts'

export interface RowList {
  readonly resource: AnyResource
  /** The symbols that the list can be filtered and sorted by. */
  readonly source: FilterSource
  readonly restrictions: readonly Restriction[]
  /** Returns JSON text of each row, in their order. */
  render(rows: readonly AnyRow[]): readonly string[] | Promise<readonly string[]>
}

/** Returns the response that lists records, by the parameters of the call. */
export async function respondWithRowList(
  { controller, context, query }: Call,
  { resource, source, restrictions, render }: RowList,
): Promise<Response> {
  const plan = planList(listParameters(query) as ListParameters)
  const recordList = { resource, plan, restrictions, source }
  const { filterableFields } = source
  if (plan.limit === 'none') {
    const rows = await queryRows(controller.store, context, recordList)
    return streamList(controller.store, context, { rows, render, offset: plan.offset, filterableFields })
  }
  const page = await list(controller.store, context, recordList)
  const unordered = await getRecordTable(resource).findByKeys(context.db, page.keys)
  const byKey = new Map(unordered.map((row) => [row.n, row]))
  const rows = page.keys.flatMap((key) => byKey.get(key) ?? [])
  return listResponse(await render(rows), page, filterableFields)
}
