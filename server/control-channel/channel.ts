// One connection to a router after its hello: numbers messages, exchanges heartbeats, and shares the event loop with the others.
import type { Duplex } from 'node:stream'
import type { Clock } from '../../src/foundation/clock.ts'
import { ChannelHeader, ContentType } from './content-types.ts'
import { encodeBool, encodeInt32, encodeUint64 } from './header-values.ts'
import {
  encodeMessage,
  MalformedFrameError,
  MESSAGE_LIMITS,
  type Message,
  type MessageReader,
  type ReplyTarget,
} from './message.ts'

/** Why a channel ended, for the log. */
export type CloseReason =
  | 'closed by the router'
  | 'malformed message'
  | 'no heartbeat response'
  | 'the router does not read'
  | (string & {})

export interface ChannelHandlers {
  /**
   * Takes a message. It must not block: it returns at once. Messages whose promises are pending are in progress, and reading pauses
   * while they are too many; the promises never reject. It returns nothing for a message that waits for later messages of the same router.
   */
  onMessage(message: Message): Promise<void> | undefined
  /** Runs once, when nothing can be sent any more. */
  onClose(reason: CloseReason): void
}

export interface SendOptions {
  readonly headers?: Iterable<readonly [number, Buffer]>
  /** The message that this one replies to. */
  readonly replyTo?: ReplyTarget
}

// A heartbeat goes out if the last one is older than this, on the next message or by itself.
const HEARTBEAT_INTERVAL_MS = 10_000

// A router that has not responded to heartbeats for this long is gone, though TCP has not noticed. Asked first after a minute.
const HEARTBEAT_TIMEOUT_MS = 30_000
const HEARTBEAT_GRACE_MS = 60_000

// The owner of the channels calls `tick` once a second. If it comes later than this, the process stalled.
const MAX_TICK_PAUSE_MS = 5_000

// A router that does not read loses its channel before it costs more memory than this.
const MAX_UNSENT_BYTES = 32 * 1024 * 1024

// How long the messages of one router are handled before everything else gets its turn.
const MAX_TURN_MS = 5

// Beyond one of these limits no message is read until one in progress is finished. One long message fills the second by itself.
const MAX_MESSAGES_IN_PROGRESS = 64
const MAX_BYTES_IN_PROGRESS = 1024 * 1024

const EMPTY = Buffer.alloc(0)

/** Headers that a reply repeats from its request: traces use them. */
const isReflected = (id: number) => id >= 128 && id <= 255

/** The part of a message that a reply needs, without the rest of its frame: for requests that wait long for their reply. */
export function toReplyTarget({ sequence, headers }: Message): ReplyTarget {
  const reflected = [...headers].filter(([id]) => isReflected(id))
  return { sequence, headers: new Map(reflected.map(([id, value]) => [id, Buffer.from(value)])) }
}

export interface ChannelOptions {
  readonly socket: Duplex
  readonly clock: Clock
  /** What has been read from the socket beyond the hello is still in it. */
  readonly reader: MessageReader
  readonly handlers: ChannelHandlers
  /** The number of the first message: random, so that late replies to an earlier connection match nothing. */
  readonly firstSequence: number
}

export class Channel {
  readonly #socket: Duplex
  readonly #clock: Clock
  readonly #reader: MessageReader
  readonly #handlers: ChannelHandlers
  readonly #openedAt: number
  #sequence: number
  #heartbeatSentAt = Number.NEGATIVE_INFINITY
  #heartbeatResponseAt: number
  #lastHeardAt: number
  #tickedAt: number
  #closeReason: CloseReason | undefined
  /** When the messages of this turn of the event loop have taken their time; undefined until the first one arrives in it. */
  #turnEndsAt: number | undefined
  /** Whether the next turn goes on with messages that have arrived. */
  #isTurnScheduled = false
  #messagesInProgress = 0
  #bytesInProgress = 0

