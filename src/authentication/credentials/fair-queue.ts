// A bounded queue for costly work that is fair between sources: they take turns, and no source can fill the queue.
import type { Clock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { RetrySchedule } from '../../foundation/retry-schedule.ts'

export interface FairQueueOptions {
  /** How many run at once. */
  readonly concurrency: number
  /** The maximum queue length; privileged requesters may wait in a queue twice as long. */
  readonly maxWaiting: number
  readonly clock: Pick<Clock, 'monotonic'>
}

// The weight of the latest piece of work in the mean duration.
const LATEST_WEIGHT = 0.1

/** The source of a piece of work. */
export interface Requester {
  readonly source: string
  /** Authenticated callers still get a place if anonymous requests fill the queue. */
  readonly isPrivileged: boolean
}

interface Waiter {
  start(): void
  refuse(): void
}

export class FairQueue {
  readonly #options: FairQueueOptions
  /** The sources that wait, in the order of their turns; a source without waiters is not in it. */
  readonly #waiters = new Map<string, Waiter[]>()
  readonly #retries = new RetrySchedule()
  #waiting = 0
  #running = 0
  /** The mean duration of the latest work; undefined before the first ended. */
  #meanMs: number | undefined

  constructor(options: FairQueueOptions) {
    this.#options = options
  }

  get waiting(): number {
    return this.#waiting
  }

  /**
   * Runs work when it is the turn of its source: a source that is new in the queue waits for at most one piece of work of each
   * other source. If the queue is full, the newest waiter of the source with the most waiters is refused.
   * @throws SERVER_TOO_MANY_REQUESTS if there is no place, or the place went to another source
   */
  async run<T>(requester: Requester, work: () => Promise<T>): Promise<T> {
    if (this.#running < this.#options.concurrency) this.#running += 1
    else await this.#wait(requester)
    const { clock } = this.#options
    const begun = clock.monotonic()
    try {
      return await work()
    } finally {
      const elapsedMs = clock.monotonic() - begun
      this.#meanMs = (this.#meanMs ?? elapsedMs) * (1 - LATEST_WEIGHT) + elapsedMs * LATEST_WEIGHT
      // The next waiter takes over the slot, so that a new request cannot overtake it.
      const next = this.#shiftNext()
      if (next) next.start()
      else this.#running -= 1
    }
  }

  #wait({ source, isPrivileged }: Requester): Promise<void> {
    if (this.#waiting >= this.#options.maxWaiting * (isPrivileged ? 2 : 1)) this.#makeRoom(source)
    return new Promise((resolve, reject) => {
      const waiters = this.#waiters.get(source) ?? []
      waiters.push({ start: resolve, refuse: () => reject(this.#toRefusal()) })
      this.#waiters.set(source, waiters)
      this.#waiting += 1
    })
  }

  /** @throws SERVER_TOO_MANY_REQUESTS if no other source has at least two waiters more */
  #makeRoom(source: string): void {
    const own = this.#waiters.get(source)?.length ?? 0
    const largest = [...this.#waiters.values()].reduce((most, next) => (next.length > most.length ? next : most))
    if (largest.length <= own + 1) throw this.#toRefusal()
    const newest = largest.pop()
    this.#waiting -= 1
    newest?.refuse()
  }

  #shiftNext(): Waiter | undefined {
    const [turn] = this.#waiters
    if (!turn) return undefined
    const [source, waiters] = turn
    const next = waiters.shift()
    this.#waiting -= 1
    // To the end of the rotation.
    this.#waiters.delete(source)
    if (waiters.length > 0) this.#waiters.set(source, waiters)
    return next
  }

  /** A requester that is refused comes again when the queue has had time for those that wait, and for those that were refused before. */
  #toRefusal(): Error {
    const { clock, concurrency } = this.#options
    const eachMs = (this.#meanMs ?? 0) / concurrency
    return errors.SERVER_TOO_MANY_REQUESTS(undefined, {
      cause: `${this.#waiting} wait for their turn`,
      retryAfterSeconds: this.#retries.next(clock.monotonic(), this.#waiting * eachMs, eachMs),
    })
  }
}
