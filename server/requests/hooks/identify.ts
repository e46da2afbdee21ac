// Determines the caller and the dialect of a request, before any other check.
import type { FastifyRequest } from 'fastify'
import { callerFromApiSession } from '../../../src/authentication/api-sessions/callers.ts'
import type { LiveApiSession } from '../../../src/authentication/api-sessions/live-api-sessions.ts'
import type { Controller } from '../../../src/controller.ts'
import type { VerifiedToken } from '../../../src/storage/external-tokens.ts'
import type { Caller } from '../../../src/storage/transactions/context.ts'
import { readSessionHeader } from '../../api/dialects.ts'
import { getListener, readBearerTokens } from '../requests.ts'

/** Sets the state of a request, and then calls back: at once, unless tokens of external signers have to be verified. */
type Identify = (request: FastifyRequest, done: (failure?: Error) => void) => void

/** @param trusted the caller of an in-process transport, which no header can claim to be */
export function identify(controller: Controller, trusted: Caller | undefined): Identify {
  const { auth, clock } = controller
  return (request, done) => {
    const { raw, routeOptions } = request
    const { dialect = getListener(raw)?.dialect ?? 'native', token } = readSessionHeader(raw.headers)
    const now = clock.now()
    const session = trusted || token === undefined ? undefined : auth.apiSessions.use(token, now)
    const caller = trusted ?? callerFromApiSession(auth, session, NO_TOKENS, now)
    const route = routeOptions.config
    request.state = { route, dialect, caller, query: NO_PARAMETERS, contentType: 'application/json' }
    const bearerTokens = session && requiresToken(controller, session) ? readBearerTokens(raw) : NO_TOKENS
    if (!session || bearerTokens.length === 0) {
      done()
      return
    }
    verifyTokens(controller, request, bearerTokens)
      .then((externalTokens) => {
        // The session may have ended meanwhile.
        const current = auth.apiSessions.get(session.id)
        request.state.caller = callerFromApiSession(auth, current, externalTokens, clock.now())
      })
      .then(() => done(), done)
  }
}

const NO_TOKENS: readonly never[] = []
const NO_PARAMETERS = {}

/** Whether the auth policy of the session requires a token of an external signer with every request. */
function requiresToken({ auth }: Controller, { identity }: LiveApiSession): boolean {
  return auth.policies.get(identity.authPolicyId).secondary.requireExtJwtSigner !== null
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
