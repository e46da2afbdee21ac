// Refuses callers without the permission before the body is read, so that they do not learn whether it is valid.
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  apiSessionUnknownError,
  permissionDeniedError,
  secondFactorRequiredError,
} from '../../../src/authentication/api-sessions/caller-errors.ts'
import { Rights } from '../../../src/definitions/permissions/rights.ts'
import { type ControllerError, errors } from '../../../src/foundation/errors.ts'
import type { IdentityCaller } from '../../../src/storage/transactions/context.ts'
import { admit } from '../../api/admission.ts'
import { accessTokenChallenge, sessionChallenge } from '../../api/challenges.ts'
import { readSessionHeader, SESSION_HEADERS } from '../../api/dialects.ts'
import type { AnyOperation } from '../../api/operation.ts'

/** Returns why the caller may not call the operation, or undefined. */
export function authorize(request: FastifyRequest, reply?: FastifyReply): ControllerError | undefined {
  const { operation } = request.state.route
  if (!operation || 'public' in operation.access) return undefined
  const { access } = operation
  const { caller } = request.state
  switch (caller.kind) {
    case 'anonymous':
      return refuseAnonymous(request, reply)
    case 'identity':
      if (caller.isPartial && access.grantedTo !== 'partial') {
        return secondFactorRequiredError()
      }
      return requirePermission(request, caller, operation)
    default:
      return undefined
  }
}

/** Sets the caller with the rights that it has on the API. Returns why it may not call the operation, or undefined. */
function requirePermission(
  { state }: FastifyRequest,
  caller: IdentityCaller,
  operation: AnyOperation,
): ControllerError | undefined {
  const { access } = operation
  if ('public' in access) return undefined
  if (caller.token && access.grantedTo !== 'administrator' && !access.acceptsTokens)
    return permissionDeniedError('this is for API sessions, not for tokens of machines')
  const isManaging = caller.isAdmin || state.route.api === 'management' || state.route.api === 'fabric'
  const admitted = admit(isManaging ? caller : { ...caller, rights: Rights.none }, operation)
  if (admitted) {
    state.caller = admitted
    return undefined
  }
  const message = `this needs ${access.permission}`
  return access.isForbidden ? errors.FORBIDDEN({ code: 'PERMISSION_DENIED', message }) : permissionDeniedError(message)
}

function refuseAnonymous({ headers, state }: FastifyRequest, reply: FastifyReply | undefined): ControllerError {
  const { dialect, token } = readSessionHeader(headers)
  const { tokenFault = 'missing' } = state
  // Clients that show neither header may be of either dialect; those that read challenges are of this one.
  const challenge = dialect
    ? sessionChallenge(SESSION_HEADERS[dialect])
    : accessTokenChallenge(SESSION_HEADERS.openziti, tokenFault)
  reply?.header('www-authenticate', challenge)
  return token === undefined && tokenFault === 'missing'
    ? errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
    : apiSessionUnknownError()
}
