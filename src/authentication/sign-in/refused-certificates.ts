// Limits refused sign-ins by one certificate. Only its holder can cause them, so that no stranger can keep a device out.
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { RateLimit } from '../../foundation/rate-limit.ts'

// A device that was disabled asks again every few seconds; one that is enabled again waits six at most.
const REFUSALS = { perSecond: 1 / 6, burst: 10 }

export class RefusedCertificateLimit {
  readonly #refusals = new RateLimit(REFUSALS)

  /** @throws SERVER_TOO_MANY_REQUESTS if sign-ins by this credential were refused too often */
  require(credential: string, now: Instant): void {
    const retryAfterSeconds = this.#refusals.peek(credential, now)
    if (retryAfterSeconds === 0) return
    const cause = `sign-ins by the certificate of ${credential} are refused too often`
    throw errors.SERVER_TOO_MANY_REQUESTS(
      { message: 'sign-ins by this certificate are refused' },
      { cause, retryAfterSeconds },
    )
  }

  count(credential: string, now: Instant): void {
    this.#refusals.take(credential, now)
  }
}
