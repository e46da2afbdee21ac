// When MFA no longer counts for a posture check: after its timeout, and after the prompts when the machine woke or was unlocked.
//
// The shortest timeout that the policies of an identity demand applies to all its MFA checks, as OpenZiti's clients expect
// it. A policy can therefore end sessions that another policy grants.

import { isInVersionRange, parseVersion, parseVersionRange } from '../../definitions/schema/version-ranges.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { MfaState } from './machine-state.ts'
import type { MfaCheck } from './posture-checks.ts'

/** How long a person has to pass MFA again after the machine woke or was unlocked. */
export const PROMPT_GRACE_MS = 5 * 60_000

/**
 * Returns the first instant at which the check fails: not later than `now` if it fails already, Infinity if it never does.
 * MFA that has timed out for one check has timed out for all checks of the identity.
 * @param strictestTimeoutMs the shortest timeout among the MFA checks that policies demand of the identity
 */
export function evaluateMfa(check: MfaCheck, session: MfaState, strictestTimeoutMs: number, now: Instant): Instant {
  const { mfaPassedAt } = session
  if (mfaPassedAt === null) return now
  // MFA is good at the last millisecond of its timeout.
  const timesOutAt = mfaPassedAt + Math.min(check.timeoutMs, strictestTimeoutMs) + 1
  return Math.min(timesOutAt, getPromptEnd(check, session))
}

/** The instant at which the grace of a prompt ends that was not responded to; Infinity if there is none. */
export function getPromptEnd(check: MfaCheck, { mfaPassedAt, wokenAt, unlockedAt }: MfaState): Instant {
  const endOf = (isPrompting: boolean, at: Instant | null) =>
    isPrompting && at !== null && mfaPassedAt !== null && at > mfaPassedAt
      ? at + PROMPT_GRACE_MS
      : Number.POSITIVE_INFINITY
  return Math.min(endOf(check.promptOnWake, wokenAt), endOf(check.promptOnUnlock, unlockedAt))
}

/** The number that clients are shown instead of seconds if a check has no timeout. */
export const NO_TIMEOUT_SECONDS = -1

/** The timeout of a check in seconds. */
export function toTimeoutSeconds({ timeoutMs }: MfaCheck): number {
  return timeoutMs === Number.POSITIVE_INFINITY ? NO_TIMEOUT_SECONDS : timeoutMs / 1_000
}

/** The conditions, besides the check and the session, that the end of a timeout depends on. */
interface TimeoutConditions {
  readonly strictestMfaTimeoutMs: number
  readonly isLegacyClient: boolean
}

/**
 * The end of the timeout that clients are shown, or of the grace of a prompt: 0 if MFA was not passed or has timed out,
 * Infinity if the check has no timeout, or if the client is a legacy one that the check ignores. It does not change while
 * time passes, until it is reached.
 */
export function findTimeoutEnd(
  check: MfaCheck,
  session: MfaState | undefined,
  { strictestMfaTimeoutMs, isLegacyClient }: TimeoutConditions,
  now: Instant,
): Instant {
  if (check.timeoutMs === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
  if (!session || session.mfaPassedAt === null) return 0
  const endsAt = evaluateMfa(check, session, strictestMfaTimeoutMs, now)
  if (endsAt <= now) return 0
  return check.ignoreLegacyEndpoints && isLegacyClient ? Number.POSITIVE_INFINITY : endsAt
}

/** The seconds until the end of a timeout that clients are shown; -1 if there is none. */
export function computeTimeoutRemaining(
  check: MfaCheck,
  session: MfaState | undefined,
  conditions: TimeoutConditions,
  now: Instant,
): number {
  return toSecondsRemaining(findTimeoutEnd(check, session, conditions, now), now)
}

/** The seconds that clients are shown until an end of `findTimeoutEnd`; -1 if there is none. */
export function toSecondsRemaining(endsAt: Instant, now: Instant): number {
  return endsAt === Number.POSITIVE_INFINITY ? NO_TIMEOUT_SECONDS : Math.max(0, Math.floor((endsAt - now) / 1_000))
}

const PROMPTING_SDK = 'ziti-sdk-c'
const PROMPTING_VERSIONS = parseVersionRange('>=0.25.0') ?? []

/** Whether a client cannot prompt for MFA: any but version 0.25.0 or later of the C SDK. */
export function isLegacyClient({ type, version }: { readonly type?: string; readonly version?: string }): boolean {
  const parsedVersion = parseVersion((version ?? '').replace(/^v/, ''))
  return type !== PROMPTING_SDK || !parsedVersion || !isInVersionRange(parsedVersion, PROMPTING_VERSIONS)
}
