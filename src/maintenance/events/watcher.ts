// One watcher of events: what it selects, and the stream that it reads.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import type { AuditPlace } from './cursor.ts'
import type { StreamedEvent } from './event.ts'
import { type EventSource, type EventType, GAP, networkEventTypes } from './event-types.ts'

/** The events that a watcher selects; without a member it selects all. */
export interface EventSelection {
  readonly types?: readonly EventType[] | undefined
  /** A resource in the plural, or the id of a record. */
  readonly subject?: string | undefined
}

/** The right of a watcher, as it is at each moment. */
export interface WatcherRight {
  /** The id of the identity. */
  readonly ownerId: string
  isAllowed(): boolean
  /** Notes that the watcher still reads. */
  noteActivity(): void
}

// How much may wait for a watcher that follows what happens now. One that does not read is cut: it returns with its cursor.
const MAX_UNSENT_BYTES = 256 * 1024

const isOfNetwork: ReadonlySet<string> = new Set(networkEventTypes)

export class Watcher {
  readonly stream: Readable
  readonly right: WatcherRight
  readonly #types: ReadonlySet<EventType> | undefined
  readonly #subject: string | undefined
  /** Up to where it was sent the audit when it began to follow what happens now. */
  place: AuditPlace
  #isEnding = false

  constructor(right: WatcherRight, { types, subject }: EventSelection, place: AuditPlace) {
    this.right = right
    this.#types = types && new Set(types)
    this.#subject = subject
    this.place = place
    this.stream = new Readable({ read: () => this.stream.emit('asked') })
  }

  /** Whether it selects any event of the network. */
  get selectsNetwork(): boolean {
    return this.#types === undefined || [...this.#types].some((type) => isOfNetwork.has(type))
  }

  get hasEnded(): boolean {
    return this.#isEnding || this.stream.destroyed
  }

  /** Sends an event that it selects. @param render the event with its cursor */
  send({ type, subjects }: StreamedEvent, render: () => Buffer): void {
    if (this.#types && !this.#types.has(type)) return
    if (this.#subject !== undefined && !subjects.includes(this.#subject)) return
    if (this.requireRight()) this.#push(render())
  }

  /** Tells it what it may have missed. */
  sendGap(missed: readonly EventSource[], cursor: string): void {
    if (this.requireRight()) this.#push(renderMessage(cursor, GAP, JSON.stringify({ type: GAP, missed })))
  }

  /** Sends its cursor without an event, so that an idle connection stays open and a watcher that selects little has a new one. */
  sendHeartbeat(heartbeat: Buffer): void {
    if (!this.requireRight()) return
    if (this.stream.readableLength === 0) this.right.noteActivity()
    this.#push(heartbeat)
  }

  /** Cuts the stream if its session or right has ended. What waits is not sent any more. Returns whether it may go on. */
  requireRight(): boolean {
    if (this.hasEnded) return false
    if (this.right.isAllowed()) return true
    this.stream.destroy()
    return false
  }

  /** Settles once the watcher has taken what waits, or has left. */
  async drain(): Promise<void> {
    if (this.hasEnded || this.stream.readableLength < this.stream.readableHighWaterMark) return
    const waiting = new AbortController()
    const { signal } = waiting
    await Promise.race([once(this.stream, 'asked', { signal }), once(this.stream, 'close', { signal })]).finally(() =>
      waiting.abort(),
    )
  }

  /** Ends the stream after what waits. */
  end(): void {
    if (this.hasEnded) return
    this.#isEnding = true
    this.stream.push(null)
  }

  #push(message: Buffer): void {
    if (this.stream.readableLength > MAX_UNSENT_BYTES) this.stream.destroy()
    else this.stream.push(message)
  }
}

/** A message of an event stream (HTML, Server-sent events). The data is JSON, which has no line breaks. */
export function renderMessage(cursor: string, type: string, data: string): Buffer {
  return Buffer.from(`id: ${cursor}\nevent: ${type}\ndata: ${data}\n\n`)
}

/** A comment, and a cursor without an event. */
export function renderHeartbeat(cursor: string): Buffer {
  return Buffer.from(`:\nid: ${cursor}\n\n`)
}
