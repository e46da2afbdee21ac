// Ignores the body of a GET request, unless its operation reads one: clients send bodies that no operation asks for.
import type { FastifyRequest } from 'fastify'

/** Without the headers of a body, Fastify does not read one. Node.js discards it after the response. */
export function ignoreUnreadBody({ method, raw: { headers }, state }: FastifyRequest): undefined {
  if (method !== 'GET' || state.route.operation?.body) return
  for (const name of BODY_HEADERS) if (headers[name] !== undefined) delete headers[name]
}

const BODY_HEADERS = ['content-type', 'content-length', 'transfer-encoding'] as const
