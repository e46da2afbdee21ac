// Keeps a generator awake between responses that follow each other closely, so that no server pays for waking it.
//
// To wake a thread that sleeps on another core is work of the kernel for the one that sends: 20 µs a request on a virtual machine that has
// nothing else to do, as much as all else of a small response. A server that is so fast that the generator never sleeps does not pay it.

// A generator whose next response is further away sleeps: its core is needed for slow work of the server.
const MAX_GAP_MS = 1

export class Wakefulness {
  #isSpinning = false
  #respondedAt = 0
  #spunAt = 0
  #idleMs = 0

  /** How long it had nothing to do, but did not sleep, since the last call. */
  takeIdleSeconds(): number {
    const seconds = this.#idleMs / 1000
    this.#idleMs = 0
    return seconds
  }

  noteResponse(): void {
    this.#respondedAt = performance.now()
    if (this.#isSpinning) return
    this.#isSpinning = true
    this.#spunAt = this.#respondedAt
    setImmediate(this.#spin)
  }

  readonly #spin = () => {
    const now = performance.now()
    if (this.#respondedAt < this.#spunAt) this.#idleMs += now - this.#spunAt
    this.#spunAt = now
    this.#isSpinning = now - this.#respondedAt < MAX_GAP_MS
    if (this.#isSpinning) setImmediate(this.#spin)
  }
}
