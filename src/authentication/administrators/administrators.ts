// Usable administrators: whether one could sign in, and the check that no change removes the last one.
import { X509Certificate } from 'node:crypto'
import { sql } from 'kysely'
import { authPolicies } from '../../definitions/resources/auth-policies.ts'
import type { Instant } from '../../foundation/clock.ts'
import { type ControllerError, errors } from '../../foundation/errors.ts'
import { isWithinDates } from '../../pki/certificates.ts'
import { get } from '../../storage/entities/entities.ts'
import type { Change } from '../../storage/transactions/changes.ts'
import type { ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { AuthPolicy } from '../auth-policies.ts'
import { isPartial } from '../sign-in/second-factors.ts'

/**
 * Whether some administrator could sign in: enabled, with a credential that its auth policy accepts. One that owes TOTP
 * counts, because it has enrolled TOTP or can enroll it. Inside a transaction everything is as that sees it, auth policies
 * included.
 * @param except the ids of identities that do not count
 */
export async function hasUsableAdministrator(
  context: Pick<ReadContext, 'db' | 'clock'>,
  except: readonly string[] = [],
): Promise<boolean> {
  const rows = await context.db
    .selectFrom('identities')
    .innerJoin('authenticators', 'authenticators.identityId', 'identities.id')
    .leftJoin('cas', 'cas.id', 'authenticators.caId')
    .select(['method', 'authPolicyId', 'authenticators.certPem'])
    .distinct()
    .where((eb) => eb.or([eb('caId', 'is', null), eb('isAuthEnabled', '=', 1)]))
    // The index of administrators holds no other rows: a parameter in place of the number would not match it.
    .where('isAdmin', '=', sql.lit(1))
    .where((eb) => eb.not(isOneOf(context.db, 'identities.id', except)))
    .where((eb) => eb.or([eb('disabledAt', 'is', null), eb('disabledUntil', '<=', context.clock.now())]))
    .execute()
  const now = context.clock.now()
  for (const { method, authPolicyId, certPem } of rows) {
    const policy = await get(context, authPolicies, authPolicyId)
    if (requiresForeignFactor(policy)) continue
    if (method === 'updb' ? policy.primary.updb.allowed : allowsCertificate(policy, certPem, now)) return true
  }
  return false
}

/** Whether the auth policy admits an identity by its password alone. */
export function allowsPasswordAlone(policy: AuthPolicy): boolean {
  return policy.primary.updb.allowed && !requiresSecondFactor(policy)
}

/** Whether the auth policy admits an identity by this certificate now. */
function allowsCertificate(policy: AuthPolicy, certPem: string | null, now: Instant): boolean {
  const { allowed, allowExpiredCerts } = policy.primary.cert
  if (!allowed || certPem === null) return false
  return allowExpiredCerts || isWithinDates(new X509Certificate(certPem), now)
}

function requiresSecondFactor(policy: AuthPolicy): boolean {
  return isPartial({ owesTotp: false, isTotpComplete: false }, policy, [])
}

/** Whether the auth policy requires a factor that an identity cannot enroll after its first one. TOTP can be enrolled then. */
function requiresForeignFactor(policy: AuthPolicy): boolean {
  return policy.secondary.requireExtJwtSigner !== null
}

/**
 * Requires that an administrator other than this one could sign in. The controller itself is not bound.
 * @throws LAST_ADMINISTRATOR
 */
export async function requireOtherAdministrator(tx: WriteContext, identityId: string): Promise<void> {
  if (tx.caller.kind !== 'system' && !(await hasUsableAdministrator(tx, [identityId]))) throw lastAdministratorError()
}

/**
 * Requires that an administrator can still sign in after changes that demote or delete one, move one to another auth
 * policy, take away a credential of one, or close an authority. Asked when a transaction has made all of its changes: a password
 * may have been replaced by another one.
 * @throws LAST_ADMINISTRATOR
 */
export async function requireUsableAdministrator(tx: WriteContext): Promise<void> {
  if (tx.caller.kind === 'system') return
  for (const change of tx.uncommitted.own) {
    if (!(await concernsAdministrator(tx, change))) continue
    if (!(await hasUsableAdministrator(tx))) throw lastAdministratorError()
    return
  }
}

async function concernsAdministrator(
  tx: WriteContext,
  { resource, operation, before, after }: Change,
): Promise<boolean> {
  if (resource === 'identities') {
    const isKept = after?.isAdmin === true && after.authPolicyId === before?.authPolicyId
    return before?.isAdmin === true && !isKept
  }
  if (resource === 'cas') return before?.isAuthEnabled === true && after?.isAuthEnabled === false
  if (resource !== 'authenticators' || operation !== 'delete') return false
  const query = tx.db.selectFrom('identities').select('isAdmin')
  const owner = await query.where('id', '=', String(before?.identityId)).executeTakeFirst()
  return owner?.isAdmin === 1
}

function lastAdministratorError(): ControllerError {
  return errors.LAST_ADMINISTRATOR({ message: 'give another administrator a credential first' })
}
