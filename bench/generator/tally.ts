// Counts what a run brings.
import type { Outcome } from './plan.ts'
import type { HttpResponse } from './response-reader.ts'

const SHOWN_CHARACTERS = 300

export class Tally {
  readonly #failures = new Map<string, number>()
  #latencies: number[] = []
  #bodyBytes = 0
  #completed = 0
  #utilization = performance.eventLoopUtilization()

  get completed(): number {
    return this.#completed
  }

  /** Of all responses so far; 0 if there are none. */
  get meanBodyBytes(): number {
    return this.#completed === 0 ? 0 : Math.round(this.#bodyBytes / this.#completed)
  }

  /** Counts a response; false where it was a refusal. */
  count({ status, bodyBytes, body }: HttpResponse): boolean {
    this.#bodyBytes += bodyBytes
    if (status >= 200 && status < 400) {
      this.#completed += 1
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

  /** Resets the counts of what ran before. Failures stay. */
  reset(): void {
    this.#latencies = []
    this.#bodyBytes = 0
    this.#completed = 0
    this.#utilization = performance.eventLoopUtilization()
  }

  outcome(seconds: number): Outcome {
    return {
      completed: this.#completed,
      seconds,
      busySeconds: performance.eventLoopUtilization(this.#utilization).active / 1000,
      latencies: Float64Array.from(this.#latencies).sort(),
      bodyBytes: this.#bodyBytes,
      failures: [...this.#failures].map(([what, times]) => ({ what, times })),
    }
  }
}
