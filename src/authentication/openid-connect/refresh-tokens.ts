// The use of refresh tokens: each is exchanged for the next one (RFC 9700, section 4.14.2).
//
// A token that was exchanged stays good for a minute, because clients send a request again, or send several at a time; all of them
// receive the same next token. A use after that means that one of its two holders has stolen it, and ends the session. The row of the
// session holds the ids, so that a restart changes nothing about them. The minute is one of the age of the session, so that a clock that
// is set neither opens nor closes it.
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { newToken } from '../../foundation/ids.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { toSignerId } from '../sign-in/authentication-methods.ts'
import { findLastingSigners, findOutstandingFactors } from '../sign-in/second-factors.ts'
import type { GrantedSession } from './claims.ts'
import type { ClientId } from './clients.ts'
import { type GrantedToken, verifyGranted } from './granted-claims.ts'
import { requireGrantedSession } from './issue-tokens.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { provesPossession } from './proof-of-possession.ts'
import { requireTokenRate } from './token-rate.ts'

const GRACE_MS = 60_000
// A client that exchanges more often within the grace has used the others.
const MAX_FORMER = 8

/** A token that a client presents, with what it proves. */
export interface PresentedToken {
  readonly clientId: ClientId
  readonly token: string
  readonly peer: PeerCertificates
}

/** @throws OAuthError for a token that is not accepted as a refresh token of the client */
export async function requireRefreshToken(parts: OpenIdParts, presented: PresentedToken): Promise<GrantedToken> {
  const grantedToken = await verifyGranted(parts, presented.token)
  if (grantedToken === 'expired') throw new OAuthError('invalid_grant', 'the refresh token has expired')
  if (grantedToken === 'invalid')
    throw new OAuthError('invalid_grant', 'the refresh token is not one of this controller')
  if (grantedToken === 'of another kind' || grantedToken.kind !== 'r')
    throw new OAuthError('invalid_grant', 'this is not a refresh token')
  if (parts.openIdConnect.revokedTokens.has(grantedToken.jti)) throw tokenRevokedError()
  return grantedToken
}

const tokenRevokedError = () => new OAuthError('invalid_grant', 'the refresh token was revoked')

/**
 * Returns the session of a token if its client may go on with it now.
 * @throws OAuthError if the client is another one, holds none of its certificates, or has lost its right
 */
export async function requireContinuation(
  parts: OpenIdParts,
  context: Context,
  { apiSessionId, grant }: GrantedToken,
  { clientId, peer }: PresentedToken,
): Promise<GrantedSession> {
  const { auth, clock } = parts
  if (grant.clientId !== clientId) throw new OAuthError('invalid_grant', 'the token is of another client')
  const session = await requireGrantedSession(parts, context, apiSessionId)
  if (!provesPossession(parts, peer, grant, session.live, clock.now()))
    throw new OAuthError('access_denied', 'the client certificate is not one of the token')
  if (owesFactor(parts, session))
    throw new OAuthError('invalid_grant', 'the session owes a second factor: sign in again')
  requireTokenRate(parts, context, session.live.identity)
  auth.apiSessions.useById(apiSessionId, clock.now())
  return session
}

/**
 * Whether the policy demands a factor now that the sign-in did not have, or that it had from a signer which does not vouch for the identity
 * any more: only another sign-in has a step for it.
 */
function owesFactor({ auth }: OpenIdParts, { live, policy, row }: GrantedSession): boolean {
  const secondSigners = findLastingSigners(row.authorization?.secondTokens ?? [], live.identity, auth.signers.directory)
  const primarySigner = toSignerId(row.authenticatorId)
  const provenSigners = primarySigner === null ? secondSigners : [...secondSigners, primarySigner]
  const { totp, signer } = findOutstandingFactors(live, policy, provenSigners)
  return totp || signer !== undefined
}

/**
 * Uses a refresh token in the context of its session, and returns the id of the token that its client goes on with: the next one if it `isExchanged`.
 * @throws OAuthError if one of both was revoked, or it was exchanged before the grace; the session ends then
 */
export async function useRefreshToken(
  parts: OpenIdParts,
  context: Context,
  { apiSessionId, jti }: GrantedToken,
  { isExchanged }: { readonly isExchanged: boolean },
): Promise<string> {
  const refreshTokenId = await context.write((tx) => exchange(parts, tx, apiSessionId, jti, isExchanged))
  if (refreshTokenId === undefined)
    throw new OAuthError('invalid_grant', 'the refresh token was revoked, because it was used before')
  return refreshTokenId
}

/**
 * Returns undefined if the session has ended, or ends now because the token was used again.
 * @throws OAuthError if the token was revoked meanwhile, or the one that it was exchanged for
 */
async function exchange(
  { auth, entities, openIdConnect }: OpenIdParts,
  tx: WriteContext,
  apiSessionId: string,
  jti: string,
  isExchanged: boolean,
): Promise<string | undefined> {
  const session = await find(tx, apiSessions, apiSessionId)
  if (!session) return undefined
  const { revokedTokens } = openIdConnect
  if (revokedTokens.isRevokedIn(tx, jti)) throw tokenRevokedError()
  const now = tx.clock.now()
  const age = now - (auth.apiSessions.get(apiSessionId)?.authenticatedAt ?? session.authenticatedAt)
  // Small settings of the clock do not shift the session, so that its age may fall a little.
  const recent = session.formerRefreshTokens.filter(({ exchangedAtAge }) => Math.abs(age - exchangedAtAge) < GRACE_MS)
  if (session.refreshTokenId !== jti) {
    const { refreshTokenId: nextId } = session
    if (nextId !== null && recent.some(({ id }) => id === jti)) {
      if (revokedTokens.isRevokedIn(tx, nextId)) throw tokenRevokedError()
      return nextId
    }
    await auth.apiSessions.revoke(tx, [apiSessionId])
    return undefined
  }
  if (!isExchanged) return jti
  const refreshTokenId = newToken()
  const formerRefreshTokens = [{ id: jti, exchangedAtAge: age }, ...recent].slice(0, MAX_FORMER)
  const values = { refreshTokenId, formerRefreshTokens, endsAt: now + auth.apiSessions.lifetime.refreshMs }
  await entities.update(tx, apiSessions, session, values, { audit: 'none' })
  return refreshTokenId
}
