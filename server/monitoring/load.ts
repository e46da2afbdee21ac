// Measures the event-loop delay, by which the server detects overload.

const SAMPLE_INTERVAL_MS = 50

// The number of consecutive late samples that count as overload: one long turn, at the start or a checkpoint, does not.
const CONSECUTIVE_DELAYS = 4

/** How late the event loop is, by which load is shed. */
export interface Load {
  /** How late the event loop was at least, at each of the latest samples. */
  readonly delayMs: number
}

export class EventLoopDelay implements Load {
  readonly #latest: number[] = Array.from({ length: CONSECUTIVE_DELAYS }, () => 0)
  #delayMs = 0
  #expected = 0
  #timer: NodeJS.Timeout | undefined

  get delayMs(): number {
    return this.#delayMs
  }

  /** Samples the event loop until it is stopped. */
  start(): void {
    this.#expected = performance.now() + SAMPLE_INTERVAL_MS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.record(Math.max(0, now - this.#expected))
      this.#expected = now + SAMPLE_INTERVAL_MS
    }, SAMPLE_INTERVAL_MS).unref()
  }

  /** Records the event-loop delay. */
  record(delayMs: number): void {
    this.#latest.shift()
    this.#latest.push(delayMs)
    this.#delayMs = Math.min(...this.#latest)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
