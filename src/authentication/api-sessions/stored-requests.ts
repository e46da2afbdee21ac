// The authorization requests of OpenID Connect that have led to an API session, as its row has them.
import type { Kysely } from 'kysely'
import type { StoredAuthorization } from '../../definitions/resources/api-sessions.ts'
import { errors } from '../../foundation/errors.ts'
import type { Database } from '../../storage/database.ts'

/** The API session that a request has led to, and what is stored of the request. */
export interface StoredRequest {
  readonly apiSessionId: string
  readonly authorization: StoredAuthorization
}

/** The refusal of a step of a request that is not under way. */
export const signInOverError = () => errors.UNAUTHORIZED({ message: 'there is no such sign-in, or its time is over' })

export async function findStoredRequest(db: Kysely<Database>, requestId: string): Promise<StoredRequest | undefined> {
  const row = await db
    .selectFrom('api_sessions')
    .select(['id', 'authorization'])
    .where('authorizationRequestId', '=', requestId)
    .executeTakeFirst()
  return row && { apiSessionId: row.id, authorization: JSON.parse(row.authorization as string) as StoredAuthorization }
}
