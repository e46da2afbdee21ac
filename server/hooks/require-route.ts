// Refuses requests that lead to no operation: 404 if there is no such path on this listener, 405 if there is no such method.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Api } from '../../src/config.ts'
import { type ControllerError, errors } from '../../src/errors.ts'
import type { PathTable } from '../path-table.ts'
import { listenerOf } from '../requests.ts'

/**
 * The API is that of the route which the router matched, never read off the URL: a path has many spellings, and the router
 * is the only one to know what they mean.
 */
export function requireRoute(paths: PathTable) {
  return (request: FastifyRequest, reply: FastifyReply, done: (refusal?: Error) => void): void => {
    if (!request.is404) {
      done(isServed(request, request.routeOptions.config.api) ? undefined : notFound(request))
      return
    }
    const entry = paths.find(request.url)
    if (!entry || entry.methods.has(request.method) || ![...entry.apis].some((api) => isServed(request, api))) {
      done(notFound(request))
      return
    }
    const allowed = [...entry.methods].join(', ')
    reply.header('allow', allowed)
    done(errors.METHOD_NOT_ALLOWED({ message: `${request.method} is not among ${allowed}` }))
  }
}

/** Whether the listener that a request came in by carries an API; what belongs to no API is on all of them. */
function isServed(request: FastifyRequest, api: Api | undefined): boolean {
  return api === undefined || (listenerOf(request.raw)?.apis.includes(api) ?? true)
}

function notFound(request: FastifyRequest): ControllerError {
  return errors.NOT_FOUND({ message: `there is no path ${request.url.split('?')[0]}` })
}
