// Failed sign-ins: an audit record with a log line and, after too many, a lockout.

import { authenticators } from '../../definitions/resources/authenticators.ts'
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Instant } from '../../foundation/clock.ts'
import { ControllerError, errors } from '../../foundation/errors.ts'
import { EventAggregator } from '../../foundation/event-aggregator.ts'
import type { Log } from '../../foundation/log.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'
import { sourceFromContext } from '../../storage/sources.ts'
import { type AuditEvent, toChange } from '../../storage/transactions/changes.ts'
import {
  ANONYMOUS,
  type Caller,
  type Context,
  type Origin,
  toActor,
  type WriteContext,
} from '../../storage/transactions/context.ts'
import type { Contexts } from '../../storage/transactions/contexts.ts'
import type { AuthPolicies, AuthPolicy } from '../auth-policies.ts'
import { isDisabled, lockOut } from '../disabling.ts'
import type { AuthenticationError, Method, SignInRefusalReason } from './authentication-methods.ts'

/** Recorded if no credential matches. */
const NO_CREDENTIAL = ''

const WINDOW_MS = 60_000
// The number of sources with records of their own a minute; further sources share one record for each reason.
const MAX_SOURCES = 500

/** A refused sign-in, as the audit records it; never with the username that the client sent. */
interface RefusedSignIn {
  readonly caller: Caller
  readonly origin: Origin
  readonly method: Method | 'totp'
  readonly reason: SignInRefusalReason
  /** The credential that it concerns: an authenticator, or an MFA enrollment. */
  readonly credentialId: string
  /** For the log. */
  readonly message: string
}

/** The parts that record and count refused sign-ins. */
export interface FailedSignInParts {
  readonly aggregatedLog: AggregatedLog
  readonly contexts: Contexts
  readonly entities: EntityStore
  readonly auth: { readonly policies: AuthPolicies; readonly failedSignIns: FailedSignInRecorder }
}

/** The members of a sign-in that its audit record contains. */
interface RefusedAttempt {
  readonly context: Context
  readonly method: Method
  readonly authenticator: { readonly id: string } | undefined
  /** The auth policy of the identity, if its password was compared. */
  readonly policy?: AuthPolicy
}

/**
 * Records a refused sign-in. If that is by a password, its response waits for no write, because the wait would tell that the user exists; the
 * next right password for the credential does.
 * @throws SERVER_TOO_MANY_REQUESTS if a password is refused and the queue is full, and STORAGE_UNAVAILABLE if the refusal before could not be
 * stored: it would not be counted, and only the right password would not be refused so
 */
export async function recordFailedSignIn(
  parts: FailedSignInParts,
  attempt: RefusedAttempt,
  { reason, message }: AuthenticationError,
): Promise<void> {
  const { context, method, authenticator } = attempt
  const { caller, origin } = context
  const credentialId = authenticator?.id ?? NO_CREDENTIAL
  const signIn = { caller, origin, method, reason, message, credentialId }
  if (method !== 'password') return recordRefusal(parts, context, signIn)
  parts.contexts.store.requireRoom()
  const isGuess = reason === 'WRONG_PASSWORD' && attempt.policy?.primary.updb.maxAttempts !== 0
  const recording = recordRefusal(parts, context, signIn, isGuess).catch((error) => {
    const fields = { method, reason, err: error }
    parts.aggregatedLog.error(sourceFromContext(signIn), fields, 'a refused sign-in could not be recorded')
  })
  parts.auth.failedSignIns.hold(credentialId, recording)
  if (parts.auth.failedSignIns.isFailing) throw errors.STORAGE_UNAVAILABLE()
}

const isTooManyRequests = (error: unknown) =>
  error instanceof ControllerError && error.code === 'SERVER_TOO_MANY_REQUESTS'

/** Records that a signed-in identity sent a wrong current password for its authenticator. */
export async function recordWrongPassword(
  parts: FailedSignInParts,
  context: Context,
  authenticatorId: string,
): Promise<void> {
  const { caller, origin } = context
  const message = 'the current password is wrong'
  const refusal = { method: 'password', reason: 'WRONG_PASSWORD', credentialId: authenticatorId } as const
  await recordRefusal(parts, context, { caller, origin, message, ...refusal }, true)
}

/** Records that a signed-in identity sent a wrong code of its second factor. */
export async function recordWrongCode(
  parts: FailedSignInParts,
  context: Context,
  { reason, enrollmentId, message }: { reason: SignInRefusalReason; enrollmentId: string; message: string },
): Promise<void> {
  const { caller, origin } = context
  await recordRefusal(parts, context, { caller, origin, method: 'totp', reason, credentialId: enrollmentId, message })
}

/**
 * Records a refusal; the log has a line for each record.
 * @param isGuess whether it counts towards a lockout
 */
async function recordRefusal(
  parts: FailedSignInParts,
  context: Context,
  signIn: RefusedSignIn,
  isGuess = false,
): Promise<void> {
  const { auth, contexts } = parts
  const { clock } = context
  const isFirst = auth.failedSignIns.admit(signIn, clock.now())
  // After a failure, one is written in any case, to see whether that is possible again.
  if (!isFirst && !isGuess && !auth.failedSignIns.isFailing) return
  try {
    await contexts.create(toActor(signIn.caller), signIn.origin).write(async (tx) => {
      if (isFirst) tx.record(toChange({ ...eventFromRefusal(signIn), audit: 'event', at: clock.now() }))
      if (isGuess) await countFailure(parts, tx, signIn.credentialId)
    })
    auth.failedSignIns.isFailing = false
  } catch (error) {
    if (isFirst) auth.failedSignIns.undo(signIn)
    if (!isTooManyRequests(error)) auth.failedSignIns.isFailing = true
    throw error
  }
  if (isFirst) auth.failedSignIns.log(signIn)
}

