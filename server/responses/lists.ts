// The response of every list: one page, or a stream of all that it finds.
import type { ListPlan } from '../../src/storage/lists/list-plan.ts'
import type { RowQuery, Window } from '../../src/storage/lists/lists.ts'
import type { Call } from '../api/operation.ts'
import { listResponse, type Response } from '../api/responses.ts'
import { streamList } from './list-stream.ts'

type Rendered<T> = T | Promise<T>

/** A list: where its items come from, and how they are rendered as JSON, in their order. */
interface Listing<Item, Row> {
  /** JSON text of the names of the symbols that it can be filtered and sorted by. */
  readonly filterableFields: string
  fetchPage(plan: ListPlan): Promise<Window & { readonly items: readonly Item[] }>
  render(items: readonly Item[]): Rendered<readonly string[] | readonly Buffer[]>
  /** How it is streamed if it has no limit; without it, memory holds all items, and they are one page. */
  readonly stream?: {
    query(plan: ListPlan): Promise<RowQuery<Row>>
    render(rows: readonly Row[]): Rendered<readonly string[]>
  }
}

/** Returns the response that lists what matches a plan. */
export async function respondWithListing<Item, Row = Item>(
  { controller, context }: Pick<Call, 'controller' | 'context'>,
  plan: ListPlan,
  { filterableFields, fetchPage, render, stream }: Listing<Item, Row>,
): Promise<Response> {
  if (plan.limit === 'none' && stream) {
    const rows = await stream.query(plan)
    return streamList(controller.store, context, { rows, render: stream.render, offset: plan.offset, filterableFields })
  }
  const page = await fetchPage(plan)
  return listResponse(await render(page.items), page, filterableFields)
}
