// Operations of identities on their own verified second factor: pass, read and replace recovery codes, remove.
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { errors } from '../../foundation/errors.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { endBootstrapTokens } from '../administrators/bootstrap-tokens.ts'
import { type CodeUse, changeWithCode } from './code-use.ts'
import { findMfa, type MfaParts, removeEnrollment, requireMfa } from './mfa-records.ts'
import type { AcceptedCodes, MfaEnrollment, MfaOwner } from './mfa-secrets.ts'
import { generateRecoveryCodes } from './recovery-codes.ts'

/**
 * Passes the second factor of a session, by a code of the app or a recovery code.
 * @throws MFA_NOT_ENROLLED if there is no verified enrollment, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function passMfa(
  parts: MfaParts,
  context: Context,
  owner: MfaOwner,
  code: string,
  accepted: AcceptedCodes = 'totp-or-recovery',
): Promise<void> {
  const requireEnrollment = async (tx: WriteContext) => {
    const enrollment = await findMfa(tx, owner.identityId)
    if (!enrollment?.isVerified)
      throw errors.MFA_NOT_ENROLLED({ message: 'the identity has no verified MFA enrollment' })
    return enrollment
  }
  await changeWithCode(parts, context, { owner, code, accepted, requireEnrollment }, async (tx, enrollment, use) => {
    await storeUse(parts, tx, enrollment, use)
    await completeSession(parts, tx, owner)
  })
}

/**
 * Removes the enrollment of its owner. A verified one requires a code of the app, or a recovery code.
 * @throws NOT_FOUND, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function removeOwnMfa(parts: MfaParts, context: Context, owner: MfaOwner, code: string): Promise<void> {
  const { isVerified } = await requireMfa(context, owner)
  if (!isVerified) {
    await context.write(async (tx) => removeEnrollment(parts, tx, await requireMfa(tx, owner, 'unverified')))
    return
  }
  const attempt = { owner, code, accepted: 'totp-or-recovery', requireEnrollment: requireVerified(owner) } as const
  await changeWithCode(parts, context, attempt, (tx, enrollment) => removeEnrollment(parts, tx, enrollment))
}

/**
 * Uses a code of the app, and returns the id of the enrollment whose recovery codes may be shown then.
 * @throws NOT_FOUND if there is no verified enrollment, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function unlockRecoveryCodes(
  parts: MfaParts,
  context: Context,
  owner: MfaOwner,
  code: string,
): Promise<string> {
  const attempt = { owner, code, accepted: 'totp', requireEnrollment: requireVerified(owner) } as const
  return changeWithCode(parts, context, attempt, async (tx, enrollment, use) => {
    await storeUse(parts, tx, enrollment, use)
    return enrollment.id
  })
}

/**
 * Replaces all recovery codes, by a code of the app or a recovery code. Returns the id of the enrollment.
 * @throws NOT_FOUND if there is no verified enrollment, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function replaceRecoveryCodes(
  parts: MfaParts,
  context: Context,
  owner: MfaOwner,
  code: string,
): Promise<string> {
  const attempt = { owner, code, accepted: 'totp-or-recovery', requireEnrollment: requireVerified(owner) } as const
  return changeWithCode(parts, context, attempt, async (tx, enrollment, use) => {
    const { id } = enrollment
    const encryptedRecoveryCodes = parts.auth.mfaSecrets.encryptRecoveryCodes(id, generateRecoveryCodes())
    await parts.entities.update(tx, mfaEnrollments, enrollment, { ...use, encryptedRecoveryCodes })
    return id
  })
}

function requireVerified(owner: MfaOwner): (tx: WriteContext) => Promise<MfaEnrollment> {
  return (tx) => requireMfa(tx, owner, 'verified')
}

/** Stores that a code was used. The audit records recovery codes here, and codes of the app by what they allowed. */
async function storeUse(
  { entities }: MfaParts,
  tx: WriteContext,
  enrollment: MfaEnrollment,
  use: CodeUse,
): Promise<void> {
  const audit = use.encryptedRecoveryCodes === undefined ? 'none' : 'values'
  await entities.update(tx, mfaEnrollments, enrollment, use, { audit })
}

/** Stores that a session has passed TOTP. An administrator that can sign in ends the bootstrap tokens. */
export async function completeSession({ entities, auth }: MfaParts, tx: WriteContext, owner: MfaOwner): Promise<void> {
  await auth.apiSessions.totp.complete(tx, owner.apiSessionId)
  const session = auth.apiSessions.get(owner.apiSessionId)
  if (!session?.identity.isAdmin) return
  const policy = auth.policies.get(session.identity.authPolicyId)
  if (policy.secondary.requireExtJwtSigner === null) await endBootstrapTokens(entities, tx)
}
