// How long requests wait for their turn: by that the server knows that it has more to do than it can.

const SAMPLE_MILLISECONDS = 50

/** What a hook asks. */
export interface Load {
  /** How late the event loop is, smoothed, so that one long turn is no overload. */
  readonly delayMilliseconds: number
}

export class LoopDelay implements Load {
  #delay = 0
  #expected = 0
  readonly #timer: NodeJS.Timeout

  constructor() {
    this.#expected = performance.now() + SAMPLE_MILLISECONDS
    this.#timer = setInterval(() => this.#sample(), SAMPLE_MILLISECONDS).unref()
  }

  get delayMilliseconds(): number {
    return this.#delay
  }

  #sample(): void {
    const now = performance.now()
    const late = Math.max(0, now - this.#expected)
    this.#delay = (this.#delay + late) / 2
    this.#expected = now + SAMPLE_MILLISECONDS
  }

  stop(): void {
    clearInterval(this.#timer)
  }
}
