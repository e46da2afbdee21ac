// When refused callers may try again: each at a time of its own, as far apart as their work takes, because callers that are all told the same
// time come at once again.

// Some never try again: beyond this, times are given out from the beginning again.
const MAX_RETRY_MS = 60_000

export class RetrySchedule {
  /** The latest time that was given out, by the monotonic clock. */
  #latestMs = 0

  /**
   * Returns the seconds after which a refused caller may try again: at least 1.
   * @param now by the monotonic clock
   * @param busyMs how long the work takes that waits already
   * @param eachMs how long the work of one caller takes
   */
  next(now: number, busyMs: number, eachMs: number): number {
    const firstMs = now + Math.min(busyMs, MAX_RETRY_MS)
    const nextMs = Math.max(this.#latestMs, firstMs) + eachMs
    this.#latestMs = nextMs - now > MAX_RETRY_MS ? firstMs : nextMs
    return Math.max(1, Math.ceil((this.#latestMs - now) / 1000))
  }
}
