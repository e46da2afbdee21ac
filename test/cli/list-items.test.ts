// The items of a list, parsed while its envelope arrives in pieces of any size.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type PageMeta, readListItems } from '../../commands/client/list-items.ts'

/** Text in which each character has a meaning to the parser. */
const text = fc.string({ unit: fc.constantFrom('"', '\\', ',', '[', ']', '{', '}', ' ', 'x', 'é', '😀') })
const item = fc.jsonValue({ stringUnit: 'binary' })
const data = fc.array(fc.oneof(item, text, fc.record({ note: text, list: fc.array(text) })))

async function* cut(body: Buffer, sizes: readonly number[]): AsyncIterable<Buffer> {
  for (let at = 0, turn = 0; at < body.length; turn++) {
    const size = sizes[turn % sizes.length] ?? 1
    yield body.subarray(at, at + size)
    at += size
  }
}

async function readAll(body: string, sizes: readonly number[] = [64]) {
  const items: unknown[] = []
  const metas: PageMeta[] = []
  for await (const one of readListItems(cut(Buffer.from(body), sizes), (meta) => metas.push(meta))) items.push(one)
  return { items, metas }
}

describe('the items of a list', () => {
  it('are those of the envelope, wherever it is cut into pieces', async () => {
    const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 })
    const meta = { pagination: { limit: 1, offset: 2, totalCount: 3 } }

    await fc.assert(
      fc.asyncProperty(data, sizes, fc.constantFrom(undefined, 2), async (items, cuts, indent) => {
        const body = JSON.stringify({ data: items, meta }, null, indent)

        expect(await readAll(body, cuts)).toEqual({
          items: (JSON.parse(body) as { data: unknown[] }).data,
          metas: [meta],
        })
      }),
    )
  })

  it.each(['{"data":[{"a":"b', '{"data":["\\\\', '{"data":[1,2', '{"data":[1]', '{"items":[1]}', ''])(
    'are incomplete in %j',
    async (body) => {
      await expect(readAll(body)).rejects.toThrow(SyntaxError)
    },
  )
})
