// Streams lists without a limit while their rows are read, so that any list needs the memory of only a few records.
import { Readable } from 'node:stream'
import { type Context, toReader } from '../src/context.ts'
import type { ListPlan } from '../src/store/list-plan.ts'
import type { RowQuery } from '../src/store/lists.ts'
import type { Store } from '../src/store/store.ts'
import { type Response, rawResponse, renderListMeta } from './responses.ts'

// How many records are rendered at a time.
const BATCH = 200

/**
 * The envelope of a list of all that `rows` finds; `textsOf` gives the JSON text of each of some rows, in their order. The
 * first rows are read before the response begins, so that an error still has a status.
 */
export async function streamList<Row>(
  store: Store,
  { caller }: Context,
  rows: RowQuery<Row>,
  render: (batch: readonly Row[]) => Promise<readonly string[]> | readonly string[],
  { offset }: ListPlan,
  filterableFields: readonly string[],
): Promise<Response> {
  const pieces = envelope()
  return rawResponse('application/json', readableFrom(await pieces.next(), pieces))

  async function* envelope(): AsyncGenerator<string> {
    let head = '{"data":['
    let total = 0
    let batch: Row[] = []
    const flush = async () => {
      const texts = await render(batch)
      const text = `${total === 0 ? '' : ','}${texts.join(',')}`
      total += batch.length
      batch = []
      return text
    }
    for await (const row of store.stream(rows, { reader: toReader(caller), isCostly: rows.isCostly })) {
      batch.push(row)
      if (batch.length < BATCH) continue
      yield head + (await flush())
      head = ''
    }
    if (batch.length > 0) head += await flush()
    yield `${head}],${renderListMeta({ limit: 'none', offset, total }, filterableFields)}}\n`
  }
}

/** A stream of `first` and what follows it. Destroying it ends the generator, which has begun already. */
function readableFrom(first: IteratorResult<string>, others: AsyncGenerator<string>): Readable {
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
