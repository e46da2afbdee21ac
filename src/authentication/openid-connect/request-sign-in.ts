// The sign-in of an authorization request: by the steps of every sign-in, with an API session that owes what is still pending.

import { errors } from '../../foundation/errors.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { callerFromApiSession } from '../api-sessions/callers.ts'
import type { ClientInfo } from '../api-sessions/create-api-session.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { MfaOwner } from '../mfa/mfa-secrets.ts'
import { passMfa } from '../mfa/own-mfa.ts'
import type { Method } from '../sign-in/authentication-methods.ts'
import { signIn } from '../sign-in/flow.ts'
import { findOutstandingFactors, findProvenSigners, type OutstandingFactors } from '../sign-in/second-factors.ts'
import type { Credentials } from '../sign-in/sign-in-attempt.ts'
import type { PendingAuthorization } from './authorization-requests.ts'
import { endSession } from './end-session.ts'
import type { OpenIdParts } from './open-id-parts.ts'

/** The report that a client sends with its credential. */
export interface ReportedInfo extends Omit<ClientInfo, 'clientId'> {
  readonly csr?: string | undefined
  readonly remoteAddress: string
}

/**
 * Signs the client of a request in. An earlier sign-in of the request ends, with all that it had passed.
 * @throws INVALID_AUTH, COULD_NOT_VALIDATE, SERVER_TOO_MANY_REQUESTS
 */
export async function signInToRequest(
  parts: OpenIdParts,
  context: Context,
  request: PendingAuthorization,
  method: Method,
  credentials: Credentials,
  { csr, remoteAddress, ...info }: ReportedInfo,
): Promise<void> {
  const { requests } = parts.openIdConnect
  const clientInfo = { configTypes: request.configTypes, ...info, clientId: request.clientId }
  const { apiSession, externalTokens } = await signIn(parts, context, method, credentials, clientInfo)
  const earlier = request.login
  // Its code may have been redeemed meanwhile, or its time be over.
  const isUnderWay = requests.find(request.id) === request
  if (isUnderWay) {
    const { envInfo, sdkInfo } = info
    requests.setLogin(request, { apiSessionId: apiSession.id, csr, envInfo, externalTokens, remoteAddress, sdkInfo })
  }
  const endedId = isUnderWay ? earlier?.apiSessionId : apiSession.id
  if (endedId !== undefined) await endSession(parts, context, endedId)
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
  request: PendingAuthorization,
): OutstandingFactors | 'primary' | undefined {
  const { auth, clock } = parts
  const session = findSession(parts, request)
  if (!session) return 'primary'
  const tokens = request.login?.externalTokens ?? []
  const provenSigners = findProvenSigners(tokens, session.identity, auth.signers.directory, clock.now())
  const pending = findOutstandingFactors(session, auth.policies.get(session.identity.authPolicyId), provenSigners)
  return pending.totp || pending.signer !== undefined ? pending : undefined
}

/**
 * Adds the token of an external signer to a sign-in that owes it as second factor. Returns false if it owes none, or is not signed in.
 * @throws INVALID_AUTH if the token is not one of the identity
 */
export async function addExternalToken(
  parts: OpenIdParts,
  request: PendingAuthorization,
  token: string,
): Promise<boolean> {
  const { login } = request
  const pending = findPendingFactors(parts, request)
  if (!login || pending === undefined || pending === 'primary' || pending.signer === undefined) return false
  const { verified } = await parts.auth.signers.verifier.verifyAll(parts.contexts, [token])
  // Another sign-in of the request may have begun meanwhile.
  if (request.login !== login) return false
  const proven = { ...login, externalTokens: [...login.externalTokens, ...verified] }
  const remaining = findPendingFactors(parts, { ...request, login: proven })
  if (remaining !== undefined && remaining !== 'primary' && remaining.signer !== undefined) throw errors.INVALID_AUTH()
  request.login = proven
  return true
}
