// Usernames: case-insensitive, and unique among identities.

import { errors } from '../../foundation/errors.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'

/** Returns the form in which usernames are compared, regardless of case. */
export function foldUsername(username: string): string {
  return username.normalize('NFC').toLowerCase()
}

/** @throws USERNAME_TAKEN if another identity has this username */
export async function assertUsernameFree(
  { db }: Pick<ReadContext, 'db'>,
  username: string,
  identityId: string,
): Promise<void> {
  const authenticator = await db
    .selectFrom('authenticators')
    .select('id')
    .where('foldedUsername', '=', foldUsername(username))
    .where('identityId', '!=', identityId)
    .executeTakeFirst()
  if (authenticator) throw errors.USERNAME_TAKEN({ field: 'username', reason: 'is taken', value: username })
}
