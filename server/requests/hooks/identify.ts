// Determines the caller and the dialect of a request, before any other check.

import type { IncomingMessage } from 'node:http'
import type { TLSSocket } from 'node:tls'
import type { FastifyRequest } from 'fastify'
import { isSignedToken } from '../../../src/access/sessions/session-tokens.ts'
import {
  callerFromApiSession,
  callerFromToken,
  refreshCaller,
} from '../../../src/authentication/api-sessions/callers.ts'
import type { LiveApiSession } from '../../../src/authentication/api-sessions/live-api-sessions.ts'
import type { AccessToken } from '../../../src/authentication/openid-connect/access-tokens.ts'
import { provesSession } from '../../../src/authentication/openid-connect/proof-of-possession.ts'
import type { Controller } from '../../../src/controller/controller.ts'
import { isMachineToken } from '../../../src/definitions/resources/tokens.ts'
import type { Instant } from '../../../src/foundation/clock.ts'
import type { Dialect } from '../../../src/settings/listener-settings.ts'
import type { VerifiedToken } from '../../../src/storage/external-tokens.ts'
import type { Caller } from '../../../src/storage/transactions/context.ts'
import { detectSignInDialect, readSessionHeader } from '../../api/dialects.ts'
import { getConnection } from '../../connections/http-connection.ts'
import { SocketCertificates } from '../../connections/socket-certificates.ts'
import { getListener, readBearerTokens } from '../requests.ts'

/** Sets the state of a request, and then calls back: at once, unless tokens have to be verified. */
export type Identify = (request: FastifyRequest, done: (failure?: Error) => void) => void

/** @param trusted the caller of an in-process transport, which no header can claim to be */
export function identify(controller: Controller, trusted: Caller | undefined): Identify {
  const { auth, clock } = controller
  return (request, done) => {
    const { raw, routeOptions } = request
    const header = readSessionHeader(raw.headers)
    const dialect = header.dialect ?? getListener(raw)?.dialect ?? 'native'
    const now = clock.now()
    const caller = trusted ?? callerFromApiSession(auth, undefined, NO_TOKENS, now)
    request.state = {
      route: routeOptions.config,
      dialect,
      caller,
      query: NO_PARAMETERS,
      contentType: 'application/json',
    }
    if (trusted) return done()
    // A session header counts also if it names no session.
    if (header.dialect !== undefined || raw.headers.authorization === undefined) {
      const session = header.token === undefined ? undefined : auth.apiSessions.use(header.token, now)
      return identifySession(controller, request, session, now, done)
    }
    const bearerTokens = readBearerTokens(raw)
    const secret = bearerTokens.find(isMachineToken)
    if (secret !== undefined) return identifyMachine(controller, request, secret, done)
    const accessToken = findVerified(controller, raw, bearerTokens)
    if (accessToken) return identifyBearer(controller, request, accessToken, done)
    const { accessTokens } = controller.openIdConnect
    const candidate = bearerTokens.find((token) => accessTokens.isCandidate(token))
    if (candidate === undefined) {
      // Tokens of other issuers are for other uses.
      const isReadable = bearerTokens.every((token) => token === '' || isSignedToken(token))
      request.state.tokenFault = isReadable ? 'missing' : 'invalid'
      return done()
    }
    accessTokens.verify(candidate).then((verified) => {
      if (typeof verified !== 'string') return identifyBearer(controller, request, verified, done)
      request.state.tokenFault = verified
      done()
    }, done)
  }
}

const NO_TOKENS: readonly never[] = []
const NO_PARAMETERS = {}

/** Nearly every request of a connection has the same token as the one before: to compare texts is cheaper than to compute a digest. */
function findVerified(
  { clock, openIdConnect }: Controller,
  { socket }: IncomingMessage,
  bearerTokens: readonly string[],
): AccessToken | undefined {
  const connection = getConnection(socket)
  const { lastAccessToken } = connection
  for (const token of bearerTokens) {
    if (token === lastAccessToken?.token && clock.now() < lastAccessToken.expiresAt) return lastAccessToken
    const verified = openIdConnect.accessTokens.findVerified(token)
    connection.lastAccessToken = verified
    if (verified) return verified
  }
  return undefined
}

