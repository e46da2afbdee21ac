// Finds the role bearer of an identity: its id and role attributes, by which policies select it.
import type { ApiSessions } from '../authentication/api-sessions/api-sessions.ts'
import { notFoundError } from '../foundation/errors.ts'
import type { RoleBearer } from '../policy/role-selector.ts'
import { prepareQuery } from '../storage/prepared-queries.ts'
import type { Context } from '../storage/transactions/context.ts'

const readRoleAttributes = prepareQuery((db, id: string) =>
  db.selectFrom('identities').select('roleAttributes').where('id', '=', id),
)

/** The id and role attributes of an identity. @throws NOT_FOUND */
export async function loadRoleBearer({ db }: Pick<Context, 'db'>, identityId: string): Promise<RoleBearer> {
  const [row] = await readRoleAttributes(db, identityId)
  if (!row) throw notFoundError('identity', identityId)
  return { id: identityId, attributes: JSON.parse(row.roleAttributes) as string[] }
}

/** The same of an identity that has signed in, from memory while its session lives. @throws NOT_FOUND */
export async function findRoleBearerOfSession(
  apiSessions: ApiSessions,
  { db }: Pick<Context, 'db'>,
  { identityId, apiSessionId }: { readonly identityId: string; readonly apiSessionId: string },
): Promise<RoleBearer> {
  const session = apiSessions.get(apiSessionId)
  return session ? { id: identityId, attributes: session.identity.roleAttributes } : loadRoleBearer({ db }, identityId)
}
