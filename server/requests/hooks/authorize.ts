// Refuses callers without the permission before the body is read, so that they do not learn whether it is valid.
import type { FastifyRequest } from 'fastify'
import {
  apiSessionUnknownError,
  permissionDeniedError,
  secondFactorRequiredError,
} from '../../../src/authentication/api-sessions/caller-errors.ts'
import { type ControllerError, errors } from '../../../src/foundation/errors.ts'
import { readSessionHeader } from '../../api/dialects.ts'

/** Returns why the caller may not call the operation, or undefined. */
export function authorize(request: FastifyRequest): ControllerError | undefined {
  const { operation } = request.state.route
  if (!operation || 'public' in operation.access) return undefined
  const { access } = operation
  const { caller } = request.state
  switch (caller.kind) {
    case 'anonymous':
      return readSessionHeader(request.headers).token === undefined
        ? errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
        : apiSessionUnknownError()
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
