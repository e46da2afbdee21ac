// The exchange of a code for tokens (RFC 6749, section 4.1.3; RFC 7636, section 4.6).
import { hash } from 'node:crypto'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'
import { newToken } from '../../foundation/ids.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { toSignerId } from '../sign-in/authentication-methods.ts'
import { findProvenSigners } from '../sign-in/second-factors.ts'
import type { PendingAuthorization, RequestLogin } from './authorization-requests.ts'
import type { Grant, GrantedSession } from './claims.ts'
import type { ClientId } from './clients.ts'
import { endSession } from './end-session.ts'
import { issueTokens, requireGrantedSession, sessionEndedError, type TokenResponse } from './issue-tokens.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { findPendingFactors } from './request-sign-in.ts'
import { issueLoginCertificate } from './session-certificate.ts'

/** The parameters that a client sends with the code. */
export interface CodeParameters {
  readonly clientId: ClientId
  readonly code: string | undefined
  readonly redirectUri: string | undefined
  readonly codeVerifier: string | undefined
}

/** @throws OAuthError */
export async function redeemCode(
  parts: OpenIdParts,
  context: Context,
  parameters: CodeParameters,
): Promise<TokenResponse> {
  const { requests } = parts.openIdConnect
  const { code, redirectUri } = parameters
  if (!code) throw new OAuthError('invalid_request', 'the code is missing')
  if (!redirectUri) throw new OAuthError('invalid_request', 'the redirect_uri is missing')
  const request = requests.findByCode(code)
  if (!request?.login) throw new OAuthError('invalid_grant', `the code is unknown, or was used${requests.hint}`)
  const { login } = request
  requireBinding(request, parameters)
  if (request.isRedeemed) {
    // RFC 6749, section 4.1.2: one of both that used it has stolen it.
    await endSession(parts, context, login.apiSessionId)
    throw new OAuthError('invalid_grant', 'the code is unknown, or was used')
  }
  // At once, so that of several exchanges one succeeds.
  requests.redeem(request)
  try {
    return await issueForCode(parts, context, request, login, code)
  } catch (error) {
    // No other code leads to it, and without a token no client can end it.
    await endSession(parts, context, login.apiSessionId)
    throw error
  }
}

async function issueForCode(
  parts: OpenIdParts,
  context: Context,
  request: PendingAuthorization,
  login: RequestLogin,
  code: string,
): Promise<TokenResponse> {
  if (findPendingFactors(parts, request)) throw new OAuthError('invalid_grant', 'the sign-in is not complete')
  const jti = newToken()
  const refreshTokenId = request.scopes.includes('offline_access') ? jti : undefined
  await storeIssue(parts, login.apiSessionId, refreshTokenId)
  const session = await requireGrantedSession(parts, context, login.apiSessionId)
  const grant = toGrant(request, login, session, listSecondSigners(parts, login, session))
  const certificate = login.csr ? await issueLoginCertificate(parts, context, session.row, login.csr) : undefined
  const bound = certificate ? { ...grant, fingerprints: certificate.fingerprints } : grant
  const binding = { code, nonce: request.nonce }
  const response = await issueTokens(parts, session, bound, { refreshTokenId, jti, binding })
  return certificate ? { ...response, session_cert: certificate.pem } : response
}

/** @throws OAuthError if the code was issued to another client, for another URI, or by another challenge */
function requireBinding(request: PendingAuthorization, { clientId, redirectUri, codeVerifier }: CodeParameters): void {
  if (request.clientId !== clientId) throw new OAuthError('invalid_grant', 'the code is of another client')
  if (request.redirectUri !== redirectUri) throw new OAuthError('invalid_grant', 'the redirect_uri is another one')
  if (!codeVerifier) throw new OAuthError('invalid_request', 'the code_verifier is missing')
  const challenge = hash('sha256', codeVerifier, 'base64url')
  if (!isEqualInConstantTime(challenge, request.codeChallenge))
    throw new OAuthError('invalid_grant', 'the code_verifier is wrong')
}

/** Stores that a session has tokens from now on, and how long. @throws OAuthError if it has ended */
async function storeIssue(parts: OpenIdParts, apiSessionId: string, refreshTokenId: string | undefined): Promise<void> {
  const { auth, contexts, entities } = parts
  const { accessMs, refreshMs } = auth.apiSessions.lifetime
  await contexts.create({ kind: 'system' }).write(async (tx) => {
    const session = await find(tx, apiSessions, apiSessionId)
    if (!session) throw sessionEndedError()
    const endsAt = tx.clock.now() + (refreshTokenId === undefined ? accessMs : refreshMs)
    const values = { hasTokens: true, endsAt, refreshTokenId: refreshTokenId ?? null }
    await entities.update(tx, apiSessions, session, values, { audit: 'none' })
  })
}

/** The signers whose tokens came with the credential, besides the one by which the identity signed in. */
function listSecondSigners({ auth, clock }: OpenIdParts, login: RequestLogin, { row, live }: GrantedSession): string[] {
  const proven = findProvenSigners(login.externalTokens, live.identity, auth.signers.directory, clock.now())
  return [...new Set(proven)].filter((id) => id !== toSignerId(row.authenticatorId))
}

function toGrant(
  { clientId, issuer, scopes }: PendingAuthorization,
  { envInfo, remoteAddress, sdkInfo }: RequestLogin,
  { row: { certFingerprint } }: GrantedSession,
  signerIds: readonly string[],
): Grant {
  const fingerprints = certFingerprint === null ? [] : [certFingerprint]
  return {
    ...{ clientId, fingerprints, issuer, remoteAddress, scopes, signerIds },
    envInfo: envInfo ?? null,
    sdkInfo: sdkInfo ?? null,
  }
}
