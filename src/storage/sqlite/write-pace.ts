// The pace of the queue of transactions: how long a group may take, how many transactions may wait, and when those that are refused may come
// again.
import type { Clock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { RetrySchedule } from '../../foundation/retry-schedule.ts'

// At 64 transactions the 99th percentile of an event-loop turn stays under 10 ms.
const MIN_GROUP_MS = 4
// Meanwhile nothing else is served, and no other controller commits; PostgreSQL ends a turn after two seconds.
const MAX_GROUP_MS = 250

// The weight of the latest group in the mean.
const LATEST_WEIGHT = 0.1

export interface WritePaceOptions {
  /** How many transactions may wait, and for how long; privileged ones twice as many, and as long. */
  readonly maxLength: number
  readonly maxWaitMs: number
  readonly clock: Pick<Clock, 'monotonic'>
}

export class WritePace {
  readonly #options: WritePaceOptions
  readonly #retries = new RetrySchedule()
  /** When the transactions of the last group had run, if others waited then. */
  #lastEndedAt: number | undefined
  /** The mean time from one transaction to the next, with commits and all other work of the loop, while others wait; 0 if none ever did. */
  #meanMs = 0

  constructor(options: WritePaceOptions) {
    this.#options = options
  }

  /**
   * Requires that another transaction may wait. Callers give up after a while, and come again: a queue that is longer works for none.
   * @throws SERVER_TOO_MANY_REQUESTS
   */
  requireRoom(waiting: number, isPrivileged: boolean): void {
    const { maxLength, maxWaitMs, clock } = this.#options
    const factor = isPrivileged ? 2 : 1
    const waitMs = waiting * this.#meanMs
    if (waiting < maxLength * factor && waitMs < maxWaitMs * factor) return
    throw errors.SERVER_TOO_MANY_REQUESTS(undefined, {
      cause: `${waiting} transactions wait for their turn`,
      retryAfterSeconds: this.#retries.next(clock.monotonic(), waitMs, this.#meanMs),
    })
  }

  /**
   * Begins a group. It may take as long as it waited for its turn, and, if others waited, as all that came since the last group: other
   * controllers, a slow disk, or many requests in each turn of the loop, leave half of the time to transactions. Groups of controllers that
   * wait for each other grow no further than a limit.
   * @param askedAt when it asked for its turn, by the monotonic clock
   * @returns the time after which no further transaction begins in it, by the same clock
   */
  beginGroup(askedAt: number): number {
    const now = this.#options.clock.monotonic()
    const passedMs = now - Math.min(askedAt, this.#lastEndedAt ?? now)
    return now + Math.min(MAX_GROUP_MS, Math.max(MIN_GROUP_MS, passedMs))
  }

  /** Records that so many transactions of a group have run, and how many wait still. */
  endGroup(transactions: number, waiting: number): void {
    const now = this.#options.clock.monotonic()
    if (this.#lastEndedAt !== undefined && transactions > 0) {
      const eachMs = (now - this.#lastEndedAt) / transactions
      this.#meanMs = this.#meanMs === 0 ? eachMs : this.#meanMs * (1 - LATEST_WEIGHT) + eachMs * LATEST_WEIGHT
    }
    this.#lastEndedAt = waiting > 0 ? now : undefined
  }
}
