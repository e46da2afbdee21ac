// The exchange of a code for tokens (RFC 6749, section 4.1.3; RFC 7636, section 4.6).
import { hash } from 'node:crypto'
import { apiSessions, type PendingTokens, type StoredAuthorization } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'
import { ControllerError } from '../../foundation/errors.ts'
import { newToken } from '../../foundation/ids.ts'
import { find } from '../../storage/entities/entities.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { createActorContext } from '../api-sessions/callers.ts'
import { toSignerId } from '../sign-in/authentication-methods.ts'
import { findProvenSigners } from '../sign-in/second-factors.ts'
import type { Grant, GrantedSession } from './claims.ts'
import type { ClientId } from './clients.ts'
import { endSession, endStolenSession } from './end-session.ts'
import { issueTokens, requireGrantedSession, sessionEndedError, type TokenResponse } from './issue-tokens.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'
import { findSessionFactors } from './request-sign-in.ts'
import { issueLoginCertificate, readLoginRequest } from './session-certificate.ts'
import { requireTokenRate } from './token-rate.ts'

/** The parameters that a client sends with the code. */
export interface CodeParameters {
  readonly clientId: ClientId
  readonly code: string | undefined
  readonly redirectUri: string | undefined
  readonly codeVerifier: string | undefined
  /** The issuer for the request. */
  readonly issuer: string
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
  const carried = requests.readCode(code)
  const session = carried && (await findSignIn(parts, context, carried.apiSessionId))
  if (!carried || !session?.authorization) throw unknownCodeError()
  requireBinding(session.clientId, session.authorization, parameters)
  const { apiSessionId, isExpired } = carried
  const { pending } = session.authorization
  if (!pending) return endUsedTwice(parts, context, apiSessionId)
  if (isExpired) throw unknownCodeError()
  try {
    return await issueForCode(parts, context, { apiSessionId, pending, clientId: parameters.clientId }, parameters)
  } catch (error) {
    const isUnused = error instanceof ControllerError && error.isTemporary && (await isPending(context, apiSessionId))
    // Without a token no client can end it, and of two uses of a code one is of a thief.
    if (!isUnused) await endSession(parts, context, apiSessionId)
    throw error
  }
}

const unknownCodeError = () => new OAuthError('invalid_grant', 'the code is unknown, or was used')

/** Returns the session of a sign-in, as other controllers know it if this one does not know that the sign-in is complete. */
async function findSignIn(
  parts: OpenIdParts,
  context: Context,
  id: string,
): Promise<Entity<typeof apiSessions> | undefined> {
  const session = await find(context, apiSessions, id)
  const { pending } = session?.authorization ?? {}
  if (session && (!pending || !findSessionFactors(parts, id, pending.externalTokens))) return session
  await parts.openIdConnect.requests.followOthers()
  return find(context, apiSessions, id)
}

/** Whether the code of a session can still be redeemed, as far as this controller knows. */
async function isPending(context: Context, id: string): Promise<boolean> {
  const session = await find(context, apiSessions, id)
  return Boolean(session?.authorization?.pending)
}

/** RFC 6749, section 4.1.2: one of both that used the code has stolen it. @throws OAuthError */
async function endUsedTwice(parts: OpenIdParts, context: Context, apiSessionId: string): Promise<never> {
  await endStolenSession(parts, context, apiSessionId)
  throw unknownCodeError()
}

interface SignIn {
  readonly apiSessionId: string
  readonly clientId: ClientId
  readonly pending: PendingTokens
}

