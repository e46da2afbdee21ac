// A client or a router that sends byte by byte takes no more memory than one that sends all at once.
import { setTimeout as sleep } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { beforeAll, describe, expect, it } from 'vitest'
import { GrowingBytes } from '../../server/connections/growing-bytes.ts'
import { encodeMessage, MESSAGE_LIMITS, MessageReader } from '../../server/control-channel/message.ts'
import { CLIENT } from '../world/controller.ts'
import { random } from '../world/random.ts'
import { openTls, type RawTarget, rawTarget, readToEnd } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let target: RawTarget

beforeAll(async () => {
  const { url, rootPem } = await world.listen()
  target = rawTarget(url, rootPem)
})

const CLIENTS = 10
const PIECES = 50_000
const MEBIBYTE = 1024 * 1024

it('bodies of single bytes take the memory of their bytes', async () => {
  const head = `POST ${CLIENT}/authenticate?method=password HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n`
  const sockets: TLSSocket[] = []
  for (let at = 0; at < CLIENTS; at++) sockets.push(await openTls(target))
  const received = sockets.map(readToEnd)
  global.gc?.()
  const before = process.memoryUsage().rss
  for (const socket of sockets) {
    socket.write(`${head}connection: close\r\ntransfer-encoding: chunked\r\n\r\n${'1\r\n \r\n'.repeat(PIECES)}`)
  }
  let peak = before
  const responses = Promise.all(received)
  let isDone = false
  void responses.then(() => {
    isDone = true
  })
  await sleep(500)
  for (const socket of sockets) socket.write('2\r\n{}\r\n0\r\n\r\n')
  while (!isDone) {
    peak = Math.max(peak, process.memoryUsage().rss)
    await sleep(20)
  }

  expect((await responses).map((text) => text.slice(0, 12))).toEqual(sockets.map(() => 'HTTP/1.1 400'))
  // As objects, the pieces of all clients take 200 MiB.
  expect(peak - before).toBeLessThan(80 * MEBIBYTE)
}, 90_000)

it('messages of routers in single bytes take the memory of their bytes', () => {
  const body = Buffer.alloc(MESSAGE_LIMITS.maxBodyBytes, 7)
  const frame = encodeMessage({ type: 1, sequence: 2, headers: new Map(), body })
  const reader = new MessageReader(MESSAGE_LIMITS)
  global.gc?.()
  const before = process.memoryUsage().heapUsed
  for (let at = 0; at < frame.length - 1; at++) {
    reader.push(frame.subarray(at, at + 1))
    expectNothing(reader.next())
  }
  const usedBytes = process.memoryUsage().heapUsed - before
  reader.push(frame.subarray(-1))

  expect(reader.next()?.body.equals(body)).toBe(true)
  // As objects, the pieces take 200 MiB.
  expect(usedBytes).toBeLessThan(80 * MEBIBYTE)
})

/** Costs nothing, unlike an expectation for each of two million bytes. */
function expectNothing(message: unknown): void {
  if (message !== undefined) throw new Error('a message was read before it was complete')
}

describe('bytes that arrive in pieces', () => {
  it('are those of all pieces, in their order', () => {
    const dice = random(5)
    for (let round = 0; round < 200; round++) {
      const pieces = Array.from({ length: dice.below(30) }, () => Buffer.alloc(dice.below(50), dice.below(256)))
      const received = new GrowingBytes()
      for (const piece of pieces) received.add(piece)

      expect(received.bytes.equals(Buffer.concat(pieces))).toBe(true)
      expect(received.length).toBe(received.bytes.length)
    }
  })

  it('are taken out from the front, and what was taken stays as it is', () => {
    const dice = random(6)
    for (let round = 0; round < 200; round++) {
      const pieces = Array.from({ length: dice.below(30) }, () => Buffer.alloc(dice.below(50), dice.below(256)))
      const received = new GrowingBytes()
      const parts: Buffer[] = []
      for (const piece of pieces) {
        received.add(piece)
        if (dice.below(2) === 0) parts.push(received.take(dice.below(received.length + 1)))
      }

      expect(Buffer.concat([...parts, received.bytes]).equals(Buffer.concat(pieces))).toBe(true)
    }
  })

  it('leave the pieces as they are', () => {
    const first = Buffer.from('abcdef').subarray(0, 3)
    const received = new GrowingBytes()
    received.add(first)
    received.add(Buffer.from('xyz'))

    expect([received.bytes.toString(), Buffer.from(first.buffer, first.byteOffset, 6).toString()]).toEqual([
      'abcxyz',
      'abcdef',
    ])
  })
})
