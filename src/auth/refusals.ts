// What a refused sign-in leaves behind: a record in the audit, a line in the log, and after too many a locked identity.
import type { Instant } from '../clock.ts'
import type { Context, WriteContext } from '../context.ts'
import { authenticators } from '../resources/authenticators.ts'
import type { Attempt, Refusal } from './attempt.ts'
import { disable, isDisabled } from './disabling.ts'

/** Written where nothing is known by what was presented. */
const NOBODY = ''

/** Records a refused sign-in. */
export async function recordRefusal({ context, method, authenticator }: Attempt, refusal: Refusal): Promise<void> {
  const { controller, clock, origin } = context
  if (!authenticator && method !== 'password' && !controller.refusals.mayRecord(clock.now())) return
  const { requestId, address } = origin
  controller.log.info({ requestId, address, method, reason: refusal.message }, 'a sign-in was refused')
  await context.write(async (tx) => {
    record(tx, authenticator?.id ?? NOBODY)
    if (authenticator && refusal.isWrongPassword) await countFailure(tx, authenticator.id)
  })
}

/** Records that somebody who is signed in gave a wrong password for an authenticator. */
export async function recordWrongPassword(context: Context, authenticatorId: string): Promise<void> {
  await context.write(async (tx) => {
    record(tx, authenticatorId)
    await countFailure(tx, authenticatorId)
  })
}

function record(tx: WriteContext, authenticatorId: string): void {
  const at = tx.clock.now()
  tx.record({ operation: 'refuse', audit: 'event', resource: authenticators.plural, id: authenticatorId, at })
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
  if (isLocked) await disable(tx, row.identityId, lockoutDurationMinutes)
}

const WINDOW = 60_000
const MOST_IN_WINDOW = 60

/**
 * How many refusals are recorded that concern nobody and cost the caller nothing: without a bound, whoever can connect
 * could fill the disk. Passwords are bounded by what comparing them costs.
 */
export class Refusals {
  #windowEnds: Instant = 0
  #recorded = 0

  mayRecord(now: Instant): boolean {
    if (now >= this.#windowEnds) {
      this.#windowEnds = now + WINDOW
      this.#recorded = 0
    }
    this.#recorded += 1
    return this.#recorded <= MOST_IN_WINDOW
  }
}