function eventFromRefusal({ method, reason, credentialId }: RefusedSignIn): AuditEvent {
  const { plural: resource } = method === 'totp' ? mfaEnrollments : authenticators
  return { operation: 'refuse', resource, id: credentialId, method, reason }
}

/** Counts a wrong password, and locks the identity at the limit of its auth policy. */
async function countFailure(
  { entities, auth }: FailedSignInParts,
  tx: WriteContext,
  authenticatorId: string,
): Promise<void> {
  const row = await tx.db
    .selectFrom('authenticators')
    .innerJoin('identities', 'identities.id', 'authenticators.identityId')
    .select(['identityId', 'failedAttempts', 'authPolicyId', 'disabledAt', 'disabledUntil'])
    .where('authenticators.id', '=', authenticatorId)
    .executeTakeFirst()
  // A concurrent attempt may have locked the identity, or it was deleted.
  if (!row || isDisabled(row, tx.clock.now())) return
  const { maxAttempts, lockoutDurationMinutes } = auth.policies.getNewest(tx, row.authPolicyId).primary.updb
  if (maxAttempts === 0) return
  const failedAttempts = row.failedAttempts + 1
  const isLocked = failedAttempts >= maxAttempts
  await tx.db
    .updateTable('authenticators')
    .set({ failedAttempts: isLocked ? 0 : failedAttempts })
    .where('id', '=', authenticatorId)
    .execute()
  if (isLocked) await lockOut(entities, tx, row.identityId, lockoutDurationMinutes)
}

/**
 * Counts refused sign-ins by source, method and reason: the first is recorded, further ones are counted into one record a
 * minute. Memory and disk are bounded: beyond `MAX_SOURCES`, refusals are counted by method and reason alone. A crash loses
 * the counts since the last record, at most a minute, and the refusals of passwords that wait for the disk; any other first refusal of a
 * source is on disk before the response.
 */
export class FailedSignInRecorder {
  /** Whether the last refusal could not be stored. */
  isFailing = false
  readonly #log: Log
  readonly #bySource = new EventAggregator<RefusedSignIn>({
    windowMs: WINDOW_MS,
    maxKeys: MAX_SOURCES,
    combine: combineRefusals,
  })
  readonly #byReason = new EventAggregator<RefusedSignIn>({
    windowMs: WINDOW_MS,
    maxKeys: MAX_SOURCES,
    combine: combineRefusals,
  })

  /** The credential → what is being recorded of the passwords that were refused for it. */
  readonly #recordings = new Map<string, Promise<unknown>>()

  constructor(log: Log) {
    this.#log = log
  }

  /** Lets later sign-ins with a credential wait for what is being recorded of it, which never rejects. */
  hold(credentialId: string, recording: Promise<void>): void {
    const all = Promise.all([this.#recordings.get(credentialId), recording]).then(() => {
      if (this.#recordings.get(credentialId) === all) this.#recordings.delete(credentialId)
    })
    this.#recordings.set(credentialId, all)
  }

  /** Settles once the passwords that were refused before, for a credential or for any, are recorded. */
  async settle(credentialId?: string): Promise<void> {
    if (credentialId === undefined) await Promise.all(this.#recordings.values())
    else await this.#recordings.get(credentialId)
  }

  /** Writes the line of a record. @param count of the refusals in it, if it counts any */
  log({ method, message, origin: { requestId, address } }: RefusedSignIn, count?: number): void {
    const fields = { requestId, address, method, reason: message }
    this.#log.info(count === undefined ? fields : { ...fields, count }, 'a sign-in was refused')
  }

  /** Counts a refusal. Returns whether the caller must record it now. */
  admit(signIn: RefusedSignIn, now: Instant): boolean {
    const admission = this.#bySource.admit(sourceKey(signIn), signIn, now)
    if (admission !== 'untracked') return admission === 'first'
    const { requestId } = signIn.origin
    const ofAnySource = { ...signIn, caller: ANONYMOUS, origin: { requestId, address: undefined } }
    return this.#byReason.admit(reasonKey(signIn), ofAnySource, now) === 'first'
  }

  /** Reverts a first refusal that could not be recorded. */
  undo(signIn: RefusedSignIn): void {
    this.#bySource.undo(sourceKey(signIn), 'first')
    this.#byReason.undo(reasonKey(signIn), 'first')
  }

  /** Records the counts of windows that are over, or of all windows with `isFinal`. */
  async flush(contexts: Contexts, options: { readonly isFinal?: boolean } = {}): Promise<void> {
    await this.settle()
    const write = async (signIn: RefusedSignIn, count: number) => {
      await contexts.recordEvent(signIn.caller, signIn.origin, { ...eventFromRefusal(signIn), count })
      this.log(signIn, count)
    }
    for (const aggregator of [this.#bySource, this.#byReason])
      await aggregator.flush(contexts.clock.now(), write, options)
  }
}

function reasonKey({ method, reason }: RefusedSignIn): string {
  return `${method} ${reason}`
}

function sourceKey(signIn: RefusedSignIn): string {
  return `${sourceFromContext(signIn)} ${reasonKey(signIn)}`
}

/** A record of guesses at several credentials names none of them. */
function combineRefusals(earlier: RefusedSignIn, later: RefusedSignIn): RefusedSignIn {
  if (earlier.credentialId === later.credentialId) return later
  return { ...later, credentialId: NO_CREDENTIAL, message: later.reason }
}
