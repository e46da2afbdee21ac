// Sheds load when the event loop lags: anonymous requests first, administrators never.

import type { FastifyRequest } from 'fastify'
import type { Clock } from '../../../src/foundation/clock.ts'
import { errors } from '../../../src/foundation/errors.ts'
import { RetrySchedule } from '../../../src/foundation/retry-schedule.ts'
import type { Caller } from '../../../src/storage/transactions/context.ts'
import type { Load } from '../../monitoring/load.ts'
import type { Check } from './check.ts'

// A sign-in with its handshake, and what its client asks for next.
const EACH_MS = 5

/**
 * @param maxDelayMs the event-loop delay above which anonymous requests are refused; above twice as much, all requests are
 * except those of administrators, who must be able to find and fix the cause.
 */
export function shedLoad(load: Load, maxDelayMs: number, clock: Pick<Clock, 'monotonic'>): Check {
  const retries = new RetrySchedule()
  return (request) => {
    const { delayMs } = load
    const isTolerable = isMonitoring(request) || delayMs <= maxDelayMs * getTolerance(request.state.caller)
    return isTolerable ? undefined : overloadError(delayMs, retries.next(clock.monotonic(), delayMs, EACH_MS))
  }
}

/** A probe that is refused would have a busy controller restarted, and metrics are what shows the cause. */
function isMonitoring({ state }: FastifyRequest): boolean {
  const { listenerApi } = state.route
  return listenerApi === 'health' || listenerApi === 'metrics'
}

function overloadError(delayMs: number, retryAfterSeconds: number): Error {
  const cause = `requests wait for ${Math.round(delayMs)} ms`
  return errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds })
}

/** The factor of the limit for a caller. */
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
