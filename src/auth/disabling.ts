// Disabling identities: by an administrator or by a lockout, for a time or without an end. It ends their sessions.
import type { Instant } from '../clock.ts'
import type { WriteContext } from '../context.ts'
import type { Entity } from '../resources/define.ts'
import { identities } from '../resources/identities.ts'
import { get, update } from '../store/entities.ts'
import { hasUsableAdministrator, requireOtherAdministrator } from './administrators.ts'

export interface DisabledState {
  readonly disabledAt: Instant | null
  readonly disabledUntil: Instant | null
}

/** Disabled now: without an end, or with one that has not come. */
export function isDisabled({ disabledAt, disabledUntil }: DisabledState, now: Instant): boolean {
  return disabledAt !== null && (disabledUntil === null || disabledUntil > now)
}

/** How long a lockout of the last administrator lasts at most. */
const MAX_LOCKOUT_OF_LAST_MINUTES = 15

/**
 * Disables an identity for `minutes`, or without an end if that is 0 or less. Its sessions end in the same transaction,
 * by the rules of the resource. @throws NOT_FOUND, LAST_ADMINISTRATOR
 */
export async function disable(tx: WriteContext, identityId: string, minutes: number): Promise<void> {
  const previous = await get(tx, identities, identityId)
  if (previous.isAdmin) await requireOtherAdministrator(tx, identityId)
  await setDisabled(tx, previous, minutes)
}

/**
 * Disables an identity after too many wrong passwords. Whoever guesses must not keep out everyone who could end that: the
 * last administrator who could sign in comes back soon, whatever its auth policy says. @throws NOT_FOUND
 */
export async function lockOut(tx: WriteContext, identityId: string, minutes: number): Promise<void> {
  const previous = await get(tx, identities, identityId)
  const isLast = previous.isAdmin && !(await hasUsableAdministrator(tx, identityId))
  const isTooLong = minutes <= 0 || minutes > MAX_LOCKOUT_OF_LAST_MINUTES
  await setDisabled(tx, previous, isLast && isTooLong ? MAX_LOCKOUT_OF_LAST_MINUTES : minutes)
}

async function setDisabled(tx: WriteContext, previous: Entity<typeof identities>, minutes: number): Promise<void> {
  const now = tx.clock.now()
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
