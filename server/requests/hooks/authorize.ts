// Refuses callers without the permission before the body is read, so that they do not learn whether it is valid.
import type { FastifyReply, FastifyRequest } from 'fastify'
import {
  apiSessionUnknownError,
  permissionDeniedError,
  secondFactorRequiredError,
} from '../../../src/authentication/api-sessions/caller-errors.ts'
import { type ControllerError, errors } from '../../../src/foundation/errors.ts'
import { accessTokenChallenge, sessionChallenge } from '../../api/challenges.ts'
import { readSessionHeader, SESSION_HEADERS } from '../../api/dialects.ts'

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
      if (access.grantedTo === 'administrator' && !caller.isAdmin) {
        const message = `this needs ${access.permission}`
        return access.isForbidden
          ? errors.FORBIDDEN({ code: 'PERMISSION_DENIED', message })
          : permissionDeniedError(message)
      }
      return undefined
    default:
      return undefined
  }
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
