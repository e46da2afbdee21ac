// Turns of a channel: a router that sends much leaves the event loop to others, and nothing that it sent is lost or reordered.
import { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Channel } from '../../server/control-channel/channel.ts'
import { encodeMessage, MESSAGE_LIMITS, type Message, MessageReader } from '../../server/control-channel/message.ts'
import { TestClock } from '../world/controller.ts'

const PING = 1
const OTHER = 424_242

afterEach(() => {
  vi.restoreAllMocks()
})

const encode = (sequence: number, type = OTHER, body = Buffer.alloc(0)) =>
  encodeMessage({ type, sequence, headers: new Map(), body })

const range = (count: number) => Array.from({ length: count }, (_, index) => index)

/** A channel over a connection in memory. */
function openChannel(onMessage: (message: Message) => Promise<void> | undefined) {
  const writes: number[] = []
  const socket = new Duplex({
    read() {},
    write: (_chunk, _encoding, done) => {
      writes.push(1)
      done()
    },
    writev: (chunks, done) => {
      writes.push(chunks.length)
      done()
    },
  })
  const reasons: string[] = []
  const clock = new TestClock()
  const channel = new Channel({
    clock,
    firstSequence: 1,
    handlers: { onMessage, onClose: (reason) => reasons.push(reason) },
  })
  channel.add({ socket, reader: new MessageReader(MESSAGE_LIMITS), type: 'ctrl.default' }).start()
  /** Lets time pass as in a controller that does not stall. */
  const passSeconds = (count: number) => {
    for (const _ of range(count)) {
      clock.advance(1_000)
      channel.tick()
    }
  }
  return { channel, socket, clock, passSeconds, writes, reasons }
}

/** Has every look at the time take a millisecond, so that a turn is over after a few messages. */
function slowTime() {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => ++now)
}

describe('a router that sends many messages at once', () => {
  it('leaves the event loop to others after a few of them, and has all handled in order', async () => {
    slowTime()
    const sequences: number[] = []
    const { socket } = openChannel((message) => {
      sequences.push(message.sequence)
      return undefined
    })
    socket.push(Buffer.concat(range(100).map((sequence) => encode(sequence))))
    let handled = 0
    while (sequences.length < 100) {
      await setImmediate()
      expect(sequences.length - handled).toBeLessThan(10)
      handled = sequences.length
    }
    expect(sequences).toEqual(range(100))
  })

  it('has one time for a turn, however many pieces the connection makes of them', async () => {
    slowTime()
    let handled = 0
    const { socket } = openChannel(() => {
      handled += 1
      return undefined
    })
    await setImmediate()
    for (const sequence of range(50)) socket.emit('data', encode(sequence))
    expect(handled).toBeLessThan(10)
    expect(socket.isPaused()).toBe(true)
    while (handled < 50) await setImmediate()
    await setImmediate()
    expect(socket.isPaused()).toBe(false)
  })

  it('has no message handled after its channel was closed between two turns', async () => {
    slowTime()
    let handled = 0
    const { channel, socket, reasons } = openChannel(() => {
      handled += 1
      return undefined
    })
    socket.push(Buffer.concat(range(100).map((sequence) => encode(sequence))))
    while (handled === 0) await setImmediate()
    channel.close('closed by a test')
    const handledBefore = handled
    for (const _ of range(5)) await setImmediate()
    expect(handled).toBe(handledBefore)
    expect(reasons).toEqual(['closed by a test'])
  })

  it('gets its replies in one write a turn', async () => {
    const { socket, writes } = openChannel(() => undefined)
    socket.push(Buffer.concat(range(10).map((sequence) => encode(sequence, PING))))
    const countReplies = () => writes.reduce((sum, replies) => sum + replies, 0)
    while (countReplies() < 10) await setImmediate()
    // One, unless the machine was too busy to handle all of them in a turn.
    expect(writes.length).toBeLessThan(5)
  })
})

describe('the first message of a router', () => {
  it('tells its number before it is handled, also if it is a heartbeat', async () => {
    const observed: (number | string)[] = []
    const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() })
    const channel = new Channel({
      clock: new TestClock(),
      firstSequence: 1,
      handlers: {
        onFirstSequence: (sequence) => observed.push(sequence),
        onMessage: ({ sequence }) => {
          observed.push(`handled ${sequence}`)
          return undefined
        },
        onClose() {},
      },
    })
    channel.add({ socket, reader: new MessageReader(MESSAGE_LIMITS), type: 'ctrl.default' }).start()
    socket.push(Buffer.concat([encode(7, 5), encode(8), encode(9)]))
    while (observed.length < 3) await setImmediate()
    expect(observed).toEqual([7, 'handled 8', 'handled 9'])
  })
})

