// The sign-in of an authorization request: by the steps of every sign-in, with an API session that owes what is still pending.

import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { errors } from '../../foundation/errors.ts'
import { find } from '../../storage/entities/entities.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { callerFromApiSession, createActorContext } from '../api-sessions/callers.ts'
import type { ClientInfo } from '../api-sessions/create-api-session.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { MfaOwner } from '../mfa/mfa-secrets.ts'
import { passMfa } from '../mfa/own-mfa.ts'
import {
  AuthenticationError,
  type Method,
  SignInRefusedError,
  toSignerAuthenticatorId,
} from '../sign-in/authentication-methods.ts'
import { recordFailedSignIn } from '../sign-in/failed-sign-ins.ts'
import { signIn } from '../sign-in/flow.ts'
import { findOutstandingFactors, findProvenSigners, type OutstandingFactors } from '../sign-in/second-factors.ts'
import type { Credentials } from '../sign-in/sign-in-attempt.ts'
import { toAuthenticationError } from '../sign-in/steps/verify-external-token.ts'
import type { VerifiedTokens } from '../signers/token-verifier.ts'
import type { PendingAuthorization } from './authorization-requests.ts'
import type { OpenIdParts } from './open-id-parts.ts'

/** The report that a client sends with its credential. */
export interface ReportedInfo extends Omit<ClientInfo, 'clientId'> {
  readonly csr?: string | undefined
  readonly remoteAddress: string
}

/**
 * Signs the client of a request in, and returns the request as it is then. An earlier sign-in of it ends, with all that it had passed.
 * @throws INVALID_AUTH, COULD_NOT_VALIDATE, SERVER_TOO_MANY_REQUESTS, UNAUTHORIZED if the time of the request is over
 */
export async function signInToRequest(
  parts: OpenIdParts,
  context: Context,
  request: PendingAuthorization,
  method: Method,
  credentials: Credentials,
  { csr, remoteAddress, ...info }: ReportedInfo,
): Promise<PendingAuthorization> {
  const { browser, clientId, codeChallenge, configTypes, nonce, redirectUri, requestId, scopes } = request
  const { envInfo, sdkInfo } = info
  const pending = { browser, csr, envInfo, nonce, remoteAddress, scopes, sdkInfo }
  const signedIn = { id: requestId, authorization: { codeChallenge, redirectUri }, pending }
  const clientInfo = { configTypes, ...info, clientId, request: signedIn }
  const { apiSession, externalTokens } = await signIn(parts, context, method, credentials, clientInfo)
  return { ...request, login: { ...pending, externalTokens, apiSessionId: apiSession.id } }
}

/** Passes the second factor by a code. @throws MFA_NOT_ENROLLED, MFA_INVALID_TOKEN, SERVER_TOO_MANY_REQUESTS */
export async function passTotp(
  parts: OpenIdParts,
  context: Context,
  request: PendingAuthorization,
  code: string,
): Promise<void> {
  const session = findSession(parts, request)
  if (!session) throw errors.UNAUTHORIZED({ message: 'the sign-in has to begin with a credential' })
  await passMfa(parts, createSessionContext(parts, context, request, session), toOwner(session), code)
}

/** Returns the API session of the sign-in of a request; undefined if there is none, or it has ended. */
export function findSession({ auth }: OpenIdParts, { login }: PendingAuthorization): LiveApiSession | undefined {
  return login && auth.apiSessions.get(login.apiSessionId)
}

/** The context of the session of a request, which may owe a factor. */
export function createSessionContext(
  { auth, clock, contexts }: OpenIdParts,
  { origin }: Context,
  { login }: PendingAuthorization,
  session: LiveApiSession,
): Context {
  return contexts.create(callerFromApiSession(auth, session, login?.externalTokens ?? [], clock.now()), origin)
}

export function toOwner({ id, identity }: LiveApiSession): MfaOwner {
  return { identityId: identity.id, apiSessionId: id }
}

/** Returns the factors that a request still owes. Undefined if nothing; `primary` if it has to begin, or its session has ended. */
export function findPendingFactors(
  parts: OpenIdParts,
  { login }: PendingAuthorization,
): OutstandingFactors | 'primary' | undefined {
  return login ? findSessionFactors(parts, login.apiSessionId, login.externalTokens) : 'primary'
}

/** The same for the session of a sign-in, and the tokens that came with that. */
export function findSessionFactors(
  { auth, clock }: OpenIdParts,
  apiSessionId: string,
  externalTokens: readonly VerifiedToken[],
): OutstandingFactors | 'primary' | undefined {
  const session = auth.apiSessions.get(apiSessionId)
  if (!session) return 'primary'
  const provenSigners = findProvenSigners(externalTokens, session.identity, auth.signers.directory, clock.now())
  const pending = findOutstandingFactors(session, auth.policies.get(session.identity.authPolicyId), provenSigners)
  return pending.totp || pending.signer !== undefined ? pending : undefined
}

/**
 * Adds the token of an external signer to a sign-in that owes it as second factor, and returns the request as it is then; undefined if it
 * owes none, or is not signed in.
 * @throws INVALID_AUTH if the token is not one of the identity
 */
export async function addExternalToken(
  parts: OpenIdParts,
  requestContext: Context,
  request: PendingAuthorization,
  token: string,
): Promise<PendingAuthorization | undefined> {
  const { login } = request
  const pending = findPendingFactors(parts, request)
  if (!login || pending === undefined || pending === 'primary' || pending.signer === undefined) return undefined
  const verifiedTokens = await parts.auth.signers.verifier.verifyAll(parts.contexts, [token])
  const { verified } = verifiedTokens
  const proven = { ...request, login: { ...login, externalTokens: [...login.externalTokens, ...verified] } }
  const remaining = findPendingFactors(parts, proven)
  if (remaining !== undefined && remaining !== 'primary' && remaining.signer !== undefined)
    throw await recordRefusedFactor(parts, requestContext, request, verifiedTokens, remaining.signer)
  const { apiSessionId, externalTokens } = proven.login
  const live = findSession(parts, proven)
  if (!live) return undefined
  const context = createActorContext(parts.contexts, requestContext, apiSessionId, live.identity)
  const isStored = await context.write(async (tx) => {
    const session = await find(tx, apiSessions, apiSessionId)
    // Another sign-in of the request may have begun meanwhile, or its tokens be issued.
    if (!session?.authorization?.pending) return false
    const authorization = {
      ...session.authorization,
      pending: { ...session.authorization.pending, externalTokens },
    }
    await parts.entities.update(tx, apiSessions, session, { authorization }, { audit: 'none' })
    return true
  })
  return isStored ? proven : undefined
}

/** Records that a token is not the second factor that a request owes, and returns the refusal. */
async function recordRefusedFactor(
  parts: OpenIdParts,
  requestContext: Context,
  request: PendingAuthorization,
  { rejected: [tokenError], verified: [token] }: VerifiedTokens,
  signerId: string,
): Promise<SignInRefusedError> {
  const session = findSession(parts, request)
  const context = session ? createSessionContext(parts, requestContext, request, session) : requestContext
  const isOfSigner = token?.signerId === signerId
  const error = tokenError
    ? toAuthenticationError(tokenError)
    : isOfSigner
      ? new AuthenticationError('UNKNOWN_CREDENTIAL', 'the token names another identity')
      : new AuthenticationError('SIGNER_NOT_ALLOWED', `the token is not one of the signer ${signerId}`)
  const method = 'ext-jwt'
  await recordFailedSignIn(parts, { context, method, authenticator: { id: toSignerAuthenticatorId(signerId) } }, error)
  return new SignInRefusedError(method, error)
}
