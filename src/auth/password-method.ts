// Proof by username and password.
import type { Context } from '../context.ts'
import { errors } from '../errors.ts'
import type { Credentials, Proof } from './authenticate.ts'

/** @throws COULD_NOT_VALIDATE where one of the two is missing, SERVER_TOO_MANY_REQUESTS where too many wait */
export async function passwordMethod(
  context: Context,
  { username, password }: Credentials,
): Promise<Proof | undefined> {
  if (!username || !password) {
    const field = username ? 'password' : 'username'
    throw errors.COULD_NOT_VALIDATE({ field, reason: 'is required' })
  }
  const row = await context.db
    .selectFrom('authenticators')
    .select(['id', 'identityId', 'passwordHash'])
    .where('foldedUsername', '=', foldUsername(username))
    .executeTakeFirst()
  const isRight = await context.controller.passwords.verify(row?.passwordHash ?? undefined, password)
  if (!row || !isRight) return undefined
  return {
    identityId: row.identityId,
    authenticatorId: row.id,
    isAdmitted: (policy) => policy.primary.updb.allowed,
  }
}

/** The form in which usernames are compared: regardless of case. */
export function foldUsername(username: string): string {
  return username.normalize('NFC').toLowerCase()
}
