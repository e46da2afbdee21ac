// Hook: sets the headers that every response has, those of refusals too.
import { describeResponseHeaders } from '../../api/dialects.ts'
import type { Check } from './check.ts'

/** Sets the headers of the request's dialect. */
export function setResponseHeaders(instanceId: string): Check {
  const headers = describeResponseHeaders(instanceId)
  return ({ state }, reply) => {
    reply.headers(headers[state.dialect])
    return undefined
  }
}
