// Refuses whoever lacks the right, before the body is read: such a caller never learns whether it was valid.
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../src/context.ts'
import { type ControllerError, errors } from '../../src/errors.ts'
import { sessionHeader } from '../dialects.ts'
import type { Access } from '../operation.ts'

export function authorize(request: FastifyRequest, _reply: unknown, done: (refusal?: Error) => void): void {
  const { operation } = request.routeOptions.config
  if (!operation || 'public' in operation.access) done()
  else done(refusalOf(operation.access, request.state.caller, request))
}

type Granted = Extract<Access, { permission: string }>

function refusalOf(access: Granted, caller: Caller, request: FastifyRequest): ControllerError | undefined {
  switch (caller.kind) {
    case 'anonymous':
      return sessionHeader(request.headers).token === undefined
        ? errors.UNAUTHORIZED({ code: 'SESSION_MISSING', message: 'no session was named' })
        : errors.UNAUTHORIZED({ code: 'SESSION_UNKNOWN', message: 'the session is unknown, or has ended' })
    case 'identity':
      if (caller.isPartial && access.grantedTo !== 'partial') {
        return errors.UNAUTHORIZED({ code: 'SECOND_FACTOR_REQUIRED', message: 'the session owes a second factor' })
      }
      if (access.grantedTo === 'administrator' && !caller.isAdmin) {
        const refuse = access.isForbidden ? errors.FORBIDDEN : errors.UNAUTHORIZED
        return refuse({ code: 'PERMISSION_DENIED', message: `this needs ${access.permission}` })
      }
      return undefined
    default:
      return undefined
  }
}
