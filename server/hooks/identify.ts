// Finds out who asks and in which dialect, before anything else is looked at.
import type { FastifyRequest } from 'fastify'
import type { Dialect } from '../../src/config.ts'
import type { Caller } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import { sessionHeader } from '../dialects.ts'
import { listenerOf } from '../requests.ts'

const ANONYMOUS: Caller = { kind: 'anonymous' }

/** @param trusted the caller of an in-process transport, which no header can claim to be */
export function identify(controller: Controller, trusted: Caller | undefined) {
  return async (request: FastifyRequest): Promise<void> => {
    const { dialect, token } = sessionHeader(request.headers)
    const fallback: Dialect = listenerOf(request.raw)?.dialect ?? 'native'
    request.state = { dialect: dialect ?? fallback, caller: trusted ?? ANONYMOUS, query: {} }
    if (trusted || token === undefined) return
    const context = controller.context(ANONYMOUS, { requestId: request.id, address: request.ip })
    const session = await controller.sessions.use(context, token)
    if (!session) return
    request.state.caller = {
      kind: 'identity',
      identityId: session.identityId,
      identityName: session.identity.name,
      isAdmin: session.identity.isAdmin,
      apiSessionId: session.id,
      isPartial: session.isMfaRequired && !session.isMfaComplete,
    }
  }
}