/** Sets the caller of an access token, if its session lasts, and its client holds the certificate that it is bound to. */
function identifyBearer(
  controller: Controller,
  request: FastifyRequest,
  accessToken: AccessToken,
  done: (failure?: Error) => void,
): void {
  const { auth, clock } = controller
  const now = clock.now()
  const session = auth.apiSessions.get(accessToken.apiSessionId)
  const peer = new SocketCertificates(request.raw.socket as TLSSocket)
  const isRevoked = controller.openIdConnect.revokedTokens.has(accessToken.jti)
  if (!session?.clientId || isRevoked || !provesSession(controller, peer, accessToken, session, now)) {
    request.state.tokenFault = 'invalid'
    done()
    return
  }
  auth.apiSessions.useById(session.id, now)
  request.state.accessToken = accessToken
  request.state.dialect = toSessionDialect(request.state.dialect, accessToken)
  identifySession(controller, request, session, now, done)
}

/** Returns the dialect in which the session began. */
function toSessionDialect(dialect: Dialect, { sdkType }: AccessToken): Dialect {
  return detectSignInDialect({}, { type: sdkType }, dialect)
}

function identifySession(
  controller: Controller,
  request: FastifyRequest,
  session: LiveApiSession | undefined,
  now: Instant,
  done: (failure?: Error) => void,
): void {
  const caller = callerFromApiSession(controller.auth, session, NO_TOKENS, now, request.state.accessToken?.jti)
  identifyHolder(controller, request, caller, session?.identity, done)
}

/** Sets the caller of the token of a machine. */
function identifyMachine(
  controller: Controller,
  request: FastifyRequest,
  secret: string,
  done: (failure?: Error) => void,
): void {
  const { auth, clock } = controller
  const machineToken = auth.machineTokens.use(secret)
  if (!machineToken) request.state.tokenFault = 'invalid'
  const caller = callerFromToken(auth, machineToken, NO_TOKENS, clock.now())
  identifyHolder(controller, request, caller, machineToken?.identity, done)
}

/** Sets a caller, with the external tokens of the request if its auth policy requires one. */
function identifyHolder(
  controller: Controller,
  request: FastifyRequest,
  caller: Caller,
  identity: { readonly authPolicyId: string } | undefined,
  done: (failure?: Error) => void,
): void {
  const { auth, clock } = controller
  const { state } = request
  state.caller = caller
  const externalTokens = identity && requiresToken(controller, identity) ? readExternalTokens(request) : NO_TOKENS
  if (caller.kind !== 'identity' || externalTokens.length === 0) {
    done()
    return
  }
  verifyTokens(controller, request, externalTokens)
    .then((verified) => {
      // The session may have ended meanwhile.
      const current = refreshCaller(auth, { ...caller, externalTokens: verified }, clock.now())
      if (current.kind === 'identity' && !current.isPartial) auth.apiSessions.noteShownToken(current.apiSessionId)
      state.caller = current
    })
    .then(() => done(), done)
}

function readExternalTokens({ raw, state }: FastifyRequest): readonly string[] {
  return readBearerTokens(raw).filter((token) => token !== state.accessToken?.token && !isMachineToken(token))
}

/** Whether an auth policy requires a token of an external signer with every request. */
function requiresToken({ auth }: Controller, { authPolicyId }: { readonly authPolicyId: string }): boolean {
  return auth.policies.get(authPolicyId).secondary.requireExtJwtSigner !== null
}

async function verifyTokens(
  { auth, contexts, log }: Controller,
  request: FastifyRequest,
  bearerTokens: readonly string[],
): Promise<readonly VerifiedToken[]> {
  const { verified, rejected } = await auth.signers.verifier.verifyAll(contexts, bearerTokens)
  for (const { message } of rejected) {
    log.debug({ requestId: request.id, reason: message }, 'an external token was rejected')
  }
  return verified
}
