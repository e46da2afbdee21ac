// The messages that a router and the controller exchange, over one connection or several: numbers them, exchanges heartbeats, and
// bounds what is in progress.
import type { Clock } from '../../src/foundation/clock.ts'
import { Connection, type ConnectionSource, type ConnectionType } from './connection.ts'
import { ChannelHeader, ContentType } from './content-types.ts'
import { encodeBool, encodeInt32 } from './header-values.ts'
import { Heartbeats } from './heartbeats.ts'
import { encodeHead, encodeMessage, type Message, type ReplyTarget, type SkippedMessage } from './message.ts'

/** The reason why a channel ended, for the log. */
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
  /** Runs for a request for a client that is too long, and is skipped. */
  onSkip?(skipped: SkippedMessage): void
  /** Runs with the number of the first message of the router, of whatever kind, before it is handled. */
  onFirstSequence?(sequence: number): void
  /** Runs when a connection has ended, and the channel goes on over another one. What was sent last may not have arrived. */
  onConnectionLost?(type: ConnectionType): void
  /** Runs once, when nothing can be sent any more. */
  onClose(reason: CloseReason): void
}

export interface SendOptions {
  readonly headers?: Iterable<readonly [number, Buffer]>
  /** The message that this one replies to. */
  readonly replyTo?: ReplyTarget
}

// A router that does not read loses its channel before it costs more memory than this.
const MAX_UNSENT_BYTES = 32 * 1024 * 1024

// Beyond one of these limits no message is read until one in progress is finished. One long message fills the second by itself.
const MAX_MESSAGES_IN_PROGRESS = 64
const MAX_BYTES_IN_PROGRESS = 1024 * 1024

// Messages that must not wait behind long ones: the greeting, for which a router waits before it uses the channel, and routes. The
// end of a route goes with them, because order holds within a connection only.
const URGENT_TYPES: ReadonlySet<number> = new Set([ContentType.SERVER_HELLO, ContentType.ROUTE, ContentType.UNROUTE])

const EMPTY = Buffer.alloc(0)

/** Headers that a reply repeats from its request: traces use them. */
const isReflected = (id: number) => id >= 128 && id <= 255

/** The part of a message that a reply needs, without the rest of its frame: for requests that wait long for their reply. */
export function toReplyTarget({ sequence, headers }: Message): ReplyTarget {
  const reflected = [...headers].filter(([id]) => isReflected(id))
  return { sequence, headers: new Map(reflected.map(([id, value]) => [id, Buffer.from(value)])) }
}

export interface ChannelOptions {
  readonly clock: Clock
  readonly handlers: ChannelHandlers
  /** The number of the first message: random, so that late replies to an earlier channel match nothing. */
  readonly firstSequence: number
}

export class Channel {
  readonly #clock: Clock
  readonly #handlers: ChannelHandlers
  readonly #heartbeats: Heartbeats
  readonly #connections = new Map<ConnectionType, Connection>()
  #sequence: number
  /** When the router last sent anything over a connection that has ended. */
  #heardBeforeAt: number
  #closeReason: CloseReason | undefined
  #messagesInProgress = 0
  #bytesInProgress = 0
  #hasReceived = false

  constructor({ clock, handlers, firstSequence }: ChannelOptions) {
    this.#clock = clock
    this.#handlers = handlers
    this.#sequence = firstSequence
    this.#heartbeats = new Heartbeats(clock)
    this.#heardBeforeAt = clock.monotonic()
  }

