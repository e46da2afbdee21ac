// Finishes records for a caller: live members, and whatever the operation wants shown in its own way.
import type { Context } from '../context.ts'
import type { AnyResource, AnyRow } from '../resources/define.ts'
import { computedMembers, makeReady, type ReadyRecord } from './record.ts'

/** How an operation wants records shown, where it differs from the resource's own way. */
export interface Presentation {
  /** What the resource's live members are told. */
  readonly view?: unknown
  /** JSON text of `_links` in place of the resource's. */
  links?(record: ReadyRecord): string
}

/** JSON text of each record, in their order. */
export async function finish(
  context: Context,
  resource: AnyResource,
  records: readonly ReadyRecord[],
  { view, links }: Presentation = {},
): Promise<string[]> {
  const live = await resource.describeLive?.(
    context,
    records.map(({ facts }) => facts),
    view,
  )
  const declared = Object.keys(resource.live)
  return records.map((record, at) => {
    const shownLinks = links ? links(record) : record.links
    const tail = live ? computedMembers(declared, live[at] ?? {}) : ''
    return `{"_links":${shownLinks}${record.members}${tail}}`
  })
}

/** The same from rows, without remembering anything: for lists that pass over whole tables. */
export async function finishRows(
  context: Context,
  resource: AnyResource,
  rows: readonly AnyRow[],
  how: Presentation = {},
): Promise<string[]> {
  return finish(context, resource, await makeReady(context, resource, rows), how)
}