describe('a router whose messages take long', () => {
  it('is not read while 64 of them are in progress, and is read on when one is finished', async () => {
    const finish: (() => void)[] = []
    const { socket } = openChannel(() => new Promise((resolve) => finish.push(resolve)))
    socket.push(Buffer.concat(range(100).map((sequence) => encode(sequence))))
    for (const _ of range(5)) await setImmediate()
    expect(finish).toHaveLength(64)
    expect(socket.isPaused()).toBe(true)
    finish[0]!()
    for (const _ of range(5)) await setImmediate()
    expect(finish).toHaveLength(65)
    for (let at = 1; at < 100; at += 1) {
      while (finish.length <= at) await setImmediate()
      finish[at]!()
    }
    while (socket.isPaused()) await setImmediate()
  })

  it('has one message of a megabyte in progress at a time', async () => {
    const finish: (() => void)[] = []
    const { socket } = openChannel(() => new Promise((resolve) => finish.push(resolve)))
    socket.push(Buffer.concat(range(3).map((sequence) => encode(sequence, OTHER, Buffer.alloc(1024 * 1024)))))
    for (const at of range(3)) {
      for (const _ of range(5)) await setImmediate()
      expect(finish).toHaveLength(at + 1)
      finish[at]!()
    }
  })

  it('does not lose its channel for a heartbeat response that has not been read', async () => {
    const { channel, socket, passSeconds } = openChannel(() => new Promise(() => {}))
    passSeconds(29)
    socket.push(Buffer.concat(range(64).map((sequence) => encode(sequence))))
    for (const _ of range(5)) await setImmediate()
    passSeconds(61)
    expect(channel.isOpen).toBe(true)
  })
})

describe('a router that does not respond to heartbeats', () => {
  it('loses its channel after thirty seconds, and not in its first minute', () => {
    const { channel, passSeconds, reasons } = openChannel(() => undefined)
    passSeconds(59)
    expect(channel.isOpen).toBe(true)
    passSeconds(1)
    expect(reasons).toEqual(['no heartbeat response'])
  })

  it('keeps its channel for as long as the controller itself stalls, because the response may have arrived', async () => {
    const { channel, clock, socket, passSeconds, reasons } = openChannel(() => undefined)
    passSeconds(15)
    clock.advance(300_000)
    channel.tick()
    expect(channel.isOpen).toBe(true)
    socket.push(
      encodeMessage({ type: 5, sequence: 1, headers: new Map([[6, Buffer.alloc(8)]]), body: Buffer.alloc(0) }),
    )
    await setImmediate()
    passSeconds(30)
    expect(channel.isOpen).toBe(true)
    passSeconds(15)
    expect(reasons).toEqual(['no heartbeat response'])
  })
})

describe('a long message', () => {
  /** A channel whose router reads what the test lets it read. */
  function openSlowChannel() {
    const clock = new TestClock()
    const pieces: Buffer[] = []
    let readOn = () => {}
    const socket = new Duplex({
      read() {},
      write(piece: Buffer, _encoding, done) {
        pieces.push(piece)
        readOn = done
      },
    })
    const reasons: string[] = []
    const handlers = { onMessage: () => undefined, onClose: (reason: string) => reasons.push(reason) }
    const channel = new Channel({ clock, firstSequence: 1, handlers })
    channel.add({ socket, reader: new MessageReader(MESSAGE_LIMITS), type: 'ctrl.default' }).start()
    const passSeconds = (count: number) => {
      for (const _ of range(count)) {
        clock.advance(1_000)
        channel.tick()
      }
    }
    const read = async () => {
      readOn()
      await setImmediate()
    }
    return { channel, clock, pieces, read, reasons, passSeconds }
  }

  const parts = range(10).map((nth) => Buffer.alloc(100_000, nth))

  it('is written as the router reads it, with what was sent meanwhile after it', async () => {
    const { channel, pieces, read } = openSlowChannel()
    const writing = channel.sendLong(OTHER, parts, [])
    channel.send(OTHER + 1)
    await setImmediate()
    expect(pieces.reduce((sum, { length }) => sum + length, 0)).toBeLessThan(200_000)
    let isWritten = false
    void writing.then(() => {
      isWritten = true
    })
    for (let turn = 0; turn < 50; turn += 1) await read()
    expect(isWritten).toBe(true)
    const reader = new MessageReader({ ...MESSAGE_LIMITS, maxBodyBytes: 2_000_000 })
    reader.push(Buffer.concat(pieces))
    const [first, second] = [reader.next(), reader.next()]
    expect(first!.body.equals(Buffer.concat(parts))).toBe(true)
    expect([first!.type, second!.type]).toEqual([OTHER, OTHER + 1])
    expect(second!.sequence).toBe(first!.sequence + 1)
  })

  it('is followed by another one, of which no piece is written among its own', async () => {
    const { channel, pieces, read } = openSlowChannel()
    const writing = [OTHER, OTHER + 1].map((type) => channel.sendLong(type, parts, []))
    channel.send(OTHER + 2)
    let isWritten = false
    void Promise.all(writing).then(() => {
      isWritten = true
    })
    for (let turn = 0; turn < 100; turn += 1) await read()
    expect(isWritten).toBe(true)
    const reader = new MessageReader({ ...MESSAGE_LIMITS, maxBodyBytes: 2_000_000 })
    reader.push(Buffer.concat(pieces))
    const messages = [reader.next(), reader.next(), reader.next()]
    expect(messages.map((message) => message?.type)).toEqual([OTHER, OTHER + 2, OTHER + 1])
    for (const at of [0, 2]) expect(messages[at]!.body.equals(Buffer.concat(parts))).toBe(true)
  })

  it('excuses a router that reads it slowly from heartbeats, and not one that stops', async () => {
    const { channel, passSeconds, read, reasons } = openSlowChannel()
    void channel.sendLong(OTHER, parts, [])
    for (let turn = 0; turn < 14; turn += 1) {
      await read()
      passSeconds(10)
    }
    expect(reasons).toEqual([])
    passSeconds(60)
    expect(reasons).toEqual(['no heartbeat response'])
  })

  it('ends with the channel', async () => {
    const { channel } = openSlowChannel()
    const writing = channel.sendLong(OTHER, parts, [])
    channel.close('a test')
    await writing
    expect(channel.waitUntilWritable(OTHER)).toBeUndefined()
  })
})
