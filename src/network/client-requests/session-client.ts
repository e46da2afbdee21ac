// The client of a service session, as its router names it: it must be connected by the API session that the session belongs to.
import type { Kysely } from 'kysely'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'
import type { Database } from '../../storage/database.ts'
import { isOneOf } from '../../storage/untyped.ts'
import { RequestRefusedError } from './request-refused.ts'

/** A client that uses a session for a service, and by what its router says that it is connected. */
export interface SessionClient {
  /** The router that it is connected to. */
  readonly routerId: string
  /** The token of the session for the service. */
  readonly token: string
  /** The token of the API session by which it is connected; empty if the router does not send it: older ones do not for hosts. */
  readonly apiSessionToken: string
  /** SHA-1 of the certificates that it presented to the router, in no particular order. */
  readonly fingerprints: readonly string[]
}

/** A client whose token of the API session was verified, if it is a signed one. */
export interface ConnectedClient extends SessionClient {
  /** The API session that the token names. */
  readonly signedApiSessionId?: string | undefined
}

/** How long the id of an instance may be by which clients address a terminator. */
export const MAX_INSTANCE_ID_LENGTH = 4_096

/** The API session that a service session belongs to. */
interface SessionOwnerIds {
  readonly apiSessionId: string
  readonly identityId: string
}

// Far more than a chain has.
const MAX_FINGERPRINTS = 100

/**
 * Requires that a client is connected by the API session that its session belongs to: by the token of that API session, or
 * without one by a certificate that is valid for it.
 * @throws RequestRefusedError
 */
export async function requireOwnApiSession(
  db: Kysely<Database>,
  apiSessions: Pick<ApiSessions, 'deriveToken'>,
  { apiSessionToken, fingerprints, signedApiSessionId }: ConnectedClient,
  owner: SessionOwnerIds,
): Promise<void> {
  const isOwn =
    apiSessionToken === ''
      ? await hasOwnCertificate(db, fingerprints, owner)
      : signedApiSessionId === undefined
        ? isEqualInConstantTime(apiSessions.deriveToken(owner.apiSessionId), apiSessionToken)
        : signedApiSessionId === owner.apiSessionId
  if (!isOwn) throw new RequestRefusedError('unknown-api-session', 'the session belongs to another API session')
}

/**
 * Whether a certificate is one of the API session, of its identity, or the one by which it began, and none is of another identity.
 * A router does not say which of them the client has proven: a stranger may present certificates of others besides its own.
 */
async function hasOwnCertificate(
  db: Kysely<Database>,
  presented: readonly string[],
  { apiSessionId, identityId }: SessionOwnerIds,
): Promise<boolean> {
  if (presented.length === 0 || presented.length > MAX_FINGERPRINTS) return false
  const fingerprints = presented.map((fingerprint) => fingerprint.toLowerCase())
  const ofIdentities = await db
    .selectFrom('authenticators')
    .select('identityId')
    .where(isOneOf(db, 'fingerprint', fingerprints))
    .execute()
  const ofApiSessions = await db
    .selectFrom('session_certificates as certificate')
    .innerJoin('api_sessions as session', 'session.id', 'certificate.apiSessionId')
    .select(['certificate.apiSessionId', 'session.identityId'])
    .where(isOneOf(db, 'certificate.fingerprint', fingerprints))
    .execute()
  if ([...ofIdentities, ...ofApiSessions].some((holder) => holder.identityId !== identityId)) return false
  if (ofIdentities.length > 0 || ofApiSessions.some((holder) => holder.apiSessionId === apiSessionId)) return true
  // Its connection may be older than the certificate that the identity has now.
  const began = await db
    .selectFrom('api_sessions')
    .select('certFingerprint')
    .where('id', '=', apiSessionId)
    .executeTakeFirst()
  return began?.certFingerprint != null && fingerprints.includes(began.certFingerprint)
}
