// Issues the tokens of an API session that began by OpenID Connect.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import {
  type Grant,
  type GrantedSession,
  type IdTokenBinding,
  makeIdClaims,
  makeTokenClaims,
  toSeconds,
} from './claims.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'

/** The members of a successful response of the token endpoint. */
export interface TokenResponse {
  readonly access_token: string
  readonly token_type: 'Bearer'
  readonly expires_in: number
  readonly scope: string
  readonly id_token: string
  readonly refresh_token?: string
  /** PEM of a certificate that the client has requested, with its issuer. */
  readonly session_cert?: string
}

/** Returns the session of a grant as it is now. @throws OAuthError if it has ended */
export async function requireGrantedSession(
  { auth }: OpenIdParts,
  context: Pick<Context, 'db'>,
  apiSessionId: string,
): Promise<GrantedSession> {
  const row = await find(context, apiSessions, apiSessionId)
  const live = auth.apiSessions.get(apiSessionId)
  if (!row || !live) throw sessionEndedError()
  return { row, live, policy: auth.policies.get(live.identity.authPolicyId) }
}

export const sessionEndedError = () => new OAuthError('invalid_grant', 'the session was revoked, or has ended')

/** The tokens that a client receives. */
interface IssuedTokens {
  /** The id of the access token. */
  readonly jti: string
  /** The id of the refresh token; undefined if the client receives none. */
  readonly refreshTokenId: string | undefined
  readonly binding?: IdTokenBinding
  /** The end of the access token at the latest, in seconds. */
  readonly endsAt?: number
}

export async function issueTokens(
  { auth, clock, config, contexts, tokenKeys }: OpenIdParts,
  session: GrantedSession,
  grant: Grant,
  { refreshTokenId, jti, binding = {}, endsAt = Number.POSITIVE_INFINITY }: IssuedTokens,
): Promise<TokenResponse> {
  await tokenKeys.ensureKey(contexts.create({ kind: 'system' }))
  const issuedAt = toSeconds(clock.now())
  const { lifetime } = auth.apiSessions
  // Routers follow the token alone: it must not outlive the session.
  const { authenticatedAt, basis, endsAt: tokensEndAt } = session.live
  const sessionEnd = toSeconds(Math.min(authenticatedAt + lifetime.getMaxAgeMs(basis.method), tokensEndAt ?? 0))
  const times = { issuedAt, expiresAt: Math.min(issuedAt + toSeconds(lifetime.accessMs), endsAt, sessionEnd) }
  const idTimes = { issuedAt, expiresAt: issuedAt + toSeconds(config['oidc.idTokenLifetime']) }
  const access = makeTokenClaims(session, grant, { type: 'a', jti, ...times }, auth.extensionRequests)
  const accessToken = await tokenKeys.sign(access)
  const idToken = await tokenKeys.sign(makeIdClaims(session, grant, idTimes, { ...binding, accessToken }))
  const response = {
    access_token: accessToken,
    token_type: 'Bearer',
    expires_in: times.expiresAt - issuedAt,
    scope: grant.scopes.join(' '),
    id_token: idToken,
  } as const
  if (refreshTokenId === undefined) return response
  const expiresAt = Math.min(issuedAt + toSeconds(lifetime.refreshMs), sessionEnd)
  const refresh = { type: 'r', jti: refreshTokenId, issuedAt, expiresAt } as const
  return {
    ...response,
    refresh_token: await tokenKeys.sign(makeTokenClaims(session, grant, refresh, auth.extensionRequests)),
  }
}
