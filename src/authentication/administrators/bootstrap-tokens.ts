// Bootstrap tokens: they give the first administrator a credential, so they end as soon as an administrator is usable.
//
// An edit of auth policies can still leave no administrator who could sign in: then the next start prints a token. It
// becomes invalid when an administrator signs in, when `admin recover` restores one, or when another token is issued.
// Redeeming it checks again that no administrator can sign in.
import { sql } from 'kysely'
import { enrollments } from '../../definitions/resources/enrollments.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'
import type { WriteContext } from '../../storage/transactions/context.ts'

/** Ends every bootstrap token. */
export async function endBootstrapTokens(entities: EntityStore, tx: WriteContext): Promise<void> {
  const rows = await tx.db
    .selectFrom('enrollments')
    .select('id')
    // The index of bootstrap tokens holds no other rows: a parameter in place of the number would not match it.
    .where('isBootstrap', '=', sql.lit(1))
    .execute()
  for (const { id } of rows) await entities.removeInTransaction(tx, enrollments, id)
}
