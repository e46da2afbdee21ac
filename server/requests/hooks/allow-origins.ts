// Allows the scripts of other origins to call the APIs (CORS, section 3.2 of the Fetch standard), for the origins in the settings.

import type { FastifyReply, FastifyRequest } from 'fastify'
import { SESSION_HEADERS } from '../../api/dialects.ts'
import { DRY_RUN_HEADER } from '../../api/dry-run.ts'
import type { AnyOperation } from '../../api/operation.ts'
import { POSITION_HEADER } from '../../api/position.ts'
import { CONTENT_HEADERS } from '../../api/responses.ts'
import type { PathTable } from '../path-table.ts'
import { isServed } from '../requests.ts'
import type { Check } from './check.ts'

// Chromium caches a preflight for two hours at most.
const MAX_AGE_SECONDS = 2 * 60 * 60

const SESSION_HEADER_NAMES = Object.values(SESSION_HEADERS)
const REQUEST_HEADERS = [
  'accept',
  'authorization',
  'content-type',
  'if-none-match',
  DRY_RUN_HEADER,
  POSITION_HEADER,
  ...SESSION_HEADER_NAMES,
]
const RESPONSE_HEADERS = [
  ...SESSION_HEADER_NAMES,
  'allow',
  'auth-request-id',
  POSITION_HEADER,
  'etag',
  'retry-after',
  'totp-required',
  'www-authenticate',
  'ziti-authenticator-extend-requested',
  'ziti-instance-id',
]

const EXPOSED_HEADERS = RESPONSE_HEADERS.join(', ')

/** @param operations whose own request headers are allowed, too */
export function allowOrigins(origins: readonly string[], operations: readonly AnyOperation[], paths: PathTable) {
  const allowedOrigins = new Set(origins)
  const requestHeaders = new Set([
    ...REQUEST_HEADERS,
    ...operations.flatMap(({ headers = {} }) => Object.keys(headers)),
  ])
  const preflightHeaders = {
    ...CONTENT_HEADERS,
    'access-control-allow-headers': [...requestHeaders].join(', '),
    'access-control-max-age': String(MAX_AGE_SECONDS),
  }
  const findMethods = (request: FastifyRequest): string | undefined => {
    const entry = paths.find(request.url)
    const isFound = entry !== undefined && [...entry.apis].some((api) => isServed(request.raw, api))
    return isFound ? [...entry.methods].join(', ') : undefined
  }

  const isAllowed = ({ headers: { origin } }: FastifyRequest) => origin !== undefined && allowedOrigins.has(origin)

  const check: Check = (request, reply) => {
    // Also if the origin is not allowed: a cache must not serve the response to one that is.
    reply.header('vary', 'Origin')
    if (!isAllowed(request)) return
    reply.headers({
      'access-control-allow-origin': request.headers.origin as string,
      'access-control-allow-credentials': 'true',
      'access-control-expose-headers': EXPOSED_HEADERS,
    })
  }

  return {
    /** Sets the headers that let scripts of allowed origins read the response. */
    check,
    /** The hook that responds to preflights, before any check. */
    respondToPreflight(request: FastifyRequest, reply: FastifyReply, done: () => void): void {
      const methods = isPreflight(request) && isAllowed(request) ? findMethods(request) : undefined
      if (methods === undefined) {
        done()
        return
      }
      check(request, reply)
      reply
        .headers({ ...preflightHeaders, 'access-control-allow-methods': methods })
        .code(204)
        .send()
    },
  }
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === 'OPTIONS' && headers['access-control-request-method'] !== undefined
}
