// Clients that ask for much and read little: they are cut before they cost memory, and slow but honest ones are not.
import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { TLSSocket } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { defineOperation } from '../../server/api/operation.ts'
import { document, rawResponse } from '../../server/api/responses.ts'
import { getConnection } from '../../server/connections/http-connection.ts'
import { SlowReaders } from '../../server/connections/slow-readers.ts'
import { type Log, silentLog } from '../../src/foundation/log.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { openTls, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'

const MIB = 1024 * 1024
// More than the operating system takes on its own for a connection over loopback.
const LARGE_BYTES = 32 * MIB
const PAGE_BYTES = 4 * MIB
const PORTIONS = 64

const shared = Buffer.alloc(LARGE_BYTES, 'x')
const COMMON = { apis: ['client'], topic: 'informational', method: 'GET', summary: 'A fixture.' } as const
const RAW = { access: { public: 'a fixture' }, returns: { kind: 'raw', contentType: 'text/plain' } } as const

const operations = [
  defineOperation({ ...COMMON, ...RAW, id: 'shared', path: '/shared', run: () => document('text/plain', shared) }),
  defineOperation({
    ...COMMON,
    ...RAW,
    id: 'page',
    path: '/page',
    run: () => rawResponse('text/plain', 'x'.repeat(PAGE_BYTES)),
  }),
  defineOperation({ ...COMMON, ...RAW, id: 'small', path: '/small', run: () => rawResponse('text/plain', 'small') }),
  defineOperation({
    ...COMMON,
    ...RAW,
    id: 'stream',
    path: '/stream',
    run: () => rawResponse('text/plain', Readable.from(pieces(), { objectMode: false })),
  }),
]

function* pieces() {
  for (let sentBytes = 0; sentBytes < LARGE_BYTES; sentBytes += MIB) yield shared.subarray(0, MIB)
}

interface Cut {
  readonly connections: number
  readonly reason: string
}

let world: TestController | undefined
const sockets: TLSSocket[] = []

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await world?.close()
  world = undefined
})

async function listen(settings: Record<string, unknown>): Promise<{ target: RawTarget; cuts: Cut[] }> {
  const cuts: Cut[] = []
  const log: Log = {
    debug() {},
    info: (fields, message) => {
      if (message === 'cut clients that do not read') cuts.push(fields as unknown as Cut)
    },
    warn() {},
    error() {},
  }
  world = await testController({ operations, settings, log })
  const { url, rootPem } = await world.listen()
  return { target: rawTarget(url, rootPem), cuts }
}

/** Sends requests for a path on a connection of its own and reads nothing. */
async function ask(target: RawTarget, path: string, times = 1): Promise<TLSSocket> {
  const socket = await openTls(target)
  socket.on('error', () => {})
  socket.pause()
  sockets.push(socket)
  socket.write(request(path).repeat(times))
  return socket
}

const request = (path: string) => `GET ${CLIENT}${path} HTTP/1.1\r\nhost: x\r\n\r\n`

const countCut = (cuts: readonly Cut[]) => cuts.reduce((sum, { connections }) => sum + connections, 0)

/** Reads a portion, waits, and so on, until so much has come or the connection is cut; gives how much came. */
async function readSlowly(socket: TLSSocket, expectedBytes: number, waitMs: number): Promise<number> {
  let bytes = 0
  let portion = 0
  while (bytes < expectedBytes && !socket.destroyed) {
    const length = (socket.read() as Buffer | null)?.length ?? 0
    bytes += length
    portion += length
    const isEnough = portion >= expectedBytes / PORTIONS
    if (isEnough) portion = 0
    await new Promise((resolve) => setTimeout(resolve, isEnough ? waitMs : 0))
  }
  return bytes
}

