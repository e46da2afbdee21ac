// Refuses requests that lead to no operation: 404 if there is no such path on this listener, 405 if there is no such method.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type ControllerError, errors } from '../../src/errors.ts'
import type { PathTable } from '../path-table.ts'
import { isServed } from '../requests.ts'

/**
 * The API is that of the route which the router matched, never read off the URL: a path has many spellings, and the router
 * is the only one to know what they mean.
 */
export function requireRoute(paths: PathTable) {
  return (request: FastifyRequest, reply: FastifyReply, done: (refusal?: Error) => void): void => {
    if (!request.is404) {
      done(isServed(request.raw, request.routeOptions.config.api) ? undefined : notFound(request))
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
