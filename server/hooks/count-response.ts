// Counts each response for the metrics, after it was sent.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Metrics } from '../monitoring/metrics.ts'

export function countResponse(metrics: Metrics) {
  return (request: FastifyRequest, reply: FastifyReply, done: () => void): void => {
    // A request that is refused before its hooks run has no state.
    metrics.recordRequest(request.state?.route ?? request.routeOptions.config, reply.statusCode, reply.elapsedTime)
    done()
  }
}
