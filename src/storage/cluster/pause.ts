// The pauses of work that is repeated at intervals, until it is ended.

export class Pause {
  #isEnded = false
  #resume: () => void = () => {}

  /** Resolves after that time, or once it is interrupted or ended. */
  wait(milliseconds: number): Promise<void> {
    if (this.#isEnded) return Promise.resolve()
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      this.#resume = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  /** Has the work go on now. */
  interrupt(): void {
    this.#resume()
  }

  /** Has the work go on now, and never pause again. */
  end(): void {
    this.#isEnded = true
    this.#resume()
  }
}
