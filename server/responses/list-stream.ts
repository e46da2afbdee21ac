// Streams lists without a limit while their rows are read, so that any list needs the memory of only a few records.
import { Readable } from 'node:stream'
import type { RowQuery } from '../../src/storage/lists/lists.ts'
import type { Store } from '../../src/storage/store.ts'
import { type Context, toReader } from '../../src/storage/transactions/context.ts'
import { type Response, rawResponse, renderListMeta } from '../api/responses.ts'

// How many records are rendered at a time.
const BATCH = 200

/** A list of all that a query finds. */
interface StreamedList<Row> {
  readonly rows: RowQuery<Row>
  readonly offset: number
  readonly filterableFields: string
  /** Returns JSON text of each of some rows, in their order. */
  render(batch: readonly Row[]): Promise<readonly string[]> | readonly string[]
}

/** Returns the response that streams a list. */
export function streamList<Row>(store: Store, { caller }: Context, list: StreamedList<Row>): Promise<Response> {
  const { rows, offset, filterableFields } = list
  return streamItems(renderBatches(), { offset, filterableFields })

  async function* renderBatches(): AsyncGenerator<readonly string[]> {
    let batch: Row[] = []
    for await (const row of store.stream(rows, { reader: toReader(caller), isCostly: rows.isCostly })) {
      batch.push(row)
      if (batch.length < BATCH) continue
      yield await list.render(batch)
      batch = []
    }
    if (batch.length > 0) yield await list.render(batch)
  }
}

/**
 * The envelope of a list whose items come in batches of JSON texts. The first batch is read before the response begins, so that
 * an error still has a status.
 */
export async function streamItems(
  batches: AsyncIterable<readonly string[]>,
  { offset = 0, filterableFields = '[]' }: { offset?: number; filterableFields?: string } = {},
): Promise<Response> {
  const pieces = renderEnvelope()
  return rawResponse('application/json', toReadable(await pieces.next(), pieces))

  async function* renderEnvelope(): AsyncGenerator<string> {
    let head = '{"data":['
    let total = 0
    for await (const texts of batches) {
      if (texts.length === 0) continue
      yield `${head}${total === 0 ? '' : ','}${texts.join(',')}`
      head = ''
      total += texts.length
    }
    yield `${head}],${renderListMeta({ limit: 'none', offset, total }, filterableFields)}}\n`
  }
}

/** A stream of `first` and what follows it. Destroying it ends the generator, which has begun already. */
function toReadable(first: IteratorResult<string>, others: AsyncGenerator<string>): Readable {
  let ahead: IteratorResult<string> | undefined = first
  return new Readable({
    async read() {
      try {
        const { done, value } = ahead ?? (await others.next())
        ahead = undefined
        this.push(done ? null : value)
      } catch (error) {
        this.destroy(error as Error)
      }
    },
    destroy(error, callback) {
      others.return(undefined).then(() => callback(error), callback)
    },
  })
}
