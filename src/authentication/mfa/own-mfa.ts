// Operations of identities on their own second factor: start, verify, pass, read and replace recovery codes, remove.

import { mfaEnrollments } from '../../definitions/resources/mfa-enrollments.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import type { Context, WriteContext } from '../../storage/context.ts'
import { find } from '../../storage/entities/entities.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import { endBootstrapTokens } from '../administrators/bootstrap-tokens.ts'
import type { ApiSessions } from '../sessions/api-sessions.ts'
import { type FailedSignInParts, recordWrongCode } from '../sign-in/failed-sign-ins.ts'
import { type AcceptedCodes, type MfaEnrollment, type MfaSecrets, WrongCodeError } from './mfa-secrets.ts'
import { generateRecoveryCodes } from './recovery-codes.ts'
import type { WrongCodeLimit } from './wrong-code-limit.ts'

/** What second factors are kept and checked with. */
export interface MfaParts extends FailedSignInParts {
  readonly auth: FailedSignInParts['auth'] & {
    readonly apiSessions: ApiSessions
    readonly mfaSecrets: MfaSecrets
    readonly wrongCodes: WrongCodeLimit
  }
}

/** The identity that acts on its own second factor, and its session. */
export interface MfaOwner {
  readonly identityId: string
  readonly apiSessionId: string
}

const findId = prepareQuery((db, identityId: string) =>
  db.selectFrom('mfa_enrollments').select('id').where('identityId', '=', identityId),
)

/** Returns the MFA enrollment of an identity, or undefined. */
async function findMfa(context: Pick<Context, 'db'>, identityId: string): Promise<MfaEnrollment | undefined> {
  const [row] = await findId(context.db, identityId)
  return row && find(context, mfaEnrollments, row.id)
}

/**
 * Returns the MFA enrollment of an identity.
 * @throws NOT_FOUND if there is none, or none in the state that is asked for
 */
export async function requireMfa(
  context: Pick<Context, 'db'>,
  identityId: string,
  state: 'any' | 'unverified' | 'verified' = 'any',
): Promise<MfaEnrollment> {
  const enrollment = await findMfa(context, identityId)
  if (!enrollment) throw errors.NOT_FOUND({ message: 'the identity has no MFA enrollment' })
  if (state !== 'any' && enrollment.isVerified !== (state === 'verified')) {
    throw errors.NOT_FOUND({ message: `the MFA enrollment is ${enrollment.isVerified ? 'verified' : 'not verified'}` })
  }
  return enrollment
}

/** Creates an unverified enrollment and returns its id. @throws MFA_EXISTS */
export async function startMfa({ auth, entities }: MfaParts, context: Context, identityId: string): Promise<string> {
  const enrollment = auth.mfaSecrets.createEnrollment(context, identityId)
  await context.write(async (tx) => {
    if (await findMfa(tx, identityId)) throw errors.MFA_EXISTS({ message: 'remove the MFA enrollment first' })
    await entities.insert(tx, mfaEnrollments, enrollment)
  })
  return enrollment.id
}

/**
 * Verifies an enrollment by a first code of the app. The session has passed its second factor then.
 * @throws NOT_FOUND if there is no unverified enrollment, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function verifyMfa(parts: MfaParts, context: Context, owner: MfaOwner, code: string): Promise<void> {
  await changeWithCode(parts, context, owner, async (tx) => {
    const enrollment = await requireMfa(tx, owner.identityId, 'unverified')
    const used = parts.auth.mfaSecrets.useCode(tx, enrollment, code, 'totp')
    await parts.entities.update(tx, mfaEnrollments, enrollment, { ...used, isVerified: true })
    await completeSession(parts, tx, owner)
  })
}

/**
 * Passes the second factor of a session, by a code of the app or a recovery code.
 * @throws MFA_NOT_ENROLLED if there is no verified enrollment, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function passMfa(parts: MfaParts, context: Context, owner: MfaOwner, code: string): Promise<void> {
  await changeWithCode(parts, context, owner, async (tx) => {
    const enrollment = await findMfa(tx, owner.identityId)
    if (!enrollment?.isVerified)
      throw errors.MFA_NOT_ENROLLED({ message: 'the identity has no verified MFA enrollment' })
    await useCode(parts, tx, enrollment, code, 'totp-or-recovery')
    await completeSession(parts, tx, owner)
  })
}

/**
 * Removes the enrollment of its owner. A verified one requires a code of the app, or a recovery code.
 * @throws NOT_FOUND, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS
 */
