// Counts what a run brings.
import type { Answer } from './answer-reader.ts'
import type { Outcome } from './plan.ts'

const SHOWN_CHARACTERS = 300

export class Tally {
  readonly #failures = new Map<string, number>()
  #latencies: number[] = []
  #bodyBytes = 0
  #answered = 0

  get answered(): number {
    return this.#answered
  }

  /** Counts an answer; false where it was a refusal. */
  count({ status, bodyBytes, body }: Answer): boolean {
    this.#bodyBytes += bodyBytes
    if (status >= 200 && status < 400) {
      this.#answered += 1
      return true
    }
    this.fail(`${status} ${body?.toString('utf8').slice(0, SHOWN_CHARACTERS) ?? ''}`)
    return false
  }

  time(milliseconds: number): void {
    this.#latencies.push(milliseconds)
  }

  fail(what: string): void {
    this.#failures.set(what, (this.#failures.get(what) ?? 0) + 1)
  }

  /** Forgets everything: what was counted so far was warming up. Failures stay. */
  reset(): void {
    this.#latencies = []
    this.#bodyBytes = 0
    this.#answered = 0
  }

  outcome(seconds: number): Outcome {
    return {
      answered: this.#answered,
      seconds,
      latencies: Float64Array.from(this.#latencies).sort(),
      bodyBytes: this.#bodyBytes,
      failures: [...this.#failures].map(([what, times]) => ({ what, times })),
    }
  }
}
