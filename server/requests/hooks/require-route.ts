// Refuses requests without an operation: 404 if the listener has no such path, 405 if the path has no such method.
import type { FastifyRequest } from 'fastify'
import { type ControllerError, errors } from '../../../src/foundation/errors.ts'
import type { PathTable } from '../path-table.ts'
import { isServed } from '../requests.ts'
import type { Check } from './check.ts'

/**
 * The API is that of the matched route, and never parsed from the URL, because a path has many spellings that only the router
 * interprets.
 */
export function requireRoute(paths: PathTable): Check {
  return (request, reply) => {
    if (!request.is404) {
      return isServed(request.raw, request.state.route.listenerApi) ? undefined : notFound(request)
    }
    const entry = paths.find(request.url)
    if (!entry || entry.methods.has(request.method) || ![...entry.apis].some((api) => isServed(request.raw, api))) {
      return notFound(request)
    }
    const allowed = [...entry.methods].join(', ')
    reply.header('allow', allowed)
    return errors.METHOD_NOT_ALLOWED({ message: `${request.method} is not among ${allowed}` })
  }
}

function notFound(request: FastifyRequest): ControllerError {
  return errors.NOT_FOUND({ message: `there is no path ${request.url.split('?')[0]}` })
}
