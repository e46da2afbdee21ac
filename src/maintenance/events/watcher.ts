// One watcher of events: what it selects, and the stream that it reads.
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { mayReadRecord } from '../../definitions/permissions/readable-records.ts'
import type { Rights } from '../../definitions/permissions/rights.ts'
import { type EventSource, type EventType, GAP, networkEventTypes } from '../../definitions/resources/event-types.ts'
import type { AuditPlace } from './cursor.ts'
import type { StreamedEvent } from './event.ts'
import { EventMessage, type MessageForm } from './event-message.ts'

/** The events that a watcher selects; without a member it selects all. */
export interface EventSelection {
  readonly types?: readonly EventType[] | undefined
  /** A resource in the plural, or the id of a record. */
  readonly subject?: string | undefined
}

/** The right of a watcher, as it is at each moment. */
export interface WatcherRight {
  /** The id of the identity; null for a webhook. */
  readonly ownerId: string | null
  /** Undefined if it may watch nothing any more. */
  findRights(): Rights | undefined
  /** Notes that the watcher still reads. */
  noteActivity(): void
}

const isOfNetwork: ReadonlySet<string> = new Set(networkEventTypes)

/** Yields what a watcher is sent, also up to where its stream is cut: because it is slow, or its right has ended. */
export async function* readUntilCut<T>(stream: Readable): AsyncGenerator<T> {
  try {
    yield* stream as AsyncIterable<T>
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
  }
}

export class Watcher {
  readonly stream: Readable
  readonly right: WatcherRight
  readonly #types: ReadonlySet<EventType> | undefined
  readonly #subject: string | undefined
  readonly #form: MessageForm
  /** Up to where it was sent the audit when it began to follow what happens now. */
  place: AuditPlace
  /** Its rights, as of the last time that they were judged. */
  knownRights: Rights | undefined
  #isEnding = false

  constructor(right: WatcherRight, { types, subject }: EventSelection, place: AuditPlace, form: MessageForm) {
    this.right = right
    this.#types = types && new Set(types)
    this.#subject = subject
    this.#form = form
    this.place = place
    this.stream = new Readable({ objectMode: form.isOfObjects, read: () => this.stream.emit('asked') })
  }

  /** Whether it selects any event of the network. */
  get selectsNetwork(): boolean {
    return this.#types === undefined || [...this.#types].some((type) => isOfNetwork.has(type))
  }

  get hasEnded(): boolean {
    return this.#isEnding || this.stream.destroyed
  }

  /** Sends an event that it selects and may read. @param toMessage gives it its cursor */
  send({ type, subjects, record }: StreamedEvent, toMessage: () => EventMessage): void {
    if (this.#types && !this.#types.has(type)) return
    if (this.#subject !== undefined && !subjects.includes(this.#subject)) return
    const rights = this.requireRight()
    if (rights && mayReadRecord(rights, record)) this.#push(toMessage())
  }

  /** Tells it what it may have missed. */
  sendGap(missed: readonly EventSource[], cursor: string): void {
    if (this.requireRight()) this.#push(new EventMessage(cursor, GAP, JSON.stringify({ type: GAP, missed })))
  }

  /** Sends its cursor without an event, so that an idle connection stays open and a watcher that selects little has a new one. */
  sendHeartbeat(heartbeat: EventMessage): void {
    if (!this.requireRight()) return
    if (this.stream.readableLength === 0) this.right.noteActivity()
    this.#push(heartbeat)
  }

  /** Cuts the stream if its session or right has ended. What waits is not sent any more. Returns what it may read now. */
  requireRight(): Rights | undefined {
    if (this.hasEnded) return undefined
    this.knownRights = this.right.findRights()
    if (!this.knownRights) this.stream.destroy()
    return this.knownRights
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

  /** A watcher that does not read is cut: it returns with its cursor. */
  #push(message: EventMessage): void {
    const encoded = this.#form.encode(message)
    if (this.stream.readableLength > this.#form.maxUnsent) this.stream.destroy()
    else if (encoded !== undefined) this.stream.push(encoded)
  }
}
