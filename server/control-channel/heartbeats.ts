// The heartbeats of a channel, in both directions: whether the router responds, and how fast this controller seems to it.
//
// A router that was out of reach for a while sends what it took meanwhile all at once. A circuit for which no client waits any more is worse than none:
// its host has accepted a connection that never begins, and SDKs accept no other one until they have given it up.
import type { Clock } from '../../src/foundation/clock.ts'
import { encodeUint64 } from './header-values.ts'

// A heartbeat goes out if the last one is older than this, on the next message or by itself. `tick` comes once a second.
const INTERVAL_MS = 1_500

// A router that has not responded for this long is gone, though TCP has not noticed. Asked first after a minute.
const TIMEOUT_MS = 30_000
const GRACE_MS = 60_000

// The response takes as long as what is sent between the two. Clients give up a dial after five seconds.
const MAX_RESPONSE_MS = 3_000

// After a late response, what arrived with it by other connections is read within this time.
const READING_MS = 1_000

// If `tick` comes later than this, the process was busy, or stalled: the response may be among what it has not read.
const MAX_TICK_MS = 2_500
const MAX_STALLED_TICK_MS = 5_000

// They hold a time in nanoseconds.
const HEARTBEAT_BYTES = 8
const NANOSECONDS_PER_MS = 1_000_000n

export class Heartbeats {
  readonly #clock: Clock
  readonly #openedAt: number
  #tickedAt: number
  #sentAt = Number.NEGATIVE_INFINITY
  #responseAt: number
  /** When the first one was sent that has had no response. */
  #unansweredSince: number | undefined
  /** Until when requests may be older than their clients wait. */
  #oldUntil = Number.NEGATIVE_INFINITY
  /** The last one of the router, by its own clock, and when it came. */
  #received: { readonly sentAtNs: bigint; readonly at: number } | undefined
  #headStartMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
    this.#openedAt = clock.monotonic()
    this.#tickedAt = this.#openedAt
    this.#responseAt = this.#openedAt
  }

  /** Whether the router has not responded for so long that its channel ends. */
  get isTimedOut(): boolean {
    const now = this.#clock.monotonic()
    // Only while it owes a response: after a stall of this process the last one is old, and the next one was not asked for.
    const isJudged = now - this.#openedAt >= GRACE_MS && this.#responseAt < this.#sentAt
    return isJudged && now - this.#responseAt > TIMEOUT_MS
  }

  /** Whether the router does not respond now, as one does that stands still, or is out of reach. */
  get isSilent(): boolean {
    return this.#unansweredSince !== undefined && this.#clock.monotonic() - this.#unansweredSince > MAX_RESPONSE_MS
  }

  /** Whether a request that is read now may have waited for longer than its client does. */
  get areRequestsOld(): boolean {
    return this.isSilent || this.#clock.monotonic() < this.#oldUntil
  }

  /** Work by the clock, once a second. @param isExcused whether the response may wait for something else than the router */
  tick(isExcused: boolean): void {
    const now = this.#clock.monotonic()
    const sinceTickMs = now - this.#tickedAt
    this.#tickedAt = now
    // The response may be among what has not been read yet: timers run before the sockets are read.
    if (isExcused || sinceTickMs > MAX_STALLED_TICK_MS) this.#responseAt = now
    const isLate = isExcused || sinceTickMs > MAX_TICK_MS
    if (isLate && this.#unansweredSince !== undefined) this.#unansweredSince = now
  }

  get isDue(): boolean {
    return this.#clock.monotonic() - this.#sentAt > INTERVAL_MS
  }

  /** Returns the heartbeat to send, and notes it as sent. */
  send(): Buffer {
    this.#sentAt = this.#clock.monotonic()
    this.#unansweredSince ??= this.#sentAt
    return encodeUint64(BigInt(this.#clock.now()) * NANOSECONDS_PER_MS)
  }

  /** Takes a response of the router. */
  takeResponse(): void {
    if (this.isSilent) this.#oldUntil = this.#clock.monotonic() + READING_MS
    this.#responseAt = this.#clock.monotonic()
    this.#unansweredSince = undefined
  }

  /** Takes a heartbeat of the router. */
  take(heartbeat: Buffer): void {
    if (heartbeat.length !== HEARTBEAT_BYTES) return
    this.#received = { sentAtNs: heartbeat.readBigUInt64LE(), at: this.#clock.monotonic() }
  }

  /** Returns whether the router should be sent a response at once: its next heartbeat may be ten seconds away. */
  setHeadStart(headStartMs: number): boolean {
    const isRaised = headStartMs > this.#headStartMs
    this.#headStartMs = headStartMs
    return isRaised
  }

  /**
   * The response to the last heartbeat of the router, which subtracts it from the present: by its own clock, the time at which it sent the
   * heartbeat. Undefined before the first one.
   */
  get response(): Buffer | undefined {
    if (!this.#received) return undefined
    const shiftMs = this.#clock.monotonic() - this.#received.at + this.#headStartMs
    // The router may send any number: it wraps, as in the subtraction of the router.
    const timeNs = this.#received.sentAtNs + BigInt(Math.round(shiftMs)) * NANOSECONDS_PER_MS
    return encodeUint64(BigInt.asUintN(64, timeNs))
  }
}
