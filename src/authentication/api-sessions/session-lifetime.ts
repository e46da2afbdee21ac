// How long an API session lives: until it was not used for the idle timeout, or has reached its greatest age; by OpenID Connect, also
// until its sign-in is over without tokens, or its last token ends.
import type { Instant } from '../../foundation/clock.ts'
import type { Method } from '../sign-in/authentication-methods.ts'

/** The times of a session that determine its end. */
export interface SessionTimes {
  readonly lastActivityAt: Instant
  readonly authenticatedAt: Instant
  /** The client of OpenID Connect that it began by, if any. */
  readonly clientId: string | null
  /** When its sign-in, or the last of its tokens, ends; null if it has a token of its own. */
  readonly endsAt: Instant | null
}

/** The limits, in milliseconds. */
interface LifetimeLimits {
  readonly timeoutMs: number
  /** The lifetimes of access tokens and of refresh tokens. */
  readonly accessMs: number
  readonly refreshMs: number
  /** The greatest age of a session that began by a certificate, and of any other one; undefined if there is none. */
  readonly maxAgeMs: { readonly devices: number | undefined; readonly people: number | undefined }
}

/** How long a sign-in by OpenID Connect may take. */
export const SIGN_IN_MS = 10 * 60_000

const MIN_OVERLAP_MS = 60_000

export class SessionLifetime {
  /** How long a session with a token of its own stays alive without being used. */
  readonly timeoutMs: number
  /** How long tokens of a session by OpenID Connect are valid. */
  readonly accessMs: number
  readonly refreshMs: number
  readonly #maxAgeMs: LifetimeLimits['maxAgeMs']

  constructor({ timeoutMs, accessMs, refreshMs, maxAgeMs }: LifetimeLimits) {
    this.timeoutMs = timeoutMs
    this.accessMs = accessMs
    // Clients refresh an access token when it is about to end.
    this.refreshMs = Math.max(refreshMs, accessMs + MIN_OVERLAP_MS)
    this.#maxAgeMs = maxAgeMs
  }

  /** The time after which a session ends that is not used: those by OpenID Connect last as long as the refresh token of their client. */
  getTimeoutMs(clientId: string | null): number {
    return clientId === null ? this.timeoutMs : Math.max(this.timeoutMs, this.refreshMs)
  }

  /** The longest of these times. */
  get maxTimeoutMs(): number {
    return Math.max(this.timeoutMs, this.refreshMs)
  }

  /** When a session ends if it is not used any more. */
  getEnd({ lastActivityAt, authenticatedAt, clientId, endsAt }: SessionTimes, method: Method | null): Instant {
    const idleEnd = lastActivityAt + this.getTimeoutMs(clientId)
    return Math.min(idleEnd, authenticatedAt + this.getMaxAgeMs(method), endsAt ?? Number.POSITIVE_INFINITY)
  }

  /** The greatest age of a session that began by the method; Infinity if there is none. */
  getMaxAgeMs(method: Method | null): number {
    // The session of a router has none.
    if (method === null) return Number.POSITIVE_INFINITY
    return (method === 'cert' ? this.#maxAgeMs.devices : this.#maxAgeMs.people) ?? Number.POSITIVE_INFINITY
  }
}