  constructor({ socket, clock, reader, handlers, firstSequence }: ChannelOptions) {
    this.#socket = socket
    this.#clock = clock
    this.#reader = reader
    this.#handlers = handlers
    this.#sequence = firstSequence
    this.#openedAt = clock.monotonic()
    this.#heartbeatResponseAt = this.#openedAt
    this.#lastHeardAt = this.#openedAt
    this.#tickedAt = this.#openedAt
    reader.setLimits(MESSAGE_LIMITS)
    socket.on('data', (chunk: Buffer) => {
      this.#lastHeardAt = clock.monotonic()
      reader.push(chunk)
      if (!this.#isReadingPaused) this.#readMessages()
    })
    socket.on('error', () => this.close('closed by the router'))
    socket.on('close', () => this.close('closed by the router'))
    socket.on('end', () => this.close('closed by the router'))
  }

  /** When the router last sent anything, by the monotonic clock. */
  get lastHeardAt(): number {
    return this.#lastHeardAt
  }

  get isOpen(): boolean {
    return this.#closeReason === undefined
  }

  /** Handles what came with the hello, and reads on. Called once, when the handlers are ready. */
  start(): void {
    this.#socket.resume()
    this.#readMessages()
  }

  /** Sends a message and returns its number. Does nothing if the channel has ended. */
  send(type: number, body: Uint8Array = EMPTY, { headers = [], replyTo }: SendOptions = {}): number {
    const sequence = this.#nextSequence()
    if (!this.isOpen) return sequence
    const all = new Map(headers)
    if (replyTo) {
      all.set(ChannelHeader.REPLY_FOR, encodeInt32(replyTo.sequence))
      for (const [id, value] of replyTo.headers) if (isReflected(id)) all.set(id, value)
    }
    this.#addHeartbeat(all)
    this.#write({ type, sequence, headers: all, body: toBuffer(body) })
    return sequence
  }

  /** Replies that a request succeeded, or why it did not. */
  sendResult(replyTo: Message, isSuccess: boolean, text = '', more: readonly (readonly [number, Buffer])[] = []): void {
    const headers = [[ChannelHeader.RESULT_SUCCESS, encodeBool(isSuccess)] as const, ...more]
    this.send(ContentType.RESULT, Buffer.from(text), { headers, replyTo })
  }

  /** Work by the clock: heartbeats. The owner of the channels calls it once a second. */
  tick(): void {
    if (!this.isOpen) return
    const now = this.#clock.monotonic()
    const hasStalled = now - this.#tickedAt > MAX_TICK_PAUSE_MS
    this.#tickedAt = now
    // The response may be among what has not been read yet: timers run before the sockets are read.
    if (this.#isReadingPaused || hasStalled) this.#heartbeatResponseAt = now
    // Only while it owes a response: after a stall of this process the last one is old, and the next one was not asked for.
    const isJudged = now - this.#openedAt >= HEARTBEAT_GRACE_MS && this.#heartbeatResponseAt < this.#heartbeatSentAt
    if (isJudged && now - this.#heartbeatResponseAt > HEARTBEAT_TIMEOUT_MS) this.close('no heartbeat response')
    else if (this.#isHeartbeatDue(now)) this.send(ContentType.HEARTBEAT)
  }

  /** Ends the channel; only the first reason counts. */
  close(reason: CloseReason): void {
    if (!this.isOpen) return
    this.#closeReason = reason
    // What was sent before goes out, as far as the network takes it.
    this.#socket.uncork()
    this.#socket.destroy()
    this.#handlers.onClose(reason)
  }

  get #isReadingPaused(): boolean {
    return this.#isTurnScheduled || this.#hasTooMuchInProgress
  }

  get #hasTooMuchInProgress(): boolean {
    return this.#messagesInProgress >= MAX_MESSAGES_IN_PROGRESS || this.#bytesInProgress >= MAX_BYTES_IN_PROGRESS
  }

  /** Handles the messages that have arrived, as far as the time of this turn suffices. The socket pauses until the rest is handled. */
  #readMessages(): void {
    const endsAt = this.#beginTurn()
    try {
      while (this.isOpen && !this.#hasTooMuchInProgress) {
        if (performance.now() >= endsAt) {
          this.#scheduleTurn()
          return
        }
        const message = this.#reader.next()
        if (!message) {
          this.#socket.resume()
          return
        }
        this.#take(message)
      }
      this.#socket.pause()
    } catch (error) {
      if (!(error instanceof MalformedFrameError)) throw error
      this.close(`malformed message: ${error.message}`)
    }
  }

  /** Returns when the time of this turn ends. Several reads of the socket may share a turn, and share its time. */
  #beginTurn(): number {
    if (this.#turnEndsAt !== undefined) return this.#turnEndsAt
    setImmediate(() => this.#endTurn())
    this.#turnEndsAt = performance.now() + MAX_TURN_MS
    return this.#turnEndsAt
  }

  #endTurn(): void {
    this.#turnEndsAt = undefined
    if (!this.#isTurnScheduled) return
    this.#isTurnScheduled = false
    this.#readMessages()
  }

  #scheduleTurn(): void {
    this.#isTurnScheduled = true
    this.#beginTurn()
    this.#socket.pause()
  }

  #take(message: Message): void {
    const { type, headers } = message
    const heartbeat = headers.get(ChannelHeader.HEARTBEAT)
    // At once: a router that waits for five seconds takes the controller for unresponsive.
    if (heartbeat) this.send(ContentType.HEARTBEAT, EMPTY, { headers: [[ChannelHeader.HEARTBEAT_RESPONSE, heartbeat]] })
    if (headers.has(ChannelHeader.HEARTBEAT_RESPONSE)) this.#heartbeatResponseAt = this.#clock.monotonic()
    if (type === ContentType.HEARTBEAT || type === ContentType.RECONNECT_PROBE) return
    if (type === ContentType.PING) this.sendResult(message, true)
    else this.#handle(message)
  }

  #handle(message: Message): void {
    const work = this.#handlers.onMessage(message)
    if (!work) return
    const bytes = message.body.length
    this.#messagesInProgress += 1
    this.#bytesInProgress += bytes
    void work.finally(() => {
      const wasPaused = this.#isReadingPaused
      this.#messagesInProgress -= 1
      this.#bytesInProgress -= bytes
      if (wasPaused && !this.#isReadingPaused && this.isOpen) this.#scheduleTurn()
    })
  }

  #isHeartbeatDue(now: number): boolean {
    return now - this.#heartbeatSentAt > HEARTBEAT_INTERVAL_MS
  }

  #addHeartbeat(headers: Map<number, Buffer>): void {
    const now = this.#clock.monotonic()
    if (!this.#isHeartbeatDue(now)) return
    this.#heartbeatSentAt = now
    headers.set(ChannelHeader.HEARTBEAT, encodeUint64(BigInt(this.#clock.now()) * 1_000_000n))
  }

  /** What is sent in one go is written as one, because each write by itself encrypts a record and calls the system. */
  #write(message: Message): void {
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    this.#socket.write(encodeMessage(message))
    if (this.#socket.writableLength > MAX_UNSENT_BYTES) this.close('the router does not read')
  }

  /** Numbers wrap inside the positive 32-bit integers; −1 means "no request" in a reply. */
  #nextSequence(): number {
    const sequence = this.#sequence
    this.#sequence = sequence === MAX_SEQUENCE ? 1 : sequence + 1
    return sequence
  }
}

const MAX_SEQUENCE = 0x7fffffff

function toBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
