// The identities of edge routers that dial and host services themselves.
//
// Their type does not tell them from others: an administrator may give any identity the type `Router`.
import type { ReadContext } from '../storage/transactions/context.ts'

/** The edge routers with an identity, which has the router's id, and comes and goes with it. */
export function queryTunnelers({ db }: Pick<ReadContext, 'db'>) {
  return db.selectFrom('routers').where('isTunnelerEnabled', '=', 1)
}

/** Returns the edge router whose identity this is, if any. */
export async function findTunneler(
  context: Pick<ReadContext, 'db'>,
  identityId: string,
): Promise<{ readonly name: string } | undefined> {
  return queryTunnelers(context).select('name').where('id', '=', identityId).executeTakeFirst()
}
