// The delivery of events to one receiver, one after the other: each until it is delivered, or the receiver has failed for a day.
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { DeliveryState } from '../../definitions/resources/webhooks.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { EventMessage } from '../events/event-message.ts'
import { readUntilCut } from '../events/watcher.ts'

/** After a failure, the wait doubles from the first to the second: events of the network are kept longer than that. */
const RETRY_MS = { min: 1_000, max: 4 * 60_000 } as const
const MAX_FAILING_MS = 24 * 60 * 60_000

/** The reason of the last failure, and the time of the first one since a success. */
export interface DeliveryFailure {
  readonly message: string
  readonly since: Instant
}

export interface WebhookDeliveryParts {
  readonly clock: Clock
  /** Sends one event. @throws OutboundError */
  send(message: EventMessage): Promise<void>
  /** Begins to watch, behind what was delivered. Undefined if the owner may not watch. */
  watch(cursor: string): Promise<Readable | undefined>
  /** Notes up to where events were delivered. */
  deliveredTo(cursor: string): void
  /** An event was not delivered, and the one before it was. */
  failed(error: unknown): void
  /** The receiver has failed for a day. */
  pause(failure: DeliveryFailure): Promise<void>
}

export class WebhookDelivery {
  readonly #parts: WebhookDeliveryParts
  readonly #stopping = new AbortController()
  #failure: DeliveryFailure | undefined
  #deliveredAt: Instant | undefined
  /** Whether the owner could watch when the delivery last looked. */
  #isPermitted = true
  #messages: Readable | undefined

  constructor(parts: WebhookDeliveryParts) {
    this.#parts = parts
  }

  get failure(): DeliveryFailure | undefined {
    return this.#failure
  }

  get deliveredAt(): Instant | undefined {
    return this.#deliveredAt
  }

  get state(): DeliveryState {
    if (!this.#isPermitted) return 'not-permitted'
    return this.#failure ? 'failing' : 'delivering'
  }

  stop(): void {
    this.#stopping.abort()
    this.#messages?.destroy()
  }

  /** Delivers until it is stopped, or the receiver has failed for a day. */
  async run(cursor: string): Promise<void> {
    let place = cursor
    while (!this.#isStopped) {
      this.#messages = await this.#parts.watch(place)
      this.#isPermitted = this.#messages !== undefined
      // A stream that is cut begins again behind what was delivered.
      for await (const message of this.#messages ? readUntilCut<EventMessage>(this.#messages) : []) {
        if (message.type !== '' && !(await this.#deliver(message))) return
        place = message.cursor
        this.#parts.deliveredTo(place)
      }
      await this.#wait(this.#isPermitted ? RETRY_MS.min : RETRY_MS.max)
    }
    this.#messages?.destroy()
  }

  get #isStopped(): boolean {
    return this.#stopping.signal.aborted
  }

  /** Returns whether the event was delivered. */
  async #deliver(message: EventMessage): Promise<boolean> {
    const { clock, failed, send, pause } = this.#parts
    const startedAt = clock.monotonic()
    for (let waitMs: number = RETRY_MS.min; !this.#isStopped; waitMs = Math.min(waitMs * 2, RETRY_MS.max)) {
      try {
        await send(message)
        this.#failure = undefined
        this.#deliveredAt = clock.now()
        return !this.#isStopped
      } catch (error) {
        // Once: the record shows that it lasts.
        if (!this.#failure) failed(error)
        this.#failure = { message: (error as Error).message, since: this.#failure?.since ?? clock.now() }
      }
      if (clock.monotonic() - startedAt >= MAX_FAILING_MS) {
        await pause(this.#failure)
        return false
      }
      await this.#wait(waitMs)
    }
    return false
  }

  async #wait(ms: number): Promise<void> {
    await delay(ms, undefined, { signal: this.#stopping.signal, ref: false }).catch(() => {})
  }
}
