// Refuses whoever lacks the right, before the body is read: such a caller never learns whether it was valid.
import type { FastifyRequest } from 'fastify'
import { permissionDenied, secondFactorRequired, sessionUnknown } from '../../src/auth/callers.ts'
import { type ControllerError, errors } from '../../src/errors.ts'
import { sessionHeader } from '../dialects.ts'

export function authorize(request: FastifyRequest, _reply: unknown, done: (refusal?: Error) => void): void {
  done(refusalOf(request))
}

/** Why the caller of a request may not have its operation run, or undefined. */
export function refusalOf(request: FastifyRequest): ControllerError | undefined {
  const { operation } = request.routeOptions.config
  if (!operation || 'public' in operation.access) return undefined
  const { access } = operation
  const { caller } = request.state
  switch (caller.kind) {
    case 'anonymous':
      return sessionHeader(request.headers).token === undefined
        ? errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
        : sessionUnknown()
    case 'identity':
      if (caller.isPartial && access.grantedTo !== 'partial') {
        return secondFactorRequired()
      }
      if (access.grantedTo === 'administrator' && !caller.isAdmin) {
        const message = `this needs ${access.permission}`
        return access.isForbidden ? errors.FORBIDDEN({ code: 'PERMISSION_DENIED', message }) : permissionDenied(message)
      }
      return undefined
    default:
      return undefined
  }
}
