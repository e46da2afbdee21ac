// Usernames: how they are compared, and that no two identities share one.
import type { ReadContext } from '../context.ts'
import { errors } from '../errors.ts'

/** The form in which usernames are compared: regardless of case. */
export function foldUsername(username: string): string {
  return username.normalize('NFC').toLowerCase()
}

/** @throws USERNAME_TAKEN where another identity signs in by it */
export async function assertUsernameFree(
  { db }: Pick<ReadContext, 'db'>,
  username: string,
  identityId: string,
): Promise<void> {
  const taken = await db
    .selectFrom('authenticators')
    .select('id')
    .where('foldedUsername', '=', foldUsername(username))
    .where('identityId', '!=', identityId)
    .executeTakeFirst()
  if (taken) throw errors.USERNAME_TAKEN({ field: 'username', reason: 'is taken', value: username })
}
