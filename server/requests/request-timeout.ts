// Limits how long callers wait for their responses. One timer serves all requests: a timer for each of them would cost a
// tenth of a small request.
import { errors } from '../../src/foundation/errors.ts'

const RETRY_AFTER_SECONDS = 5
/** A timer that is set to more fires at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/** A request whose response is awaited. */
interface PendingRequest {
  /** By the monotonic clock. */
  readonly deadlineMs: number
  fail(error: unknown): void
}

export class RequestTimeouts {
  readonly #timeoutMs: number
  /** In the order of their deadlines. */
  readonly #pending = new Set<PendingRequest>()
  #timer: NodeJS.Timeout | undefined

  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /**
   * Passes the result of `work` to `succeed`, or its error to `fail`. If the work takes too long, `fail` gets TIMEOUT instead.
   * A timeout does not cancel the work: a pending change may still commit.
   */
  settle<T>(work: Promise<T>, succeed: (result: T) => void, fail: (error: unknown) => void): void {
    const request: PendingRequest = { deadlineMs: performance.now() + this.#timeoutMs, fail }
    this.#pending.add(request)
    if (!this.#timer) this.#schedule()
    work
      .then(
        (result) => {
          if (this.#pending.delete(request)) succeed(result)
        },
        (error: unknown) => {
          if (this.#pending.delete(request)) fail(error)
        },
      )
      .catch(fail)
  }

  /** Sets the timer to the first deadline. It stays set if that request is over before. */
  #schedule(): void {
    const [first] = this.#pending
    if (!first) return
    const delayMs = Math.min(first.deadlineMs - performance.now(), MAX_TIMER_MS)
    this.#timer = setTimeout(() => this.#failOverdue(), delayMs).unref()
  }

  #failOverdue(): void {
    this.#timer = undefined
    const nowMs = performance.now()
    for (const request of this.#pending) {
      if (request.deadlineMs > nowMs) break
      this.#pending.delete(request)
      request.fail(this.#timeoutError())
    }
    this.#schedule()
  }

  #timeoutError(): Error {
    const cause = `no response within ${this.#timeoutMs} ms`
    return errors.TIMEOUT(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
  }
}
