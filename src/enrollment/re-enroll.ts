// Reverting an authenticator to an enrollment: the identity keeps everything else, and enrolls anew.
import type { Instant } from '../clock.ts'
import type { Context } from '../context.ts'
import { authenticators } from '../resources/authenticators.ts'
import { type EntityStore, get } from '../store/entities.ts'
import { assertInFuture } from './enrollment-behavior.ts'
import type { EnrollmentIssuer } from './enrollments.ts'

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
    const { identityId, method, username } = await get(tx, authenticators, id)
    assertInFuture(tx, expiresAt)
    // Certificates of other authorities revert to `ottca`, once there are such authorities.
    const values = method === 'updb' ? ({ method: 'updb', username } as const) : ({ method: 'ott' } as const)
    const enrollment = await enrollments.store(tx, { identityId, expiresAt, ...values })
    await entities.removeInTransaction(tx, authenticators, id)
    return enrollment.id
  })
}
