// Lists without a limit: sent while the rows are read, so that a list of any length needs the memory of a few records.
import { Readable } from 'node:stream'
import type { Compilable } from 'kysely'
import type { Context } from '../src/context.ts'
import type { ListPlan } from '../src/store/list-plan.ts'
import { type Answer, listMeta, raw } from './answers.ts'

// How many records are made ready at a time.
const BATCH = 200

/** The envelope of a list of all that `rows` finds; `textsOf` gives the JSON text of each of some rows, in their order. */
export function streamedList<Row>(
  { controller }: Context,
  rows: Compilable<Row>,
  textsOf: (batch: readonly Row[]) => Promise<readonly string[]> | readonly string[],
  { offset }: ListPlan,
  filterableFields: readonly string[],
): Answer {
  return raw('application/json', Readable.from(envelope(), { objectMode: false }))

  async function* envelope() {
    yield '{"data":['
    let total = 0
    let batch: Row[] = []
    const flush = async () => {
      const texts = await textsOf(batch)
      const text = `${total === 0 ? '' : ','}${texts.join(',')}`
      total += batch.length
      batch = []
      return text
    }
    for await (const row of controller.store.stream(rows)) {
      batch.push(row)
      if (batch.length >= BATCH) yield await flush()
    }
    if (batch.length > 0) yield await flush()
    yield `],${listMeta({ limit: 'none', offset, total }, filterableFields)}}\n`
  }
}