async function issueForCode(
  parts: OpenIdParts,
  context: Context,
  signIn: SignIn,
  { code = '', issuer }: CodeParameters,
): Promise<TokenResponse> {
  const { apiSessionId, pending } = signIn
  if (findSessionFactors(parts, apiSessionId, pending.externalTokens))
    throw new OAuthError('invalid_grant', 'the sign-in is not complete')
  const identity = parts.auth.apiSessions.get(apiSessionId)?.identity
  if (!identity) throw sessionEndedError()
  requireTokenRate(parts, context, identity)
  const request = pending.csr ? readLoginRequest(pending.csr) : undefined
  const ownContext = createActorContext(parts.contexts, context, apiSessionId, identity)
  const jti = newToken()
  const refreshTokenId = pending.scopes.includes('offline_access') ? jti : undefined
  if (!(await storeIssue(parts, ownContext, apiSessionId, refreshTokenId)))
    return endUsedTwice(parts, context, apiSessionId)
  const session = await requireGrantedSession(parts, context, apiSessionId)
  const grant = toGrant(signIn, issuer, session, listSecondSigners(parts, pending, session))
  // The code is used up: the queue of writes must not refuse what follows.
  const system = parts.contexts.create({ kind: 'system' }, context.origin)
  const certificate = request && (await issueLoginCertificate(parts, system, session.row, request))
  const bound = certificate ? { ...grant, fingerprints: certificate.fingerprints } : grant
  const binding = { code, nonce: pending.nonce }
  const response = await issueTokens(parts, session, bound, { refreshTokenId, jti, binding })
  return certificate ? { ...response, session_cert: certificate.pem } : response
}

/** @throws OAuthError if the code was issued to another client, for another URI, or by another challenge */
function requireBinding(
  ownClientId: string | null,
  { codeChallenge, redirectUri: ownRedirectUri }: StoredAuthorization,
  { clientId, redirectUri, codeVerifier }: CodeParameters,
): void {
  if (ownClientId !== clientId) throw new OAuthError('invalid_grant', 'the code is of another client')
  if (ownRedirectUri !== redirectUri) throw new OAuthError('invalid_grant', 'the redirect_uri is another one')
  if (!codeVerifier) throw new OAuthError('invalid_request', 'the code_verifier is missing')
  const challenge = hash('sha256', codeVerifier, 'base64url')
  if (!isEqualInConstantTime(challenge, codeChallenge))
    throw new OAuthError('invalid_grant', 'the code_verifier is wrong')
}

/**
 * Stores that a session has tokens from now on, and how long. Of several uses of a code, at whatever controllers, it lets one through:
 * returns false for the others.
 * @throws OAuthError if the session has ended
 */
async function storeIssue(
  { auth, entities }: OpenIdParts,
  context: Context,
  apiSessionId: string,
  refreshTokenId: string | undefined,
): Promise<boolean> {
  const { accessMs, refreshMs } = auth.apiSessions.lifetime
  return context.write(async (tx) => {
    const session = await find(tx, apiSessions, apiSessionId)
    if (!session) throw sessionEndedError()
    if (!session.authorization?.pending) return false
    const endsAt = tx.clock.now() + (refreshTokenId === undefined ? accessMs : refreshMs)
    const primarySigner = toSignerId(session.authenticatorId)
    const { externalTokens } = session.authorization.pending
    const secondTokens = externalTokens.filter(({ signerId }) => signerId !== primarySigner)
    const authorization = { ...session.authorization, pending: null, secondTokens }
    const values = { authorization, hasTokens: true, endsAt, refreshTokenId: refreshTokenId ?? null }
    await entities.update(tx, apiSessions, session, values, { audit: 'none' })
    return true
  })
}

/** The signers whose tokens came with the credential, besides the one by which the identity signed in. */
function listSecondSigners(
  { auth, clock }: OpenIdParts,
  { externalTokens }: PendingTokens,
  { row, live }: GrantedSession,
): string[] {
  const proven = findProvenSigners(externalTokens, live.identity, auth.signers.directory, clock.now())
  return [...new Set(proven)].filter((id) => id !== toSignerId(row.authenticatorId))
}

function toGrant(
  { clientId, pending }: SignIn,
  issuer: string,
  { row: { certFingerprint } }: GrantedSession,
  signerIds: readonly string[],
): Grant {
  const { envInfo, remoteAddress, scopes, sdkInfo } = pending
  const fingerprints = certFingerprint === null ? [] : [certFingerprint]
  return {
    ...{ clientId, fingerprints, issuer, remoteAddress, scopes, signerIds },
    envInfo: envInfo ?? null,
    sdkInfo: sdkInfo ?? null,
  }
}
