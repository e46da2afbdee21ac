// Writes a log line for each request, after its response was sent, if the settings ask for it.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Log } from '../../../src/foundation/log.ts'

export function logRequest(log: Log) {
  return (request: FastifyRequest, reply: FastifyReply): void => {
    const caller = request.state?.caller
    log.info(
      {
        requestId: request.id,
        method: request.method,
        // The query can hold tokens.
        path: request.url.split('?')[0],
        operation: request.state?.route.operation?.id,
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 100) / 100,
        address: request.ip,
        identityId: caller?.kind === 'identity' ? caller.identityId : undefined,
      },
      'request',
    )
  }
}
