// One connection of a router after its hello: cuts what arrives into messages, and shares the event loop with other connections.
import type { Duplex } from 'node:stream'
import type { Clock } from '../../src/foundation/clock.ts'
import {
  MalformedFrameError,
  MESSAGE_LIMITS,
  type Message,
  type MessageReader,
  type SkippedMessage,
} from './message.ts'

/** The uses that routers have for a connection. Those of release 1 have one connection, for everything. */
export const CONNECTION_TYPES = ['ctrl.default', 'ctrl.high'] as const
export type ConnectionType = (typeof CONNECTION_TYPES)[number]

export interface ConnectionSource {
  readonly socket: Duplex
  /** The reader, which still holds the bytes that were read from the socket beyond the hello. */
  readonly reader: MessageReader
  readonly type: ConnectionType
}

export interface ConnectionHandlers {
  /** Whether another message may be read. While it may not, the socket is paused until `readOn`. */
  canRead(): boolean
  /** Takes a message. It must not block: it returns at once. */
  onMessage(message: Message): void
  /** Runs if the router sends a request for a client that is too long, and is skipped. */
  onSkip(skipped: SkippedMessage): void
  /** Runs if the router sends what is not a message. */
  onMalformed(reason: string): void
  /** Runs once, when the connection has ended by itself. */
  onEnd(): void
}

// A router that has read nothing of a long message for this long is like one that does not respond.
const MAX_PAUSE_MS = 20_000

// How much of a long message is handed to the socket at a time, and how much may wait there while more is written.
const MAX_PIECE_BYTES = 64 * 1024
const MAX_LITTLE_BYTES = 256 * 1024

// How long the messages of one connection are handled before everything else gets its turn.
const MAX_TURN_MS = 5

export class Connection {
  readonly type: ConnectionType
  readonly #socket: Duplex
  readonly #clock: Clock
  readonly #reader: MessageReader
  readonly #handlers: ConnectionHandlers
  #lastHeardAt: number
  #isOpen = true
  #isWritingLong = false
  /** The one that is on its way, or was last. */
  #longFrame: Promise<void> | undefined
  /** When the router last read from the long message. */
  #readAt = 0
  /** Frames that follow the long one, and their length. */
  readonly #waiting: Buffer[] = []
  #waitingBytes = 0
  /** When the messages of this turn of the event loop have taken their time; undefined until the first one arrives in it. */
  #turnEndsAt: number | undefined
  /** Whether the next turn goes on with messages that have arrived. */
  #isTurnScheduled = false

  constructor({ socket, reader, type }: ConnectionSource, clock: Clock, handlers: ConnectionHandlers) {
    this.type = type
    this.#socket = socket
    this.#clock = clock
    this.#reader = reader
    this.#handlers = handlers
    this.#lastHeardAt = clock.monotonic()
    reader.setLimits(MESSAGE_LIMITS)
    reader.onSkip = (skipped) => handlers.onSkip(skipped)
    socket.on('data', (chunk: Buffer) => {
      this.#lastHeardAt = clock.monotonic()
      reader.push(chunk)
      if (!this.isReadingPaused) this.#readMessages()
    })
    for (const event of ['error', 'close', 'end']) socket.on(event, () => this.#end())
  }

  /** When the router last sent anything over it, by the monotonic clock. */
  get lastHeardAt(): number {
    return this.#lastHeardAt
  }

  /** How much waits for the router to read it. */
  get unsentBytes(): number {
    return this.#socket.writableLength + this.#waitingBytes
  }

  /** Whether other messages wait for the end of a long one. */
  get isWritingLong(): boolean {
    return this.#isWritingLong
  }

  /** Whether a long message is on its way, which the router has read from lately: others wait for its end. */
  isSendingLong(now: number): boolean {
    return this.#isWritingLong && now - this.#readAt <= MAX_PAUSE_MS
  }

  /** Resolves when the router has read what waits, or the connection has ended; undefined while little waits. */
  waitUntilWritable(): Promise<void> | undefined {
    return this.#isOpen && this.unsentBytes > MAX_LITTLE_BYTES ? this.#waitUntilRead() : undefined
  }

  /** Whether messages have arrived that were not read, because others have their turn or too many are in progress. */
  get isReadingPaused(): boolean {
    return this.#isTurnScheduled || !this.#handlers.canRead()
  }

  /** Handles what came with the hello, and reads on. Called once, when the handlers are ready. */
  start(): void {
    this.#socket.resume()
    this.#readMessages()
  }

  /** Reads on in the next turn, because messages may be read again. */
  readOn(): void {
    if (!this.#isTurnScheduled) this.#scheduleTurn()
  }

  /** Frames that are sent in one turn are written as one, because each write by itself encrypts a record and calls the system. */
  write(frame: Buffer): void {
    if (this.#isWritingLong) {
      this.#waiting.push(frame)
      this.#waitingBytes += frame.length
      return
    }
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork()
      process.nextTick(() => this.#socket.uncork())
    }
    this.#socket.write(frame)
  }

  /**
   * Writes a frame that is long in pieces, no faster than the router reads; other frames wait for its end. Resolves then, or when the
   * connection has ended. One is written at a time: a model that a router asks for, and one that it is to take, may meet here.
   */
  async writeLong(pieces: Iterable<Buffer>): Promise<void> {
    while (this.#isWritingLong) await this.#longFrame
    this.#longFrame = this.#writePieces(pieces)
    await this.#longFrame
  }

  async #writePieces(pieces: Iterable<Buffer>): Promise<void> {
    this.#isWritingLong = true
    this.#readAt = this.#clock.monotonic()
    for (const piece of pieces) {
      for (let at = 0; at < piece.length && this.#isOpen; at += MAX_PIECE_BYTES) {
        if (!this.#socket.write(piece.subarray(at, at + MAX_PIECE_BYTES))) await this.#waitUntilRead()
        this.#readAt = this.#clock.monotonic()
      }
    }
    this.#isWritingLong = false
    this.#waitingBytes = 0
    for (const frame of this.#waiting.splice(0)) this.write(frame)
  }

  async #waitUntilRead(): Promise<void> {
    const socket = this.#socket
    if (!this.#isOpen || !socket.writableNeedDrain) return
    await new Promise<void>((resolve) => {
      const settle = () => {
        socket.off('drain', settle).off('close', settle)
        resolve()
      }
      socket.on('drain', settle).on('close', settle)
    })
  }

  /** Ends the connection. What was sent before goes out, as far as the network takes it. */
  close(): void {
    this.#isOpen = false
    this.#waiting.length = 0
    this.#waitingBytes = 0
    this.#socket.uncork()
    this.#socket.destroy()
  }

  #end(): void {
    if (!this.#isOpen) return
    this.close()
    this.#handlers.onEnd()
  }

  /** Handles the messages that have arrived, as far as the time of this turn suffices. The socket pauses until the rest is handled. */
  #readMessages(): void {
    const endsAt = this.#beginTurn()
    try {
      while (this.#isOpen && this.#handlers.canRead()) {
        if (performance.now() >= endsAt) {
          this.#scheduleTurn()
          return
        }
        const message = this.#reader.next()
        if (!message) {
          this.#socket.resume()
          return
        }
        this.#handlers.onMessage(message)
      }
      this.#socket.pause()
    } catch (error) {
      if (!(error instanceof MalformedFrameError)) throw error
      this.#handlers.onMalformed(error.message)
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
}
