// The limit on wrong codes of an identity. It delays guesses and locks out no one: a correct code is accepted after it.
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'

const MAX_WRONG_CODES = 10
const WINDOW_MS = 5 * 60_000

/** An attempt that counts as wrong until it is reverted. */
export interface CodeAttempt {
  /** The code was correct, or not looked at. */
  revert(): void
}

/** Memory is bounded by the identities that sent codes within the last two windows. */
export class WrongCodeLimit {
  #current = new Map<string, Instant[]>()
  #previous = new Map<string, Instant[]>()
  #rotatedAt: Instant = 0

  /**
   * Counts an attempt before its code is looked at, so that attempts at the same moment count as well.
   * @throws SERVER_TOO_MANY_REQUESTS if the identity sent too many wrong codes
   */
  begin(identityId: string, now: Instant): CodeAttempt {
    const attempts = this.#recentAttempts(identityId, now)
    const [oldest = now] = attempts
    if (attempts.length >= MAX_WRONG_CODES) {
      const retryAfterSeconds = Math.max(1, Math.ceil((oldest + WINDOW_MS - now) / 1000))
      const cause = `identity ${identityId} sent too many wrong codes`
      throw errors.SERVER_TOO_MANY_REQUESTS({ message: 'too many wrong codes' }, { cause, retryAfterSeconds })
    }
    attempts.push(now)
    return {
      revert: () => {
        const at = attempts.lastIndexOf(now)
        if (at >= 0) attempts.splice(at, 1)
      },
    }
  }

  /** The attempts within the window, oldest first. Those after `now` are of a clock that was set back since. */
  #recentAttempts(identityId: string, now: Instant): Instant[] {
    this.#rotate(now)
    const attempts = this.#current.get(identityId) ?? this.#previous.get(identityId) ?? []
    const isRecent = (at: Instant) => at <= now && now - at < WINDOW_MS
    const outdated = attempts.filter((at) => !isRecent(at))
    for (const at of outdated) attempts.splice(attempts.indexOf(at), 1)
    this.#current.set(identityId, attempts)
    return attempts
  }

  #rotate(now: Instant): void {
    if (now >= this.#rotatedAt && now - this.#rotatedAt < WINDOW_MS) return
    this.#previous = this.#current
    this.#current = new Map()
    this.#rotatedAt = now
  }
}
