// Notices that this process was stopped, or too busy to respond: routers have requests from that time whose clients do not wait any more.
//
// A circuit for which no client waits is worse than none. Its host has accepted a connection that never begins, and SDKs accept no other one
// until they have given it up.

// Clients give up a dial after five seconds.
const MAX_GAP_MS = 5_000

// After a pause, what arrived meanwhile is read within this time.
const READING_MS = 1_000

export class Pauses {
  readonly #now: () => number
  #seenAt: number
  #endsAt = Number.NEGATIVE_INFINITY

  /** @param now by a clock that is never set, and goes on while the process is stopped, in milliseconds */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
    this.#seenAt = now()
  }

  /** Called once a second, if the process can. */
  tick(): void {
    const now = this.#now()
    if (now - this.#seenAt > MAX_GAP_MS) this.#endsAt = now + READING_MS
    this.#seenAt = now
  }

  /** Whether what is read now may have waited for longer than a client does. */
  get areRequestsOld(): boolean {
    const now = this.#now()
    return now - this.#seenAt > MAX_GAP_MS || now < this.#endsAt
  }
}
