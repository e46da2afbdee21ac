// Letting an administrator in again who cannot sign in.
import type { Context, ReadContext, WriteContext } from '../context.ts'
import { newId } from '../ids.ts'
import { authPolicies, permissivePolicy } from '../resources/auth-policies.ts'
import { identities } from '../resources/identities.ts'
import { get, insert, newEntity, update } from '../store/entities.ts'
import { allowsPasswordAlone } from './administrators.ts'
import { endBootstrapTokens } from './bootstrap-tokens.ts'
import { isDisabled } from './disabling.ts'

const RECOVERY_POLICY = 'Administrator recovery'

/** What was done to let somebody in, each as a sentence. */
export interface RecoveryResult {
  readonly identityId: string
  readonly identityName: string
  readonly done: readonly string[]
}

/**
 * Gives an identity username and password, and clears away whatever keeps it from administering by them. Bootstrap tokens
 * end.
 * @param identityId the first administrator unless said otherwise
 * @throws COULD_NOT_VALIDATE for a password that its auth policy finds too weak, USERNAME_TAKEN, NOT_FOUND
 */
export async function recoverAdministrator(
  context: Context,
  { username, password }: { readonly username: string; readonly password: string },
  identityId?: string,
): Promise<RecoveryResult> {
  const id = identityId ?? (await findFirstAdministrator(context))
  const hash = await context.controller.passwords.hash(context, id, password)
  return context.write(async (tx) => {
    await endBootstrapTokens(tx)
    await tx.controller.passwords.set(tx, id, username, hash)
    const { name } = await get(tx, identities, id)
    return {
      identityId: id,
      identityName: name,
      done: [`it signs in as ${username}`, ...(await restoreAdminAccess(tx, id))],
    }
  })
}

/** The id of the administrator that every controller begins with, and that cannot be deleted. */
export async function findFirstAdministrator({ db }: ReadContext): Promise<string> {
  const query = db.selectFrom('identities').select('id').where('isDefaultAdmin', '=', 1)
  return (await query.executeTakeFirstOrThrow()).id
}

/** Makes sure that an identity administers, is enabled, and needs no more than its password. Returns what it did. */
export async function restoreAdminAccess(tx: WriteContext, identityId: string): Promise<string[]> {
  const previous = await get(tx, identities, identityId)
  const changed: Record<string, unknown> = {}
  const done: string[] = []
  if (isDisabled(previous, tx.clock.now())) {
    Object.assign(changed, { disabledAt: null, disabledUntil: null })
    done.push('it is enabled again')
  }
  if (!previous.isAdmin) {
    changed.isAdmin = true
    done.push('it administers again')
  }
  if (!allowsPasswordAlone(tx.controller.authPolicies.get(previous.authPolicyId))) {
    changed.authPolicyId = await ensureRecoveryPolicy(tx)
    done.push(`it has the auth policy "${RECOVERY_POLICY}", because its own is not met by a password alone`)
  }
  if (done.length > 0) await update(tx, identities, previous, changed)
  return done
}

/** The id of an auth policy by which a password is enough; made where there is none of that name. */
async function ensureRecoveryPolicy(tx: WriteContext): Promise<string> {
  const found = await tx.db
    .selectFrom('auth_policies')
    .select('id')
    .where('name', '=', RECOVERY_POLICY)
    .executeTakeFirst()
  if (found && allowsPasswordAlone(tx.controller.authPolicies.get(found.id))) return found.id
  const name = found ? `${RECOVERY_POLICY} ${newId()}` : RECOVERY_POLICY
  return (await insert(tx, authPolicies, newEntity(tx, authPolicies, { name, ...permissivePolicy }))).id
}
