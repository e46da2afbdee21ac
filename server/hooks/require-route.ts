// Refuses requests without an operation: 404 if the listener has no such path, 405 if the path has no such method.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ControllerError, errors } from '../../src/errors.ts'
import type { PathTable } from '../path-table.ts'
import { isServed } from '../requests.ts'

/**
 * The API is that of the matched route, and never parsed from the URL, because a path has many spellings that only the router
 * interprets.
 */
export function requireRoute(paths: PathTable) {
  return (request: FastifyRequest, reply: FastifyReply, done: (refusal?: Error) => void): void => {
    if (!request.is404) {
      done(isServed(request.raw, request.routeOptions.config.listenerApi) ? undefined : notFound(request))
      return
    }
    const entry = paths.find(request.url)
    if (!entry || entry.methods.has(request.method) || ![...entry.apis].some((api) => isServed(request.raw, api))) {
      done(notFound(request))
      return
    }
    const allowed = [...entry.methods].join(', ')
    reply.header('allow', allowed)
    done(errors.METHOD_NOT_ALLOWED({ message: `${request.method} is not among ${allowed}` }))
  }
}

function notFound(request: FastifyRequest): ControllerError {
  return errors.NOT_FOUND({ message: `there is no path ${request.url.split('?')[0]}` })
}
