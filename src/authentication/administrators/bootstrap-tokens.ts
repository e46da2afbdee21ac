// Bootstrap tokens: they give the first administrator a credential, so they end as soon as an administrator is usable.
import { sql } from 'kysely'
import { enrollments } from '../../definitions/resources/enrollments.ts'
import type { WriteContext } from '../../storage/context.ts'
import type { EntityStore } from '../../storage/entities/entities.ts'

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
