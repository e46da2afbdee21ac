// How long an API session lives: until it was not used for the idle timeout, or has reached its greatest age.
import type { Instant } from '../../foundation/clock.ts'
import type { Method } from '../sign-in/authentication-methods.ts'

/** The times of a session that determine its end. */
export interface SessionTimes {
  readonly lastActivityAt: Instant
  readonly authenticatedAt: Instant
}

/** The limits, in milliseconds. */
interface LifetimeLimits {
  readonly timeoutMs: number
  /** The greatest age of a session that began by a certificate, and of any other one; undefined if there is none. */
  readonly maxAgeMs: { readonly devices: number | undefined; readonly people: number | undefined }
}

export class SessionLifetime {
  /** How long a session stays alive without being used. */
  readonly timeoutMs: number
  readonly #maxAgeMs: LifetimeLimits['maxAgeMs']

  constructor({ timeoutMs, maxAgeMs }: LifetimeLimits) {
    this.timeoutMs = timeoutMs
    this.#maxAgeMs = maxAgeMs
  }

  /** When a session ends if it is not used any more. */
  getEnd({ lastActivityAt, authenticatedAt }: SessionTimes, method: Method | null): Instant {
    return Math.min(lastActivityAt + this.timeoutMs, authenticatedAt + this.getMaxAgeMs(method))
  }

  /** The greatest age of a session that began by the method; Infinity if there is none. */
  getMaxAgeMs(method: Method | null): number {
    // The session of a router has none.
    if (method === null) return Number.POSITIVE_INFINITY
    return (method === 'cert' ? this.#maxAgeMs.devices : this.#maxAgeMs.people) ?? Number.POSITIVE_INFINITY
  }
}
