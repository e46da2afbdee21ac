// Decides a router's request for a client: by the session whose token it carries, and what that session may do now.
import type { Kysely } from 'kysely'
import type { Access } from '../../access/access.ts'
import { isSignedToken, type SessionReference, type SessionTokens } from '../../access/sessions/session-tokens.ts'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import type { AuthPolicies } from '../../authentication/auth-policies.ts'
import type { VerifiedAccessTokens } from '../../authentication/openid-connect/access-tokens.ts'
import { findOutstandingFactors } from '../../authentication/sign-in/second-factors.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import type { RoleBearer } from '../../policy/role-selector.ts'
import type { Database } from '../../storage/database.ts'
import { prepareQuery } from '../../storage/prepared-queries.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import { RequestRefusedError } from './request-refused.ts'
import { type ConnectedClient, requireOwnApiSession, type SessionClient } from './session-client.ts'

/** A session that may do what it is used for. */
export interface SessionRight {
  readonly sessionId: string
  readonly apiSessionId: string
  readonly identity: RoleBearer
  readonly identityName: string
  readonly serviceId: string
}

/** A client with the session that its token refers to. */
export interface IdentifiedClient extends ConnectedClient {
  readonly reference: SessionReference
}

/** The client that uses a session, and the purpose. */
export interface SessionUse extends IdentifiedClient {
  readonly type: PolicyType
}

/** The parts that decide on a request. */
export interface RightParts {
  readonly accessTokens: Pick<VerifiedAccessTokens, 'findValid'>
  /** Applies what other controllers have committed by now; undefined if there are none. */
  readonly catchUp: (() => Promise<void>) | undefined
  readonly access: Access
  readonly apiSessions: Pick<ApiSessions, 'get' | 'deriveToken'>
  readonly connected: Pick<ConnectedRouters, 'get'>
  readonly policies: Pick<AuthPolicies, 'get'>
  readonly sessionTokens: Pick<SessionTokens, 'areSigned' | 'findReference'>
}

interface SessionRow {
  readonly id: string
  readonly createdAt: Instant
  readonly apiSessionId: string
  readonly serviceId: string
  readonly type: PolicyType
  readonly identityId: string
  readonly identityName: string
  readonly roleAttributes: string
}

const selectSession = (db: Kysely<Database>) =>
  db
    .selectFrom('sessions as session')
    .innerJoin('identities as identity', 'identity.id', 'session.identityId')
    .select(['session.id', 'session.createdAt', 'session.apiSessionId', 'session.serviceId', 'session.type'])
    .select(['session.identityId', 'identity.roleAttributes', 'identity.name as identityName'])

const findSessionByToken = prepareQuery<[token: string], SessionRow>((db, token) =>
  selectSession(db).where('session.opaqueToken', '=', token),
)

const findSessionById = prepareQuery<[id: string], SessionRow>((db, id) =>
  selectSession(db).where('session.id', '=', id),
)

/**
 * Verifies the token of a client: what costs time, and comes before any transaction.
 * @throws RequestRefusedError for a signed token that is not valid, or if a session may have begun elsewhere and the log is out of reach
 */
export async function identifyClient(
  { accessTokens, catchUp, sessionTokens }: Pick<RightParts, 'accessTokens' | 'catchUp' | 'sessionTokens'>,
  db: Kysely<Database>,
  client: SessionClient,
): Promise<IdentifiedClient> {
  const reference = await sessionTokens.findReference(client.token)
  if (!reference) throw new RequestRefusedError('unknown-session', 'the token of the session is not valid')
  // It may have begun at another controller just now.
  if (catchUp && !(await findSession(db, reference)))
    await catchUp().catch(() => {
      // The log says already that it cannot be read.
      throw new RequestRefusedError('busy', 'the controller could not learn in time what the others have committed')
    })
  if (!isSignedToken(client.apiSessionToken)) return { ...client, reference }
  const accessToken = await accessTokens.findValid(client.apiSessionToken)
  if (!accessToken) throw new RequestRefusedError('unknown-api-session', 'the token of the API session is not valid')
  return { ...client, reference, signedApiSessionId: accessToken.apiSessionId }
}

/** Returns the session that a client refers to. A signed token has to say of it what it is. */
async function findSession(db: Kysely<Database>, reference: SessionReference): Promise<SessionRow | undefined> {
  if ('opaqueToken' in reference) return (await findSessionByToken(db, reference.opaqueToken))[0]
  const { id, apiSessionId, type } = reference.signed
  const [session] = await findSessionById(db, id)
  return session?.apiSessionId === apiSessionId && session.type === type ? session : undefined
}

/**
 * Decides whether a client may use a session so, by the present policies and posture. A session whose right was revoked does not
 * exist any more, also inside the transaction of another change.
 * @throws RequestRefusedError
 */
export async function requireSessionRight(
  { access, apiSessions, connected, policies }: RightParts,
  db: Kysely<Database>,
  use: SessionUse,
): Promise<SessionRight> {
  const { reference, type, routerId } = use
  const session = await findSession(db, reference)
  if (!session) throw new RequestRefusedError('unknown-session', 'the session does not exist')
  const { id: sessionId, apiSessionId, serviceId } = session
  const apiSession = apiSessions.get(apiSessionId)
  if (!apiSession) throw new RequestRefusedError('unknown-api-session', 'the API session of the session does not exist')
  await requireOwnApiSession(db, apiSessions, use, session)
  if (findOutstandingFactors(apiSession, policies.get(apiSession.identity.authPolicyId), []).totp)
    throw new RequestRefusedError('unknown-api-session', 'the API session owes a second factor')
  if (session.type !== type)
    throw new RequestRefusedError('wrong-session-type', `the session has the type ${session.type}, not ${type}`)
  const identity = { id: session.identityId, attributes: JSON.parse(session.roleAttributes) as string[] }
  // Routers of release 1 verify no access token, and judge no machine: what they ask for is not of a client that they admitted.
  if (apiSession.clientId !== null && !connected.get(routerId)?.hello.hasDataModel)
    throw new RequestRefusedError('router-not-permitted', 'the router does not serve sessions by OpenID Connect')
  const decision = access.decide({ identity, serviceId, type, apiSessionId })
  // The session is rejected as unknown: its client then asks for another one, and learns the reason.
  if (!decision.isAllowed) throw new RequestRefusedError('unknown-session', 'the session has lost its right')
  if (!access.isCommonRouter(identity, serviceId, routerId))
    throw new RequestRefusedError(
      'router-not-permitted',
      'policies do not open this router to the client and the service',
    )
  return { sessionId, apiSessionId, identity, identityName: session.identityName, serviceId }
}
