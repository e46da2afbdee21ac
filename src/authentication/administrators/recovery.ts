// Recovery of an administrator who cannot sign in.
import { authPolicies, permissivePolicy } from '../../definitions/resources/auth-policies.ts'
import { identities } from '../../definitions/resources/identities.ts'
import { errors } from '../../foundation/errors.ts'
import { newId } from '../../foundation/ids.ts'
import { type EntityStore, get, newEntity } from '../../storage/entities/entities.ts'
import type { Context, ReadContext, WriteContext } from '../../storage/transactions/context.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import type { Passwords } from '../credentials/passwords.ts'
import { isDisabled } from '../disabling.ts'
import { removeMfa } from '../mfa/mfa-records.ts'
import { allowsPasswordAlone } from './administrators.ts'
import { endBootstrapTokens } from './bootstrap-tokens.ts'

const RECOVERY_POLICY = 'Administrator recovery'

/** The parts that recover an administrator. */
export interface RecoveryParts {
  readonly entities: EntityStore
  readonly auth: {
    readonly passwords: Passwords
    readonly policies: AuthPolicies
    readonly apiSessions: ApiSessions
  }
}

/** The recovered identity, and what changed, each as a sentence. */
export interface RecoveryResult {
  readonly identityId: string
  readonly identityName: string
  readonly actions: readonly string[]
}

/**
 * Sets username and password of an identity, and removes every obstacle to administering with them. Bootstrap tokens end.
 * @param identityId defaults to the first administrator
 * @param canPromote whether an identity that does not administer becomes an administrator
 * @throws COULD_NOT_VALIDATE if the password is too weak for its auth policy, USERNAME_TAKEN, NOT_FOUND, FORBIDDEN if the
 * identity does not administer and must not be promoted
 */
export async function recoverAdministrator(
  parts: RecoveryParts,
  context: Context,
  { username, password }: { readonly username: string; readonly password: string },
  identityId?: string,
  canPromote = true,
): Promise<RecoveryResult> {
  const id = identityId ?? (await findFirstAdministrator(context))
  if (!canPromote) await requireAdministrator(context, id)
  const hash = await parts.auth.passwords.hash(context, id, password)
  return context.write(async (tx) => {
    await endBootstrapTokens(parts.entities, tx)
    await parts.auth.passwords.set(tx, id, username, hash)
    const { name } = await get(tx, identities, id)
    return {
      identityId: id,
      identityName: name,
      actions: [`it signs in as ${username}`, ...(await restoreAdminAccess(parts, tx, id))],
    }
  })
}

/** The first administrator is one even if it was demoted. @throws FORBIDDEN if the identity does not administer */
async function requireAdministrator(context: ReadContext, id: string): Promise<void> {
  const { name, isAdmin, isDefaultAdmin } = await get(context, identities, id)
  if (!isAdmin && !isDefaultAdmin)
    throw errors.FORBIDDEN({ code: 'NOT_ADMINISTRATOR', message: `${name} is not an administrator` })
}

/** Returns the id of the administrator that every controller starts with, and that cannot be deleted. */
export async function findFirstAdministrator({ db }: ReadContext): Promise<string> {
  const query = db.selectFrom('identities').select('id').where('isDefaultAdmin', '=', 1)
  return (await query.executeTakeFirstOrThrow()).id
}

/** Makes an identity an enabled administrator that can sign in by password alone. Returns what changed. */
export async function restoreAdminAccess(
  parts: RecoveryParts,
  tx: WriteContext,
  identityId: string,
): Promise<string[]> {
  const previous = await get(tx, identities, identityId)
  const changed: Record<string, unknown> = {}
  const actions: string[] = []
  if (isDisabled(previous, tx.clock.now())) {
    Object.assign(changed, { disabledAt: null, disabledUntil: null })
    actions.push('it is enabled again')
  }
  if (!previous.isAdmin) {
    changed.isAdmin = true
    actions.push('it administers again')
  }
  if (!allowsPasswordAlone(parts.auth.policies.get(previous.authPolicyId))) {
    changed.authPolicyId = await ensureRecoveryPolicy(parts, tx)
    actions.push(`it has the auth policy "${RECOVERY_POLICY}", because its own is not met by a password alone`)
  }
  if (Object.keys(changed).length > 0) await parts.entities.update(tx, identities, previous, changed)
  if (await removeMfa(parts, tx, identityId)) actions.push('its second factor was removed')
  return actions
}

/** Returns the id of an auth policy that admits by password alone; creates one if needed. */
async function ensureRecoveryPolicy(
  { entities, auth: { policies } }: RecoveryParts,
  tx: WriteContext,
): Promise<string> {
  const policy = await tx.db
    .selectFrom('auth_policies')
    .select('id')
    .where('name', '=', RECOVERY_POLICY)
    .executeTakeFirst()
  if (policy && allowsPasswordAlone(policies.get(policy.id))) return policy.id
  const name = policy ? `${RECOVERY_POLICY} ${newId()}` : RECOVERY_POLICY
  return (await entities.insert(tx, authPolicies, newEntity(tx, authPolicies, { name, ...permissivePolicy }))).id
}
