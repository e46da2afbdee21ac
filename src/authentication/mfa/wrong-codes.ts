// The shares of wrong codes that an identity may send: guesses stay rare, and no client can use up the codes of the owner.
//
// They are counted where the factor is stored, in the row of the enrollment and in that of the API session, because counts
// in memory would allow more guesses after each restart. A wrong code is therefore a transaction, but a code that is not
// compared, because its shares are used up, writes nothing.
import type { WrongCode } from '../../definitions/resources/mfa-enrollments.ts'
import type { Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'

// At most 2,880 a day, from any client that knows the password.
const MAX_OF_ANY = 10
const ANY_WINDOW_MS = 5 * 60_000
// Each reserve counts once the share of any client is used up. Together with that share they are at most 3,000 a day.
const MAX_OF_RESERVE = 40
const MAX_OF_RESERVE_PER_SOURCE = 5
const RESERVE_WINDOW_MS = 24 * 60 * 60_000

/** The sender of a code, as it is known before the code is compared. */
export interface CodeSender {
  readonly source: string
  /** The session owes no factor. */
  readonly isFullSession: boolean
  /** The factor was passed from this source before. */
  readonly isKnownSource: boolean
  /** The code has the form of a recovery code. */
  readonly isRecoveryCode: boolean
}

/** Returns the share that a code counts in if it is wrong. @throws SERVER_TOO_MANY_REQUESTS if all of its shares are used up */
export function chooseShare(wrongCodes: readonly WrongCode[], sender: CodeSender, now: Instant): WrongCode['share'] {
  const counted = wrongCodes.filter((wrongCode) => isCounted(wrongCode, now))
  const ofAny = counted.filter(({ share }) => share === 'any')
  const [oldest] = ofAny
  if (!oldest || ofAny.length < MAX_OF_ANY) return 'any'
  const reserve = listReserves(sender).find((share) => {
    const ofShare = counted.filter((wrongCode) => wrongCode.share === share)
    const ofSource = ofShare.filter(({ source }) => source === sender.source)
    return ofShare.length < MAX_OF_RESERVE && ofSource.length < MAX_OF_RESERVE_PER_SOURCE
  })
  if (reserve) return reserve
  const retryAfterSeconds = Math.max(1, Math.ceil((oldest.at + ANY_WINDOW_MS - now) / 1000))
  const cause = `the identity sent too many wrong codes, the latest from ${sender.source}`
  throw errors.SERVER_TOO_MANY_REQUESTS({ message: 'too many wrong codes' }, { cause, retryAfterSeconds })
}

/** Returns the wrong codes that still count, and a new one, oldest first. Their number is bounded by the shares. */
export function addWrongCode(wrongCodes: readonly WrongCode[], wrongCode: WrongCode): readonly WrongCode[] {
  return [...wrongCodes.filter((earlier) => isCounted(earlier, wrongCode.at)), wrongCode]
}

/** The shares that a code counts in; those that only the owner of the factor can use up come first. */
function listReserves({ isFullSession, isKnownSource, isRecoveryCode }: CodeSender): readonly WrongCode['share'][] {
  return [
    ...(isFullSession ? (['full-session'] as const) : []),
    ...(isKnownSource ? (['known-source'] as const) : []),
    ...(isRecoveryCode ? (['recovery-code'] as const) : []),
  ]
}

/** Whether a wrong code is inside the window of its share. One after `now` is of a clock that was set back since. */
function isCounted({ at, share }: WrongCode, now: Instant): boolean {
  return at <= now && now - at < (share === 'any' ? ANY_WINDOW_MS : RESERVE_WINDOW_MS)
}
