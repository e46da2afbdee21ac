// Disables identities, by an administrator or a lockout, temporarily or until enabled again. It ends their sessions.

import type { Entity } from '../definitions/resources/define.ts'
import { identities } from '../definitions/resources/identities.ts'
import type { Instant } from '../foundation/clock.ts'
import { type EntityStore, get } from '../storage/entities/entities.ts'
import type { WriteContext } from '../storage/transactions/context.ts'
import { hasUsableAdministrator, requireOtherAdministrator } from './administrators/administrators.ts'

export interface DisabledState {
  readonly disabledAt: Instant | null
  readonly disabledUntil: Instant | null
}

/** Whether an identity is disabled at `now`. */
export function isDisabled({ disabledAt, disabledUntil }: DisabledState, now: Instant): boolean {
  return disabledAt !== null && (disabledUntil === null || disabledUntil > now)
}

/** The maximum lockout of the last administrator. */
const MAX_LOCKOUT_OF_LAST_MINUTES = 15

/**
 * Disables an identity for `minutes`, or until it is enabled if that is 0 or less. The rules of the resource end its sessions
 * in the same transaction. @throws NOT_FOUND, LAST_ADMINISTRATOR
 */
export async function disableIdentity(
  entities: EntityStore,
  tx: WriteContext,
  identityId: string,
  minutes: number,
): Promise<void> {
  const previous = await get(tx, identities, identityId)
  if (previous.isAdmin) await requireOtherAdministrator(tx, identityId)
  await setDisabled(entities, tx, previous, minutes)
}

/**
 * Disables an identity after too many wrong passwords. An attacker must not lock out every administrator: the lockout of the
 * last usable administrator is short, whatever its auth policy says. @throws NOT_FOUND
 */
export async function lockOut(
  entities: EntityStore,
  tx: WriteContext,
  identityId: string,
  minutes: number,
): Promise<void> {
  const previous = await get(tx, identities, identityId)
  const isLast = previous.isAdmin && !(await hasUsableAdministrator(tx, [identityId]))
  const isTooLong = minutes <= 0 || minutes > MAX_LOCKOUT_OF_LAST_MINUTES
  await setDisabled(entities, tx, previous, isLast && isTooLong ? MAX_LOCKOUT_OF_LAST_MINUTES : minutes)
}

async function setDisabled(
  entities: EntityStore,
  tx: WriteContext,
  previous: Entity<typeof identities>,
  minutes: number,
): Promise<void> {
  const now = tx.clock.now()
  await entities.update(tx, identities, previous, {
    disabledAt: now,
    disabledUntil: minutes > 0 ? now + minutes * 60_000 : null,
  })
}

/** Enables an identity. @throws NOT_FOUND */
export async function enableIdentity(entities: EntityStore, tx: WriteContext, identityId: string): Promise<void> {
  const previous = await get(tx, identities, identityId)
  await entities.update(tx, identities, previous, { disabledAt: null, disabledUntil: null })
}
