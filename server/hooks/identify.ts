// Determines the caller and the dialect of a request, before any other hook.
import type { FastifyRequest } from 'fastify'
import { callerFromApiSession } from '../../src/auth/callers.ts'
import type { Dialect } from '../../src/config.ts'
import type { Caller } from '../../src/context.ts'
import type { Controller } from '../../src/controller.ts'
import { readSessionHeader } from '../dialects.ts'
import { getListener } from '../requests.ts'

/** @param trusted the caller of an in-process transport, which no header can claim to be */
export function identify(controller: Controller, trusted: Caller | undefined) {
  const { auth, clock } = controller

  // Synchronous, because everything it needs is in memory and every request passes through it.
  return (request: FastifyRequest, _reply: unknown, done: () => void): void => {
    const { dialect, token } = readSessionHeader(request.headers)
    const fallback: Dialect = getListener(request.raw)?.dialect ?? 'native'
    const session = trusted || token === undefined ? undefined : auth.apiSessions.use(token, clock.now())
    const caller = trusted ?? callerFromApiSession(auth, session)
    request.state = { dialect: dialect ?? fallback, caller, query: {} }
    done()
  }
}
