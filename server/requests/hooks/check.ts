// Checks of a request's head.
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Returns or throws why a request is refused; undefined if it is not. It waits for nothing. */
export type Check = (request: FastifyRequest, reply: FastifyReply) => Error | undefined

/** Returns the error that the first refusing check returned or threw. */
export function findRefusal(checks: readonly Check[], request: FastifyRequest, reply: FastifyReply): Error | undefined {
  try {
    for (const check of checks) {
      const refusal = check(request, reply)
      if (refusal) return refusal
    }
    return undefined
  } catch (refusal) {
    return refusal as Error
  }
}
