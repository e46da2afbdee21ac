// The identities of edge routers that dial and host services themselves.
//
// Their type does not tell them from others: an administrator may give any identity the type `Router`.
import { invalidError } from '../foundation/errors.ts'
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

/** Such an identity is given no credential. @throws COULD_NOT_VALIDATE for the member `identityId` */
export async function requireNoRouter(context: Pick<ReadContext, 'db'>, identityId: string): Promise<void> {
  if (await findTunneler(context, identityId))
    throw invalidError('identityId', 'is the identity of a router, which signs in by its own certificate', identityId)
}
