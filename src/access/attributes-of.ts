// What policies know an identity by.
import type { Context } from '../context.ts'
import { notFound } from '../errors.ts'
import type { Attributed } from '../policy/side.ts'

/** The id and role attributes of an identity. @throws NOT_FOUND */
export async function attributesOf({ db }: Pick<Context, 'db'>, identityId: string): Promise<Attributed> {
  const row = await db.selectFrom('identities').select('roleAttributes').where('id', '=', identityId).executeTakeFirst()
  if (!row) throw notFound('identity', identityId)
  return { id: identityId, attributes: JSON.parse(row.roleAttributes) as string[] }
}
