// Counts each response for the metrics, after it was sent.

import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../../monitoring/metrics.ts'

const NO_ROUTE = {}

export function countResponse(metrics: Metrics) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    // A request that is refused before its hooks run has no state.
    metrics.recordRequest(request.state?.route ?? NO_ROUTE, reply.statusCode, reply.elapsedTime)
  }
}
