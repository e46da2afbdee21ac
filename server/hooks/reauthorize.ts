// Judges the rights of a caller again once the body is there, because it may have lost them while the body arrived.
import type { FastifyRequest } from 'fastify'
import { callerFromSession } from '../../src/auth/callers.ts'
import type { Caller } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import type { ControllerError } from '../../src/errors.ts'
import { findDenial } from './authorize.ts'

const ANONYMOUS: Caller = { kind: 'anonymous' }

/** Why a request is refused now, or undefined. From here on its caller is what memory knows of it at this moment. */
export type Reauthorize = (request: FastifyRequest) => ControllerError | undefined

export function reauthorize(controller: Controller): Reauthorize {
  const { sessions } = controller
  return (request) => {
    const { caller } = request.state
    if (caller.kind !== 'identity') return undefined
    const session = sessions.get(caller.apiSessionId)
    request.state.caller = session ? callerFromSession(controller, session) : ANONYMOUS
    return findDenial(request)
  }
}
