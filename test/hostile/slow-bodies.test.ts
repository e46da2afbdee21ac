// Bodies that arrive byte by byte: the total time of a request is limited, also after a response was sent.
import { beforeEach, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { openTls, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const world = useControllerPerTest({ settings: { 'limits.requestTime': '2s' } })
let target: RawTarget
let administrator: string

beforeEach(async () => {
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
  administrator = await world.admin()
})

/** Sends a request whose body never ends, a byte now and then, and reads until the server closes the connection. */
async function drip(method: string, path: string, headers: readonly string[] = []): Promise<string> {
  const socket = await openTls(target)
  const head = [`${method} ${path} HTTP/1.1`, 'host: x', 'content-type: application/json', ...headers]
  socket.write(`${head.join('\r\n')}\r\n\r\n`)
  const isChunked = headers.includes('transfer-encoding: chunked')
  const timer = setInterval(() => socket.write(isChunked ? '1\r\n \r\n' : ' '), 50)
  const received = await readToEnd(socket)
  clearInterval(timer)
  return received
}

const statuses = (received: string) => [...received.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status))

describe('a body that drips', () => {
  it.each([
    ['of a stranger', () => drip('POST', `${CLIENT}/authenticate?method=password`, ['content-length: 60000']), 408],
    [
      'of a stranger in chunks',
      () => drip('POST', `${CLIENT}/authenticate?method=password`, ['transfer-encoding: chunked']),
      408,
    ],
    [
      'of an administrator',
      () => drip('POST', `${MANAGEMENT}/services`, ['content-length: 60000', `net-session: ${administrator}`]),
      408,
    ],
    ['after a refusal', () => drip('POST', `${MANAGEMENT}/services`, ['content-length: 60000']), 401],
    ['after a refusal, in chunks', () => drip('POST', `${MANAGEMENT}/none`, ['transfer-encoding: chunked']), 404],
    ['that nothing reads', () => drip('GET', '/version', ['content-length: 60000']), 200],
  ])('%s is cut, with one response', async (_whose, send, status) => {
    expect(statuses(await send())).toEqual([status])
  })

  it('of more than may be sent is refused at once, and cut', async () => {
    expect(statuses(await drip('POST', `${MANAGEMENT}/services`, ['content-length: 99999999']))).toEqual([413])
  })
})
