// How long requests wait for their turn: by that the server knows that it has more to do than it can.

const SAMPLE_MILLISECONDS = 50

// So many turns of the loop in a row have to be late: one long turn, at the start or at a checkpoint, is no overload.
const CONSECUTIVE_DELAYS = 4

/** What a hook asks. */
export interface Load {
  /** How late the event loop was at least, at each of the latest samples. */
  readonly delayMilliseconds: number
}

export class EventLoopDelay implements Load {
  readonly #latest: number[] = Array.from({ length: CONSECUTIVE_DELAYS }, () => 0)
  #expected = 0
  #timer: NodeJS.Timeout | undefined

  get delayMilliseconds(): number {
    return Math.min(...this.#latest)
  }

  /** Samples the event loop until it is stopped. */
  start(): void {
    this.#expected = performance.now() + SAMPLE_MILLISECONDS
    this.#timer = setInterval(() => {
      const now = performance.now()
      this.record(Math.max(0, now - this.#expected))
      this.#expected = now + SAMPLE_MILLISECONDS
    }, SAMPLE_MILLISECONDS).unref()
  }

  /** Takes down how late a turn of the loop was. */
  record(milliseconds: number): void {
    this.#latest.shift()
    this.#latest.push(milliseconds)
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
