// Authorizes a request again after its body has arrived, because the caller may have lost its rights meanwhile.
import type { FastifyRequest } from 'fastify'
import { callerFromSession } from '../../src/auth/callers.ts'
import type { Caller } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import type { ControllerError } from '../../src/errors.ts'
import { findDenial } from './authorize.ts'

const ANONYMOUS: Caller = { kind: 'anonymous' }

/** Returns why a request is refused now, or undefined. Also updates the caller of the request. */
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
