// Counts each response for the metrics, after it was sent.

import type { Metrics } from '../../monitoring/metrics.ts'
import type { ServedReply, ServedRequest } from '../exchange.ts'

const NO_ROUTE = {}

export function countResponse(metrics: Metrics) {
  return (request: ServedRequest, reply: ServedReply): void => {
    // A request that is refused before its hooks run has no state.
    metrics.recordRequest(request.state?.route ?? NO_ROUTE, reply.statusCode, reply.elapsedTime)
  }
}
