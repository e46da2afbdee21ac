// Giving an identity a way in by password, in place of one that was forgotten.
import type { WriteContext } from '../context.ts'
import { authenticators } from '../resources/authenticators.ts'
import { insert, newEntity, removeInTransaction } from '../store/entities.ts'

/**
 * Stores username and password hash of an identity as its one password authenticator. If it replaces an earlier one, all
 * sessions of the identity end. @throws USERNAME_TAKEN
 */
export async function setPassword(
  tx: WriteContext,
  identityId: string,
  username: string,
  passwordHash: string,
): Promise<void> {
  const earlier = await tx.db
    .selectFrom('authenticators')
    .select('id')
    .where('identityId', '=', identityId)
    .where('method', '=', 'updb')
    .execute()
  for (const { id } of earlier) await removeInTransaction(tx, authenticators, id)
  if (earlier.length > 0) await tx.controller.sessions.revokeAll(tx, { identityId })
  await insert(
    tx,
    authenticators,
    newEntity(tx, authenticators, { identityId, method: 'updb', username, passwordHash }),
  )
}
