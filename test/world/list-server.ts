// A controller that can do nothing but list identities, at the pace and of the length that a test sets.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:https'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { copyOfTemplate } from './controller.ts'

const PART_LENGTH = 64 * 1024

export interface ListServer {
  readonly url: string
  readonly rootPem: string
  close(): void
}

/**
 * @param total what the list says of its length
 * @param items the identities of one list; if they throw, the response is cut off
 */
export async function listServer(
  total: number,
  items: () => AsyncIterable<object> | Iterable<object>,
): Promise<ListServer> {
  const pki = join(copyOfTemplate(), 'pki')
  const pem = (name: string) => readFileSync(join(pki, name), 'utf8')
  const meta = { pagination: { limit: -1, offset: 0, totalCount: total } }
  const server = createServer(
    { key: pem('server.key'), cert: pem('server.crt') + pem('intermediate.crt') },
    (request, response) => {
      const isCount = new URL(request.url ?? '', 'https://here').searchParams.get('limit') === '1'
      const page = isCount ? [] : items()
      pipeline(Readable.from(envelope(page, meta)), response).catch(() => response.destroy())
    },
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `https://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    rootPem: pem('root.crt'),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

async function* envelope(items: AsyncIterable<object> | Iterable<object>, meta: object): AsyncIterable<string> {
  let text = '{"data":['
  let separator = ''
  for await (const item of items) {
    text += separator + JSON.stringify(item)
    separator = ','
    // Items that are there at once go out in large parts, as a controller sends them.
    if (text.length < PART_LENGTH && !(Symbol.asyncIterator in items)) continue
    yield text
    text = ''
  }
  yield `${text}],"meta":${JSON.stringify(meta)}}`
}