  /** When the router last sent anything, by the monotonic clock. */
  get lastHeardAt(): number {
    let latest = this.#heardBeforeAt
    for (const { lastHeardAt } of this.#connections.values()) latest = Math.max(latest, lastHeardAt)
    return latest
  }

  /** Whether the router does not respond to heartbeats now. */
  get isSilent(): boolean {
    return this.#heartbeats.isSilent
  }

  /** Whether a request that is read now may have waited for longer than its client does. */
  get areRequestsOld(): boolean {
    return this.#heartbeats.areRequestsOld
  }

  get isOpen(): boolean {
    return this.#closeReason === undefined
  }

  /** The connection of a type; undefined if there is none. */
  getConnection(type: ConnectionType): Connection | undefined {
    return this.#connections.get(type)
  }

  /** Adds a connection, in place of one of the same type. The caller starts it, when the handlers are ready. */
  add(source: ConnectionSource): Connection {
    const connection = new Connection(source, this.#clock, {
      canRead: () => !this.#hasTooMuchInProgress,
      onMessage: (message) => this.#take(message),
      onSkip: (skipped) => this.#handlers.onSkip?.(skipped),
      onMalformed: (reason) => this.close(`malformed message: ${reason}`),
      onEnd: () => this.#lose(connection),
    })
    const earlier = this.#connections.get(source.type)
    this.#connections.set(source.type, connection)
    earlier?.close()
    return connection
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

  /**
   * Sends a message without a request whose body is long: in parts, which routers may share, and no faster than the router reads. Resolves
   * when all of it is on its way, or its connection has ended.
   */
  async sendLong(
    type: number,
    parts: readonly Uint8Array[],
    headers: Iterable<readonly [number, Buffer]>,
  ): Promise<void> {
    const sequence = this.#nextSequence()
    const connection = this.#chooseConnection(type)
    let bodyBytes = 0
    for (const { length } of parts) bodyBytes += length
    const head = encodeHead({ type, sequence, headers: new Map(headers) }, bodyBytes)
    await connection?.writeLong([head, ...parts.map(toBuffer)])
  }

  /** Resolves when the router has read most of what was sent, or its connection has ended; undefined if that is so. */
  waitUntilWritable(type: number): Promise<void> | undefined {
    return this.#chooseConnection(type)?.waitUntilWritable()
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
    // A heartbeat may wait for the end of a long message, too.
    this.#heartbeats.tick(this.#isReadingPaused || this.#isSendingLong(now))
    if (this.#heartbeats.isTimedOut) this.close('no heartbeat response')
    else if (this.#heartbeats.isDue) this.send(ContentType.HEARTBEAT)
  }

  /** Until it is set to 0, the router computes that this controller responds sooner than it does by so many milliseconds. */
  setHeadStart(headStartMs: number): void {
    if (this.#heartbeats.setHeadStart(headStartMs)) this.#respondToHeartbeat()
  }

  /** Ends the channel with all of its connections; only the first reason counts. */
  close(reason: CloseReason): void {
    if (!this.isOpen) return
    this.#closeReason = reason
    for (const connection of this.#connections.values()) connection.close()
    this.#handlers.onClose(reason)
  }

  #lose(connection: Connection): void {
    const { type, lastHeardAt } = connection
    if (!this.isOpen || this.#connections.get(type) !== connection) return
    this.#connections.delete(type)
    this.#heardBeforeAt = Math.max(this.#heardBeforeAt, lastHeardAt)
    if (this.#connections.size === 0) this.close('closed by the router')
    else this.#handlers.onConnectionLost?.(type)
  }

  get #isDefaultBusy(): boolean {
    return this.#connections.get('ctrl.default')?.isWritingLong ?? false
  }

  #isSendingLong(now: number): boolean {
    for (const connection of this.#connections.values()) if (connection.isSendingLong(now)) return true
    return false
  }

  get #isReadingPaused(): boolean {
    for (const { isReadingPaused } of this.#connections.values()) if (isReadingPaused) return true
    return false
  }

  get #hasTooMuchInProgress(): boolean {
    return this.#messagesInProgress >= MAX_MESSAGES_IN_PROGRESS || this.#bytesInProgress >= MAX_BYTES_IN_PROGRESS
  }

  #take(message: Message): void {
    const { type, sequence, headers } = message
    if (!this.#hasReceived) this.#handlers.onFirstSequence?.(sequence)
    this.#hasReceived = true
    const heartbeat = headers.get(ChannelHeader.HEARTBEAT)
    // At once: a router that waits for five seconds takes the controller for unresponsive.
    if (heartbeat) {
      this.#heartbeats.take(heartbeat)
      this.#respondToHeartbeat()
    }
    if (headers.has(ChannelHeader.HEARTBEAT_RESPONSE)) this.#heartbeats.takeResponse()
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
      const hadTooMuch = this.#hasTooMuchInProgress
      this.#messagesInProgress -= 1
      this.#bytesInProgress -= bytes
      if (!hadTooMuch || this.#hasTooMuchInProgress || !this.isOpen) return
      for (const connection of this.#connections.values()) connection.readOn()
    })
  }

  #respondToHeartbeat(): void {
    const { response } = this.#heartbeats
    if (response) this.send(ContentType.HEARTBEAT, EMPTY, { headers: [[ChannelHeader.HEARTBEAT_RESPONSE, response]] })
  }

  #addHeartbeat(headers: Map<number, Buffer>): void {
    if (this.#heartbeats.isDue) headers.set(ChannelHeader.HEARTBEAT, this.#heartbeats.send())
  }

  #write(message: Message): void {
    this.#chooseConnection(message.type)?.write(encodeMessage(message))
    let unsentBytes = 0
    for (const each of this.#connections.values()) unsentBytes += each.unsentBytes
    if (unsentBytes > MAX_UNSENT_BYTES) this.close('the router does not read')
  }

  #chooseConnection(type: number): Connection | undefined {
    // A router that waits for the response to a heartbeat takes the controller for unresponsive after five seconds.
    const isUrgent = URGENT_TYPES.has(type) || (type === ContentType.HEARTBEAT && this.#isDefaultBusy)
    const preferred = isUrgent ? 'ctrl.high' : 'ctrl.default'
    const [first] = this.#connections.values()
    return this.#connections.get(preferred) ?? first
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
