// Reverting an authenticator to an enrollment: the identity keeps everything else, and enrolls anew.

import { authenticators } from '../../definitions/resources/authenticators.ts'
import type { Instant } from '../../foundation/clock.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { Authenticator } from '../credentials/authenticator-behavior.ts'
import { assertInFuture } from './enrollment-behavior.ts'
import type { EnrollmentIssuer, NewEnrollment } from './enrollments.ts'

/**
 * Returns the id of the new enrollment; the authenticator and its sessions are gone.
 * @throws NOT_FOUND, REFERENCED_ENTITY_NOT_FOUND for a time that has passed, ENROLLMENT_EXISTS
 */
export async function reEnroll(
  { entities, enrollments }: { readonly entities: EntityStore; readonly enrollments: EnrollmentIssuer },
  context: Context,
  id: string,
  expiresAt: Instant,
): Promise<string> {
  return context.write(async (tx) => {
    const authenticator = await get(tx, authenticators, id)
    assertInFuture(tx, expiresAt)
    const { identityId } = authenticator
    const enrollment = await enrollments.store(tx, { identityId, expiresAt, ...toEnrollmentValues(authenticator) })
    await entities.removeInTransaction(tx, authenticators, id)
    return enrollment.id
  })
}

/** The enrollment that leads to the same kind of credential. */
function toEnrollmentValues({
  method,
  username,
  caId,
}: Authenticator): Pick<NewEnrollment, 'method' | 'username' | 'caId'> {
  if (method === 'updb') return { method: 'updb', username }
  return caId === null ? { method: 'ott' } : { method: 'ottca', caId }
}
