// Successful sign-ins: their rate limit, and which of them become audit records of their own.

import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { type Admission, EventAggregator } from '../../foundation/event-aggregator.ts'
import { RateLimit } from '../../foundation/rate-limit.ts'
import { sourceFromAddress } from '../../storage/sources.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { Method } from './authentication-methods.ts'

/** A sign-in, as the audit records it; caller and origin are those of the identity. */
export interface SignIn extends Pick<Context, 'caller' | 'origin'> {
  readonly identityId: string
  readonly method: Method
  readonly apiSessionId: string
}

const WINDOW_MS = 60 * 60_000
// About 300 bytes each. Each further sign-in is a record of its own.
const MAX_KEYS = 100_000
const BURST_SECONDS = 10

/**
 * The first sign-in of an identity by one method from one source in an hour is recorded at once; further ones are counted into
 * one record at the end of the hour. A crash loses the counts since the last record, at most an hour; after a start the next
 * sign-in is a first one again.
 */
export class SignInRecorder {
  readonly #rate: RateLimit
  readonly #events = new EventAggregator<SignIn>({ windowMs: WINDOW_MS, maxKeys: MAX_KEYS })

  /**
   * @param perSecond the rate limit of each identity from one source; a burst may be ten times as many
   * @param countSharers how many controllers share the limit
   */
  constructor(perSecond: number, countSharers = () => 1) {
    this.#rate = new RateLimit({ perSecond, burst: perSecond * BURST_SECONDS, countSharers })
  }

  /** Counts a sign-in with a proven credential. @throws SERVER_TOO_MANY_REQUESTS if the identity signs in too often */
  requireRate(identityId: string, source: string, now: Instant): void {
    const retryAfterSeconds = this.#rate.take(`${identityId} ${source}`, now)
    if (retryAfterSeconds === 0) return
    const cause = `identity ${identityId} signs in too often`
    throw errors.SERVER_TOO_MANY_REQUESTS({ message: 'this identity signs in too often' }, { cause, retryAfterSeconds })
  }

  /** Counts a sign-in for the audit. Unless it is `counted`, the caller records its session. */
  admit(signIn: SignIn, now: Instant): Admission {
    return this.#events.admit(keyFromSignIn(signIn), signIn, now)
  }

  /** Reverts a sign-in whose session could not be stored. */
  undo(signIn: SignIn, admission: Admission): void {
    this.#events.undo(keyFromSignIn(signIn), admission)
  }

  /** Records the counts of hours that are over, or of all hours with `isFinal`. */
  async flush(contexts: Contexts, options: { readonly isFinal?: boolean } = {}): Promise<void> {
    const write = ({ caller, origin, method, apiSessionId: id }: SignIn, count: number) =>
      contexts.recordEvent(caller, origin, { operation: 'create', resource: apiSessions.plural, id, method, count })
    await this.#events.flush(contexts.clock.now(), write, options)
  }
}

function keyFromSignIn({ identityId, method, origin }: SignIn): string {
  return `${identityId} ${method} ${sourceFromAddress(origin.address ?? '')}`
}
