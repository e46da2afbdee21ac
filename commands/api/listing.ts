// Lists: all of it unless a limit is given, while it arrives, and with word of what a limit left out.
import { type Client, RequestError } from '../client/client.ts'
import type { PageMeta } from '../client/list-items.ts'
import type { CommandRun } from '../connected.ts'
import { CommandError, EXIT } from '../exit-codes.ts'
import { splitPath } from '../naming.ts'
import { findNearest } from '../nearest.ts'
import { withProgress } from '../progress.ts'
import type { CommandTask } from './task.ts'

// What one request gives at the most.
const PAGE = 500

/** Prints the list at the path, which has its query string already, but for the window. */
export async function printList({ operation, api }: CommandTask, path: string, run: CommandRun): Promise<void> {
  const { client, flags, print, notice } = run
  const { returns, query } = operation
  const name = returns.kind === 'list' ? returns.resource : lastWord(operation.path)
  const columns = returns.kind === 'list' ? (api.resources[name]?.columns ?? []) : getColumns(returns)
  const isPaged = query?.limit !== undefined
  const limit = flags.limit as number | undefined
  const offset = (flags.offset as number | undefined) ?? 0
  const window = (count: number, from: number) =>
    isPaged ? withQuery(path, `limit=${count}${from > 0 ? `&offset=${from}` : ''}`) : path
  const seen = { count: 0, total: 0 }
  const items = limit === undefined ? client.items(window(-1, offset)) : limited(limit)
  await print({ kind: 'list', name, items: withProgress(items, name, flags.output, total), columns }).catch(
    (error: unknown) => explainField(error, client, path),
  )
  if (limit !== undefined && seen.total > offset + seen.count) notice(`Showing ${seen.count} of ${seen.total}.`)

  /** As many as were asked for, page by page. */
  async function* limited(most: number): AsyncIterable<unknown> {
    let isLast = false
    while (seen.count < most && !isLast) {
      const wanted = Math.min(PAGE, most - seen.count)
      let found = 0
      const note = (meta: PageMeta) => {
        seen.total = meta.pagination?.totalCount ?? 0
      }
      for await (const item of client.items(window(wanted, offset + seen.count), note)) {
        if (found >= wanted) break
        found++
        yield item
      }
      seen.count += found
      isLast = !isPaged || found < wanted
    }
  }

  /** How long the list is, for whoever waits for it. */
  async function total(): Promise<number | undefined> {
    if (!isPaged) return undefined
    const { meta } = await client.call('GET', window(1, 0))
    return limit === undefined ? meta.pagination?.totalCount : Math.min(limit, meta.pagination?.totalCount ?? limit)
  }
}

/**
 * Where a filter or an order names a field that the list has not: says which are near, else all there are. The field stands in
 * the controller's sentence alone; of another sentence nothing is made.
 */
async function explainField(error: unknown, client: Client, path: string): Promise<never> {
  if (!(error instanceof RequestError)) throw error
  const { target, code, reason = '' } = error
  const [, unknown] = /^"(.+?)" is not a field/.exec(reason) ?? []
  if (unknown === undefined) throw error
  const [bare = ''] = path.split('?')
  const { meta } = await client.call('GET', `${bare}?limit=1`)
  const fields = meta.filterableFields ?? []
  const near = findNearest(unknown, fields)
  const hint = (near.length > 0 ? near : fields).join(', ')
  throw new CommandError(EXIT.usage, code, `${target}: ${reason}`, { hint })
}

/** Of lists that are not of records: what their schema says. */
function getColumns(returns: CommandTask['operation']['returns']): readonly string[] {
  const items = returns.kind === 'data' ? returns.schema.items : undefined
  return (items?.['x-columns'] as readonly string[] | undefined) ?? []
}

function lastWord(path: string): string {
  return (
    splitPath(path)
      .filter((segment) => !segment.startsWith(':'))
      .at(-1) ?? ''
  )
}

function withQuery(path: string, query: string): string {
  return `${path}${path.includes('?') ? '&' : '?'}${query}`
}
