// Disabling identities: by an administrator or by a lockout, for a time or without an end. It ends their sessions.
import type { Instant } from '../clock.ts'
import type { WriteContext } from '../context.ts'
import { identities } from '../resources/identities.ts'
import { get, update } from '../store/entities.ts'

export interface Disablable {
  readonly disabledAt: Instant | null
  readonly disabledUntil: Instant | null
}

/** Disabled now: without an end, or with one that has not come. */
export function isDisabled({ disabledAt, disabledUntil }: Disablable, now: Instant): boolean {
  return disabledAt !== null && (disabledUntil === null || disabledUntil > now)
}

/**
 * Disables an identity for `minutes`, or without an end where that is 0 or less. Its sessions end in the same transaction,
 * by the rules of the resource. @throws NOT_FOUND
 */
export async function disable(tx: WriteContext, identityId: string, minutes: number): Promise<void> {
  const now = tx.clock.now()
  const previous = await get(tx, identities, identityId)
  await update(tx, identities, previous, {
    disabledAt: now,
    disabledUntil: minutes > 0 ? now + minutes * 60_000 : null,
  })
}

/** Lets a disabled identity in again; one that is enabled stays so. @throws NOT_FOUND */
export async function enable(tx: WriteContext, identityId: string): Promise<void> {
  const previous = await get(tx, identities, identityId)
  await update(tx, identities, previous, { disabledAt: null, disabledUntil: null })
}
