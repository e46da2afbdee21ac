// Refuses whoever lacks the right, before the body is read: such a caller never learns whether it was valid.
import type { FastifyRequest } from 'fastify'
import { permissionDeniedError, secondFactorRequiredError, sessionUnknownError } from '../../src/auth/callers.ts'
import { type ControllerError, errors } from '../../src/errors.ts'
import { readSessionHeader } from '../dialects.ts'

export function authorize(request: FastifyRequest, _reply: unknown, done: (refusal?: Error) => void): void {
  done(findDenial(request))
}

/** Why the caller of a request may not have its operation run, or undefined. */
export function findDenial(request: FastifyRequest): ControllerError | undefined {
  const { operation } = request.routeOptions.config
  if (!operation || 'public' in operation.access) return undefined
  const { access } = operation
  const { caller } = request.state
  switch (caller.kind) {
    case 'anonymous':
      return readSessionHeader(request.headers).token === undefined
        ? errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
        : sessionUnknownError()
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