export async function removeOwnMfa(parts: MfaParts, context: Context, owner: MfaOwner, code: string): Promise<void> {
  await changeWithCode(parts, context, owner, async (tx) => {
    const enrollment = await requireMfa(tx, owner.identityId)
    if (enrollment.isVerified) parts.auth.mfaSecrets.useCode(tx, enrollment, code, 'totp-or-recovery')
    await removeEnrollment(parts, tx, enrollment)
  })
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
  return changeWithCode(parts, context, owner, async (tx) => {
    const enrollment = await requireMfa(tx, owner.identityId, 'verified')
    await useCode(parts, tx, enrollment, code, 'totp')
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
  return changeWithCode(parts, context, owner, async (tx) => {
    const enrollment = await requireMfa(tx, owner.identityId, 'verified')
    const used = parts.auth.mfaSecrets.useCode(tx, enrollment, code, 'totp-or-recovery')
    const { id } = enrollment
    const encryptedRecoveryCodes = parts.auth.mfaSecrets.encryptRecoveryCodes(id, generateRecoveryCodes())
    await parts.entities.update(tx, mfaEnrollments, enrollment, { ...used, encryptedRecoveryCodes })
    return id
  })
}

/** Removes the enrollment of an identity, on behalf of an administrator. Does nothing if there is none. */
export async function removeMfa(
  parts: Pick<MfaParts, 'entities'> & { readonly auth: { readonly apiSessions: ApiSessions } },
  tx: WriteContext,
  identityId: string,
): Promise<boolean> {
  const enrollment = await findMfa(tx, identityId)
  if (!enrollment) return false
  await removeEnrollment(parts, tx, enrollment)
  return true
}

async function removeEnrollment(
  { entities, auth }: Pick<MfaParts, 'entities'> & { readonly auth: { readonly apiSessions: ApiSessions } },
  tx: WriteContext,
  { id, identityId }: MfaEnrollment,
): Promise<void> {
  await entities.removeInTransaction(tx, mfaEnrollments, id)
  // A later enrollment is another factor, which no session has passed.
  await auth.apiSessions.resetTotp(tx, identityId)
}

/** Stores that a code was used. The audit records recovery codes here, and codes of the app by what they allowed. */
async function useCode(
  { entities, auth }: MfaParts,
  tx: WriteContext,
  enrollment: MfaEnrollment,
  code: string,
  accepted: AcceptedCodes,
): Promise<void> {
  const used = auth.mfaSecrets.useCode(tx, enrollment, code, accepted)
  const audit = used.encryptedRecoveryCodes === undefined ? 'none' : 'values'
  await entities.update(tx, mfaEnrollments, enrollment, used, { audit })
}

async function completeSession({ entities, auth }: MfaParts, tx: WriteContext, owner: MfaOwner): Promise<void> {
  await auth.apiSessions.completeTotp(tx, owner.apiSessionId)
  const session = auth.apiSessions.get(owner.apiSessionId)
  if (!session?.identity.isAdmin) return
  const policy = auth.policies.get(session.identity.authPolicyId)
  if (policy.secondary.requireExtJwtSigner === null) await endBootstrapTokens(entities, tx)
}

/** Runs a change that a code allows. A wrong code counts, is recorded, and changes nothing. */
async function changeWithCode<T>(
  parts: MfaParts,
  context: Context,
  { identityId }: MfaOwner,
  change: (tx: WriteContext) => Promise<T>,
): Promise<T> {
  const attempt = parts.auth.wrongCodes.begin(identityId, context.clock.now())
  try {
    const result = await context.write(change)
    attempt.revert()
    return result
  } catch (error) {
    if (!(error instanceof WrongCodeError)) {
      attempt.revert()
      throw error
    }
    await recordWrongCode(parts, context, error)
    throw wrongCodeError(error)
  }
}

function wrongCodeError(cause: WrongCodeError): ControllerError {
  return errors.MFA_INVALID_TOKEN(undefined, { cause: cause.message })
}
