// What policies know an identity by.
import type { Context } from '../context.ts'
import { notFound } from '../errors.ts'
import type { Attributed } from '../policy/side.ts'
import { kept } from '../store/kept.ts'

const roleAttributes = kept<[id: string], { roleAttributes: string }>(
  (db, id) => db.selectFrom('identities').select('roleAttributes').where('id', '=', id) as never,
)

/** The id and role attributes of an identity. @throws NOT_FOUND */
export async function attributesOf({ db }: Pick<Context, 'db'>, identityId: string): Promise<Attributed> {
  const [row] = await roleAttributes(db, identityId)
  if (!row) throw notFound('identity', identityId)
  return { id: identityId, attributes: JSON.parse(row.roleAttributes) as string[] }
}

/** The same of an identity that has signed in, from memory while its session lives. @throws NOT_FOUND */
export async function attributesOfSession(
  { db, controller }: Pick<Context, 'db' | 'controller'>,
  { identityId, apiSessionId }: { readonly identityId: string; readonly apiSessionId: string },
): Promise<Attributed> {
  const session = controller.sessions.get(apiSessionId)
  return session ? { id: identityId, attributes: session.identity.roleAttributes } : attributesOf({ db }, identityId)
}
