// Refuses requests while the server has more to do than it can: strangers first, administrators never.
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../../src/context.ts'
import { errors } from '../../src/errors.ts'
import type { Load } from '../load.ts'

const RETRY_AFTER_SECONDS = 2

/**
 * @param mostMilliseconds how late the server may be before whoever is not signed in is refused; at twice as much everyone
 * else is. Administrators have to be able to find out what is wrong, and to mend it.
 */
export function shedLoad(load: Load, mostMilliseconds: number) {
  return (request: FastifyRequest, _reply: unknown, done: (refusal?: Error) => void): void => {
    const { delayMilliseconds } = load
    const isTolerable = delayMilliseconds <= mostMilliseconds * getTolerance(request.state.caller)
    done(isTolerable ? undefined : overloadError(delayMilliseconds))
  }
}

function overloadError(delayMilliseconds: number): Error {
  const cause = `requests wait for ${Math.round(delayMilliseconds)} ms`
  return errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
}

/** How many times the limit a caller's requests may have to wait. */
function getTolerance(caller: Caller): number {
  switch (caller.kind) {
    case 'anonymous':
      return 1
    case 'identity':
      return caller.isAdmin ? Number.POSITIVE_INFINITY : 2
    default:
      return Number.POSITIVE_INFINITY
  }
}
