// How long an API session lives: until it was not used for the idle timeout, or has reached its greatest age.
import type { Instant } from '../../foundation/clock.ts'
import type { Method } from '../sign-in/authentication-methods.ts'

/** The times of a session that determine its end. */
export interface SessionTimes {
  readonly lastActivityAt: Instant
  readonly authenticatedAt: Instant
  /** The client of OpenID Connect that it began by, if any. */
  readonly clientId: string | null
}

/** The limits, in milliseconds. */
interface LifetimeLimits {
  readonly timeoutMs: number
  /** The lifetime of refresh tokens. */
  readonly refreshMs: number
  /** The greatest age of a session that began by a certificate, and of any other one; undefined if there is none. */
  readonly maxAgeMs: { readonly devices: number | undefined; readonly people: number | undefined }
}

export class SessionLifetime {
  /** How long a session with a token of its own stays alive without being used. */
  readonly timeoutMs: number
  readonly #refreshMs: number
  readonly #maxAgeMs: LifetimeLimits['maxAgeMs']

  constructor({ timeoutMs, refreshMs, maxAgeMs }: LifetimeLimits) {
    this.timeoutMs = timeoutMs
    this.#refreshMs = refreshMs
    this.#maxAgeMs = maxAgeMs
  }

  /** The time after which a session ends that is not used: those by OpenID Connect last as long as the refresh token of their client. */
  getTimeoutMs(clientId: string | null): number {
    return clientId === null ? this.timeoutMs : Math.max(this.timeoutMs, this.#refreshMs)
  }

  /** The longest of these times. */
  get maxTimeoutMs(): number {
    return Math.max(this.timeoutMs, this.#refreshMs)
  }

  /** When a session ends if it is not used any more. */
  getEnd({ lastActivityAt, authenticatedAt, clientId }: SessionTimes, method: Method | null): Instant {
    return Math.min(lastActivityAt + this.getTimeoutMs(clientId), authenticatedAt + this.getMaxAgeMs(method))
  }

  /** The greatest age of a session that began by the method; Infinity if there is none. */
  getMaxAgeMs(method: Method | null): number {
    // The session of a router has none.
    if (method === null) return Number.POSITIVE_INFINITY
    return (method === 'cert' ? this.#maxAgeMs.devices : this.#maxAgeMs.people) ?? Number.POSITIVE_INFINITY
  }
}
