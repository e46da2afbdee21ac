// The setup of a second factor: an API session starts an enrollment, and verifies it by a first code of the app.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import { externalJwtSigners } from '../../definitions/resources/external-jwt-signers.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { errors } from '../../foundation/errors.ts'
import { find, get } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { secondFactorRequiredError } from '../api-sessions/caller-errors.ts'
import { canSetUpTotp, findProvenSigners } from '../sign-in/second-factors.ts'
import { getSource, refuseWrongCode } from './code-use.ts'
import { findMfa, isVisible, type MfaParts, requireMfa } from './mfa-records.ts'
import { type MfaOwner, WrongCodeError } from './mfa-secrets.ts'
import { completeSession } from './own-mfa.ts'

/**
 * Creates an enrollment that its session can verify, and returns its id. One that another session has started, and not verified,
 * ends: its secret may be that of another client which knows the password.
 * @throws MFA_EXISTS if there is one already, UNAUTHORIZED if the session may not set TOTP up
 */
export async function startMfa({ auth, entities }: MfaParts, context: Context, owner: MfaOwner): Promise<string> {
  const enrollment = auth.mfaSecrets.createEnrollment(context, owner)
  await context.write(async (tx) => {
    const existing = await findMfa(tx, owner.identityId)
    if (existing && isVisible(existing, owner)) throw errors.MFA_EXISTS({ message: 'remove the MFA enrollment first' })
    await requireSetupRight(tx, owner)
    if (existing) await entities.removeInTransaction(tx, mfaEnrollments, existing.id)
    await entities.insert(tx, mfaEnrollments, enrollment)
  })
  return enrollment.id
}

/**
 * Verifies an enrollment by a first code of the app. The session has passed its second factor then, and the other sessions of
 * the identity owe it. Wrong codes do not count, because the session knows the secret.
 * @throws NOT_FOUND if the session has no unverified enrollment, MFA_INVALID_TOKEN, UNAUTHORIZED if it may not set TOTP up
 */
export async function verifyMfa(parts: MfaParts, context: Context, owner: MfaOwner, code: string): Promise<void> {
  const { auth, entities } = parts
  try {
    await context.write(async (tx) => {
      const enrollment = await requireMfa(tx, owner, 'unverified')
      await requireSetupRight(tx, owner)
      const use = auth.mfaSecrets.useCode(tx, enrollment, code, 'totp')
      const verified = { isVerified: true, apiSessionId: null, knownSources: [getSource(tx)] }
      await entities.update(tx, mfaEnrollments, enrollment, { ...use, ...verified })
      await completeSession(parts, tx, owner)
      await auth.apiSessions.totp.require(tx, owner.identityId)
    })
  } catch (error) {
    throw error instanceof WrongCodeError ? await refuseWrongCode(parts, context, error) : error
  }
}

/** @throws UNAUTHORIZED if the session may not set TOTP up, by what the transaction sees */
async function requireSetupRight(tx: WriteContext, { identityId, apiSessionId }: MfaOwner): Promise<void> {
  const { caller, clock } = tx
  const session = await get(tx, apiSessions, apiSessionId)
  const identity = await get(tx, identities, identityId)
  const policy = await get(tx, authPolicies, identity.authPolicyId)
  const { requireExtJwtSigner } = policy.secondary
  const signer = requireExtJwtSigner === null ? undefined : await find(tx, externalJwtSigners, requireExtJwtSigner)
  const signers = { get: (id: string) => (signer?.id === id ? signer : undefined) }
  const tokens = (caller.kind === 'identity' && caller.externalTokens) || []
  const provenSigners = findProvenSigners(tokens, identity, signers, clock.now())
  const totp = { owesTotp: session.owesTotp, isTotpComplete: session.isMfaComplete }
  if (!canSetUpTotp(totp, policy, provenSigners)) throw secondFactorRequiredError()
}
