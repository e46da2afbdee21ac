// The MFA enrollment of an identity, as its API sessions see it.
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { errors } from '../../foundation/errors.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { FailedSignInParts } from '../sign-in/failed-sign-ins.ts'
import type { MfaEnrollment, MfaOwner, MfaSecrets } from './mfa-secrets.ts'

/** The parts that store and check second factors. */
export interface MfaParts extends FailedSignInParts {
  readonly auth: FailedSignInParts['auth'] & {
    readonly apiSessions: ApiSessions
    readonly mfaSecrets: MfaSecrets
  }
}

/** The parts that remove a second factor. */
export interface MfaRemovalParts {
  readonly entities: EntityStore
  readonly auth: { readonly apiSessions: ApiSessions }
}

const findId = prepareQuery((db, identityId: string) =>
  db.selectFrom('mfa_enrollments').select('id').where('identityId', '=', identityId),
)

/** Returns the MFA enrollment of an identity, or undefined. */
export async function findMfa(context: Pick<Context, 'db'>, identityId: string): Promise<MfaEnrollment | undefined> {
  const [row] = await findId(context.db, identityId)
  return row && find(context, mfaEnrollments, row.id)
}

/** Whether a session sees an enrollment: one that is not verified belongs to the session that started it. */
export function isVisible({ isVerified, apiSessionId }: MfaEnrollment, owner: MfaOwner): boolean {
  return isVerified || apiSessionId === owner.apiSessionId
}

/**
 * Returns the MFA enrollment of an identity that its session sees.
 * @throws NOT_FOUND if there is none, or none in the state that is asked for
 */
export async function requireMfa(
  context: Pick<Context, 'db'>,
  owner: MfaOwner,
  state: 'any' | 'unverified' | 'verified' = 'any',
): Promise<MfaEnrollment> {
  const enrollment = await findMfa(context, owner.identityId)
  if (!enrollment || !isVisible(enrollment, owner)) {
    throw errors.NOT_FOUND({ message: 'the identity has no MFA enrollment, or another session has started it' })
  }
  if (state !== 'any' && enrollment.isVerified !== (state === 'verified')) {
    throw errors.NOT_FOUND({ message: `the MFA enrollment is ${enrollment.isVerified ? 'verified' : 'not verified'}` })
  }
  return enrollment
}

/** Removes the enrollment of an identity, on behalf of an administrator. Returns false if there is none. */
export async function removeMfa(parts: MfaRemovalParts, tx: WriteContext, identityId: string): Promise<boolean> {
  const enrollment = await findMfa(tx, identityId)
  if (!enrollment) return false
  await removeEnrollment(parts, tx, enrollment)
  return true
}

export async function removeEnrollment(
  { entities, auth }: MfaRemovalParts,
  tx: WriteContext,
  { id, identityId }: MfaEnrollment,
): Promise<void> {
  await entities.removeInTransaction(tx, mfaEnrollments, id)
  // A later enrollment is another factor, which no session has passed.
  await auth.apiSessions.totp.reset(tx, identityId)
}
