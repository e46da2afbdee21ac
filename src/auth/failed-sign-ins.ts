// What a refused sign-in leaves behind: a record in the audit, a line in the log, and after too many a locked identity.
import type { Instant } from '../clock.ts'
import type { Caller, Context, Origin, WriteContext } from '../context.ts'
import { authenticators } from '../resources/authenticators.ts'
import { sourceFromContext } from '../sources.ts'
import type { AuditEvent } from '../store/changes.ts'
import { toActor } from './callers.ts'
import { isDisabled, lockOut } from './disabling.ts'
import { EventAggregator } from './event-aggregator.ts'
import type { AuthenticationError, Method, RefusalReason, SignInAttempt } from './sign-in-attempt.ts'

/** Written where nothing is known by what was presented. */
const NO_AUTHENTICATOR = ''

const WINDOW_MS = 60_000
// What an attack from many sources writes: so many records a minute, and one a reason for all sources beyond.
const MAX_SOURCES = 500

/** A refused sign-in, as the audit has it. What was typed for a username is never part of it. */
interface RefusedSignIn {
  readonly caller: Caller
  readonly origin: Origin
  readonly method: Method
  readonly reason: RefusalReason
  readonly authenticatorId: string
}

/** Records a refused sign-in. */
export async function recordFailedSignIn(
  { context, method, authenticator }: SignInAttempt,
  { reason, message }: AuthenticationError,
): Promise<void> {
  const { caller, origin } = context
  const refused = { caller, origin, method, reason, authenticatorId: authenticator?.id ?? NO_AUTHENTICATOR }
  await record(context, refused, message)
}

/** Records that an identity that is signed in gave a wrong password for its authenticator. */
export async function recordWrongPassword(context: Context, authenticatorId: string): Promise<void> {
  const { caller, origin } = context
  const refused = { caller, origin, method: 'password', reason: 'WRONG_PASSWORD', authenticatorId } as const
  await record(context, refused, 'the current password is wrong')
}

/** Records and logs. A refusal that concerns no authenticator may cost its source nothing: it is logged only if it is recorded. */
async function record(context: Context, refused: RefusedSignIn, detail: string): Promise<void> {
  const { controller, clock } = context
  const { method, reason, authenticatorId } = refused
  const isFirst = controller.refusals.admit(refused, clock.now())
  if (isFirst || authenticatorId !== NO_AUTHENTICATOR) {
    const { requestId, address } = refused.origin
    controller.log.info({ requestId, address, method, reason: detail }, 'a sign-in was refused')
  }
  const isGuess = reason === 'WRONG_PASSWORD' && authenticatorId !== NO_AUTHENTICATOR
  if (!isFirst && !isGuess) return
  try {
    await controller.context(toActor(refused.caller), refused.origin).write(async (tx) => {
      if (isFirst) tx.record({ ...eventFromRefusal(refused), audit: 'event', at: clock.now() })
      if (isGuess) await countFailure(tx, authenticatorId)
    })
  } catch (error) {
    if (isFirst) controller.refusals.undo(refused)
    throw error
  }
}

function eventFromRefusal({ method, reason, authenticatorId }: RefusedSignIn): AuditEvent {
  return { operation: 'refuse', resource: authenticators.plural, id: authenticatorId, method, reason }
}

/** Counts a wrong password, and disables the identity where its policy has had enough. */
async function countFailure(tx: WriteContext, authenticatorId: string): Promise<void> {
  const row = await tx.db
    .selectFrom('authenticators')
    .innerJoin('identities', 'identities.id', 'authenticators.identityId')
    .select(['identityId', 'failedAttempts', 'authPolicyId', 'disabledAt', 'disabledUntil'])
    .where('authenticators.id', '=', authenticatorId)
    .executeTakeFirst()
  // Attempts that were compared at the same time may have locked it, or it is gone.
  if (!row || isDisabled(row, tx.clock.now())) return
  const { maxAttempts, lockoutDurationMinutes } = tx.controller.authPolicies.get(row.authPolicyId).primary.updb
  if (maxAttempts === 0) return
  const failedAttempts = row.failedAttempts + 1
  const isLocked = failedAttempts >= maxAttempts
  await tx.db
    .updateTable('authenticators')
    .set({ failedAttempts: isLocked ? 0 : failedAttempts })
    .where('id', '=', authenticatorId)
    .execute()
  if (isLocked) await lockOut(tx, row.identityId, lockoutDurationMinutes)
}

/**
 * Refused sign-ins of one source by one method for one reason: the first is recorded, the others are counted into one record
 * a minute. Memory and disk are bounded whatever arrives: beyond so many sources the refusals of all others are counted by
 * reason alone, so one source never hides another. A kill loses what was counted since the last record, at most a minute of
 * it; the first refusal of each source is on disk before it is answered.
 */
export class FailedLoginLimiter {
  readonly #bySource = new EventAggregator<RefusedSignIn>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES, combine })
  readonly #byReason = new EventAggregator<RefusedSignIn>({ windowMs: WINDOW_MS, maxKeys: MAX_SOURCES, combine })

  /** Counts a refusal. Returns whether it is to be recorded now. */
  admit(refused: RefusedSignIn, now: Instant): boolean {
    const admission = this.#bySource.admit(sourceKey(refused), refused, now)
    if (admission !== 'untracked') return admission === 'first'
    const { requestId } = refused.origin
    const ofAnySource = { ...refused, caller: ANONYMOUS, origin: { requestId, address: undefined } }
    return this.#byReason.admit(reasonKey(refused), ofAnySource, now) === 'first'
  }

  /** Takes back a first refusal that could not be recorded. */
  undo(refused: RefusedSignIn): void {
    this.#bySource.undo(sourceKey(refused), 'first')
    this.#byReason.undo(reasonKey(refused), 'first')
  }

  /** Records what was counted in windows that are over; in all windows with `isFinal`. */
  async flush({ clock, controller }: Context, options: { readonly isFinal?: boolean } = {}): Promise<void> {
    const write = (refused: RefusedSignIn, count: number) =>
      controller.recordEvent(refused.caller, refused.origin, { ...eventFromRefusal(refused), count })
    for (const aggregator of [this.#bySource, this.#byReason]) await aggregator.flush(clock.now(), write, options)
  }
}

const ANONYMOUS: Caller = { kind: 'anonymous' }

function reasonKey({ method, reason }: RefusedSignIn): string {
  return `${method} ${reason}`
}

function sourceKey(refused: RefusedSignIn): string {
  return `${sourceFromContext(refused)} ${reasonKey(refused)}`
}

/** A record that stands for guesses at several authenticators names none. */
function combine(earlier: RefusedSignIn, later: RefusedSignIn): RefusedSignIn {
  return earlier.authenticatorId === later.authenticatorId ? later : { ...later, authenticatorId: NO_AUTHENTICATOR }
}
