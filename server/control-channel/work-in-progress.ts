// Knows when the work that was begun is over, so that the store is not closed under it.

export class WorkInProgress {
  #count = 0
  #resumeWaiting: (() => void)[] = []

  /** Returns what the work resolves or rejects with. */
  async track<T>(work: Promise<T>): Promise<T> {
    this.#count += 1
    try {
      return await work
    } finally {
      this.#count -= 1
      if (this.#count === 0) for (const resume of this.#resumeWaiting.splice(0)) resume()
    }
  }

  /** Resolves when nothing is in progress. */
  async settle(): Promise<void> {
    if (this.#count > 0) await new Promise<void>((resolve) => this.#resumeWaiting.push(resolve))
  }
}
