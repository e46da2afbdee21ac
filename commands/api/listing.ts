// Prints lists while they arrive: all items, or as many as `--limit` allows.
import type { ApiDescription, OperationDescription } from '../../src/client/api-description.ts'
import { findNearest } from '../../src/foundation/nearest.ts'
import type { Client } from '../client/client.ts'
import type { PageMeta } from '../client/list-items.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { splitPath } from '../foundation/naming.ts'
import { RequestError } from '../foundation/request-error.ts'
import type { CommandRun } from '../framework/connected.ts'
import type { OutputRecord } from '../terminal/cells.ts'
import { withProgress } from '../terminal/progress.ts'
import { getCredentials, omitCredentials } from './credentials.ts'
import { addReferenceNames, isForPeople, toReferenceColumn } from './reference-names.ts'
import type { CommandTask } from './task.ts'

// The largest page of the API.
const MAX_PAGE_SIZE = 500

/** Prints the list at the path, which has its query string except for `limit` and `offset`. */
export async function printList({ operation, api }: CommandTask, path: string, run: CommandRun): Promise<void> {
  const { client, flags, print, notice } = run
  const { returns, query } = operation
  const name = returns.kind === 'list' ? returns.resource : getLastWord(operation.path)
  const columns = getColumns(operation, api)
  const isPaged = query?.limit !== undefined
  const limit = flags.limit as number | undefined
  const offset = (flags.offset as number | undefined) ?? 0
  const toWindowPath = (count: number, from: number) =>
    isPaged ? withQuery(path, `limit=${count}${from > 0 ? `&offset=${from}` : ''}`) : path
  const progress = { count: 0, total: 0 }
  const items = limit === undefined ? client.items(toWindowPath(-1, offset)) : fetchPages(limit)
  const credentials = getCredentials(operation, api)
  const printable = credentials.length > 0 ? omitEach(items, credentials) : items
  const namedColumns = isForPeople(run) ? columns.map((column) => toReferenceColumn(column, api)) : columns
  const hasIds = namedColumns.some((column, at) => column !== columns[at])
  await print({
    kind: 'list',
    name,
    items: withProgress(hasIds ? nameItems(printable) : printable, name, flags.output, fetchTotal),
    columns: namedColumns,
  }).catch((error: unknown) => explainUnknownField(error, client, path))
  if (limit !== undefined && progress.total > offset + progress.count)
    notice(`Showing ${progress.count} of ${progress.total}.`)

  /** The items with the names of what they refer to. A table needs all of them at once, too. */
  async function* nameItems(unnamed: AsyncIterable<unknown>): AsyncIterable<unknown> {
    const records: OutputRecord[] = []
    for await (const item of unnamed) records.push(item as OutputRecord)
    yield* await addReferenceNames(records, name, api, client)
  }

  /** At most `maxItems` items, page by page. */
  async function* fetchPages(maxItems: number): AsyncIterable<unknown> {
    let isLast = false
    while (progress.count < maxItems && !isLast) {
      const pageSize = Math.min(MAX_PAGE_SIZE, maxItems - progress.count)
      let pageCount = 0
      const recordTotal = (meta: PageMeta) => {
        progress.total = meta.pagination?.totalCount ?? 0
      }
      for await (const item of client.items(toWindowPath(pageSize, offset + progress.count), recordTotal)) {
        if (pageCount >= pageSize) break
        pageCount++
        yield item
      }
      progress.count += pageCount
      isLast = !isPaged || pageCount < pageSize
    }
  }

  /** The number of items to be printed, for the progress bar. */
  async function fetchTotal(): Promise<number | undefined> {
    if (!isPaged) return undefined
    const { meta } = await client.call('GET', toWindowPath(1, 0))
    return limit === undefined ? meta.pagination?.totalCount : Math.min(limit, meta.pagination?.totalCount ?? limit)
  }
}

async function* omitEach(items: AsyncIterable<unknown>, credentials: readonly string[]): AsyncIterable<unknown> {
  for await (const item of items) yield omitCredentials(item as OutputRecord, credentials)
}

/**
 * Adds a hint with similar fields, else all fields, if a filter or a sort order names an unknown field. The name of that field
 * is only in the controller's message; errors with other messages are thrown unchanged.
 */
async function explainUnknownField(error: unknown, client: Client, path: string): Promise<never> {
  if (!(error instanceof RequestError)) throw error
  const { target, code, reason = '' } = error
  const [, unknownField] = /^"(.+?)" is not a field/.exec(reason) ?? []
  if (unknownField === undefined) throw error
  const [listPath = ''] = path.split('?')
  const { meta } = await client.call('GET', `${listPath}?limit=1`)
  const fields = meta.filterableFields ?? []
  const near = findNearest(unknownField, fields)
  const hint = (near.length > 0 ? near : fields).join(', ')
  throw new CommandError(EXIT.usage, code, `${target}: ${reason}`, { hint })
}

/** The columns of a list: those of its resource, or those in its schema if it is not of records. */
export function getColumns({ returns }: OperationDescription, { resources }: ApiDescription): readonly string[] {
  if (returns.kind === 'list') return resources[returns.resource]?.columns ?? []
  const items = returns.kind === 'data' ? returns.schema.items : undefined
  return (items?.['x-columns'] as readonly string[] | undefined) ?? []
}

function getLastWord(path: string): string {
  return (
    splitPath(path)
      .filter((segment) => !segment.startsWith(':'))
      .at(-1) ?? ''
  )
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`
}
