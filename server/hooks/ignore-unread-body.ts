// Ignores the body of a GET request, unless its operation reads one: clients send bodies that no operation asks for.
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Without the headers of a body, Fastify does not read one. Node.js discards it after the response. */
export function ignoreUnreadBody(
  { method, raw, routeOptions }: FastifyRequest,
  _reply: FastifyReply,
  done: () => void,
): void {
  if (method === 'GET' && !routeOptions.config.operation?.body) {
    for (const name of ['content-type', 'content-length', 'transfer-encoding']) delete raw.headers[name]
  }
  done()
}
