// The end of a session by its client: revocation (RFC 7009), and sign-out (OpenID Connect RP-Initiated Logout).
import type { Context } from '../../storage/transactions/context.ts'
import { CLIENT_IDS, type ClientId } from './clients.ts'
import { endSession } from './end-session.ts'
import { verifyGranted } from './granted-claims.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { appendParameters } from './redirect-uris.ts'
import { requireTokenRate } from './token-rate.ts'

/** The application that is registered for this scheme. */
const APP_SIGNED_OUT = 'openziti://auth/logout'

/**
 * Ends the session of an access token or a refresh token. Any other text has no effect, and is not an error.
 * @throws OAuthError if the token is of another client
 */
export async function revokeToken(
  parts: OpenIdParts,
  context: Context,
  { clientId, token }: { readonly clientId: ClientId; readonly token: string | undefined },
): Promise<void> {
  if (!token) throw new OAuthError('invalid_request', 'the token is missing')
  const grantedToken = await verifyGranted(parts, token)
  if (typeof grantedToken === 'string') return
  if (grantedToken.grant.clientId !== clientId) throw new OAuthError('invalid_client', 'the token is of another client')
  await endSessionOfToken(parts, context, grantedToken.apiSessionId)
}

/** The parameters of a sign-out, all of them optional. */
export interface SignOutParameters {
  readonly idTokenHint: string | undefined
  readonly clientId: string | undefined
  readonly postLogoutRedirectUri: string | undefined
  readonly state: string | undefined
}

/**
 * Ends the session that a token of it names, and returns where its client goes on; undefined if it names no place. A token that has
 * expired ends nothing: it may have been in a log for long.
 * @throws OAuthError
 */
export async function signOut(
  parts: OpenIdParts,
  context: Context,
  registeredUris: readonly string[],
  { idTokenHint, clientId, postLogoutRedirectUri, state }: SignOutParameters,
): Promise<string | undefined> {
  const hint = idTokenHint ? await readHint(parts, idTokenHint) : undefined
  if (hint?.clientId !== undefined && clientId && clientId !== hint.clientId)
    throw new OAuthError('invalid_request', 'the id_token_hint is of another client')
  const uri = hint || clientId ? postLogoutRedirectUri : undefined
  if (uri && uri !== APP_SIGNED_OUT && !registeredUris.includes(uri))
    throw new OAuthError('invalid_request', 'the post_logout_redirect_uri is not one of the client')
  if (hint?.apiSessionId !== undefined) await endSessionOfToken(parts, context, hint.apiSessionId)
  return uri ? appendParameters(uri, { state }) : undefined
}

/**
 * Ends a session for its client, which may present the token of one that has ended as often as it likes: that writes nothing.
 * @throws SERVER_TOO_MANY_REQUESTS
 */
async function endSessionOfToken(parts: OpenIdParts, context: Context, id: string): Promise<void> {
  const { apiSessions } = parts.auth
  // It may have begun at another controller just now.
  if (!apiSessions.get(id)) await parts.openIdConnect.requests.followOthers()
  const session = apiSessions.get(id)
  if (!session) return
  requireTokenRate(parts, context, session.identity)
  await endSession(parts, context, id)
}

interface SignOutHint {
  readonly apiSessionId?: string
  readonly clientId?: string
}

/**
 * The ID token, the access token or the refresh token of a session may be the hint. Those that clients show to routers are none: they
 * last longer than the others, and give no right here. @throws OAuthError if it is none of them
 */
async function readHint({ tokenKeys }: OpenIdParts, token: string): Promise<SignOutHint> {
  const claims = await tokenKeys.judge(token, CLIENT_IDS)
  if (claims === 'expired') return {}
  if (claims === 'invalid') throw new OAuthError('invalid_request', 'the id_token_hint is invalid')
  const { client_id: clientId, sid, z_asid: apiSessionId, z_t: kind } = claims
  const ownId = kind === undefined ? sid : kind === 'a' || kind === 'r' ? apiSessionId : undefined
  if (typeof ownId !== 'string') throw new OAuthError('invalid_request', 'the id_token_hint is of another kind')
  return { apiSessionId: ownId, clientId: String(clientId) }
}