describe('a client that reads nothing', () => {
  it.each(['/shared', '/page', '/stream'])('of %s is cut, and the response ends short', async (path) => {
    const { target, cuts } = await listen({ 'limits.writeTime': '1s', 'limits.unsentPerConnection': '1024MiB' })
    // So often that the operating system cannot take it all.
    const socket = await ask(target, path, path === '/page' ? 4 : 1)

    await expect.poll(() => countCut(cuts), { timeout: 20_000 }).toBe(1)

    const received = await readToEnd(socket)
    expect(received.length).toBeLessThan(path === '/page' ? 4 * PAGE_BYTES : LARGE_BYTES)
    expect(cuts[0]?.reason).toBe('nothing was taken for too long')
  })

  it('costs no more than a piece of a document that is the same for all', async () => {
    const { target } = await listen({ 'limits.writeTime': '1h' })
    const before = process.memoryUsage().rss
    const clients = 50
    for (let client = 0; client < clients; client++) await ask(target, '/shared')
    await Promise.all(
      sockets.map((socket) => expect.poll(() => socket.bytesRead, { timeout: 20_000 }).toBeGreaterThan(0)),
    )

    expect(process.memoryUsage().rss - before).toBeLessThan((clients * LARGE_BYTES) / 16)
  })

  it('is cut if it asks for more while too much waits for it', async () => {
    const { target, cuts } = await listen({ 'limits.writeTime': '1h', 'limits.unsentPerConnection': '1MiB' })
    const socket = await ask(target, '/page')
    await expect.poll(() => socket.bytesRead, { timeout: 20_000 }).toBeGreaterThan(0)

    socket.write(request('/page'))

    await expect.poll(() => countCut(cuts), { timeout: 20_000 }).toBe(1)
    expect(cuts[0]?.reason).toBe('more was asked for while too much waits')
  })

  it('is cut if it sends requests by the hundred before it reads a response', async () => {
    const { target, cuts } = await listen({ 'limits.writeTime': '1h', 'limits.unsentPerConnection': '1MiB' })
    const patient = await ask(target, '/small', 20)
    expect(await readSlowly(patient, 20 * 'small'.length, 0)).toBeGreaterThanOrEqual(20 * 'small'.length)
    expect(cuts).toEqual([])

    await ask(target, '/small', 500)

    await expect.poll(() => countCut(cuts), { timeout: 20_000 }).toBe(1)
  })

  it('is cut before one that came later if too much waits for all', async () => {
    const { target, cuts } = await listen({
      'limits.writeTime': '1h',
      'limits.unsentPerConnection': '1024MiB',
      'limits.unsent': '6MiB',
    })
    const first = await ask(target, '/page', 12)
    await expect.poll(() => first.bytesRead, { timeout: 20_000 }).toBeGreaterThan(0)
    const second = await ask(target, '/page', 12)

    await expect.poll(() => countCut(cuts), { timeout: 20_000 }).toBe(1)

    expect(cuts[0]?.reason).toBe('too much waits for all connections together')
    expect(await readSlowly(second, 12 * PAGE_BYTES, 0)).toBeGreaterThanOrEqual(12 * PAGE_BYTES)
    expect((await readToEnd(first)).length).toBeLessThan(12 * PAGE_BYTES)
  })
})

describe('a bound on what waits for all connections', () => {
  class FakeSocket extends EventEmitter {
    writableLength = 0
    bytesWritten = 0
    destroyed = false
    destroy() {
      this.destroyed = true
    }
    /** Receives a response that the client has had no time to read. */
    respond(bytes: number) {
      this.writableLength += bytes
      this.bytesWritten += bytes
    }
  }

  let nowMs: number
  let readers: SlowReaders
  beforeEach(() => {
    nowMs = 1_000
    const limits = { stallMs: 60_000, maxBytesPerConnection: MIB, maxBytes: MIB }
    readers = new SlowReaders(limits, silentLog, () => nowMs)
  })

  function connect(): FakeSocket {
    const socket = new FakeSocket()
    readers.watch(getConnection(socket as unknown as Socket))
    return socket
  }
  const hold = (socket: FakeSocket, bytes: number) => readers.hold(getConnection(socket as unknown as Socket), bytes)

  it('does not cut a client that reads all the time for the many that came later and read nothing', () => {
    const busy = connect()
    readers.check()
    nowMs += 400
    const later = Array.from({ length: 10 }, connect)
    nowMs += 100
    hold(busy, 16_384)
    busy.respond(500)

    for (const socket of later) hold(socket, 200_000)

    expect(busy.destroyed).toBe(false)
    expect(later.some(({ destroyed }) => destroyed)).toBe(true)
  })

  it('cuts so much at once that the next request does not cut again', () => {
    const sockets = Array.from({ length: 100 }, connect)
    const open = () => sockets.filter(({ destroyed }) => !destroyed)
    for (const socket of sockets) if (open().length === sockets.length) hold(socket, 20_000)
    const afterFirst = open().length

    for (const socket of open().slice(0, 5)) hold(socket, 20_000)

    expect(afterFirst).toBeLessThan(sockets.length)
    expect(open()).toHaveLength(afterFirst)
  })
})

describe('a client that reads slowly', () => {
  it.each(['/shared', '/stream'])(
    'gets all of %s, although that takes longer than it may stand still',
    async (path) => {
      const { target, cuts } = await listen({ 'limits.writeTime': '2s' })
      const socket = await ask(target, path)

      const bytes = await readSlowly(socket, LARGE_BYTES, 50)

      expect(bytes).toBeGreaterThanOrEqual(LARGE_BYTES)
      expect(cuts).toEqual([])
    },
  )
})
