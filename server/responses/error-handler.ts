// Converts thrown errors to the error envelope: errors of the catalogue unchanged, all others as internal errors.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { OAuthError } from '../../src/authentication/openid-connect/oauth-error.ts'
import type { AggregatedLog } from '../../src/foundation/aggregated-log.ts'
import { ControllerError, errors, type FieldCause, type PublicCause, toPrintable } from '../../src/foundation/errors.ts'
import type { Log } from '../../src/foundation/log.ts'
import { toDialectStatus } from '../api/dialects.ts'
import { CONTENT_HEADERS, ENVELOPE_VERSIONS, type Response } from '../api/responses.ts'

interface Logs {
  readonly log: Log
  readonly aggregatedLog: AggregatedLog
}

/** The error handler of the server. */
export function handleError({ log, aggregatedLog }: Logs) {
  return (thrown: FastifyError | Error, request: FastifyRequest, reply: FastifyReply): void => {
    const { errorForm: form, errorPage } = request.state?.route.operation ?? {}
    if (form === 'oauth' && thrown instanceof OAuthError) {
      const page = errorPage?.(thrown, request.headers)
      if (page) sendPage(reply, page)
      else sendError(reply, thrown.status, renderOAuthError(thrown))
      return
    }
    const error = toControllerError(thrown)
    logError({ log, aggregatedLog }, error, thrown, request)
    if (error.retryAfterSeconds !== undefined) reply.header('retry-after', String(error.retryAfterSeconds))
    // A request that is refused before its hooks run has no state.
    // Only clients with the status of the other dialect use the paths of OpenID Connect.
    const status = toDialectStatus(error, form ? 'openziti' : request.state?.dialect)
    const page = errorPage?.(error, request.headers)
    if (page) {
      sendPage(reply, page)
      return
    }
    sendError(reply, status, form ? renderInForm(error, form) : renderErrorEnvelope(error, request.id))
  }
}

function sendPage(reply: FastifyReply, { status, contentType, body, headers = {} }: Response): void {
  reply.code(status).headers(headers).header('content-type', contentType).serializer(String)
  reply.send(body)
}

function sendError(reply: FastifyReply, status: number, body: object): void {
  reply.code(status).headers(CONTENT_HEADERS).header('content-type', 'application/json').serializer(String)
  reply.send(`${JSON.stringify(body)}\n`)
}

function renderOAuthError({ code, message }: OAuthError) {
  return { error: code, error_description: message }
}

/** An error of the catalogue at a path of OpenID Connect. */
function renderInForm({ code, message, publicCause, status }: ControllerError, form: 'oauth' | 'bare') {
  if (form === 'oauth') {
    const error = status >= 500 ? 'server_error' : status === 429 ? 'temporarily_unavailable' : 'invalid_request'
    return { error, error_description: message }
  }
  const cause = publicCause && toPublicCause(publicCause)
  return { code: status === 415 ? 'UNSUPPORTED_MEDIA_TYPE' : code, message, ...(cause ? { cause } : {}) }
}

/** Returns the body of an error response. */
export function renderErrorEnvelope({ code, message, publicCause }: ControllerError, requestId: string) {
  const cause = publicCause && toPublicCause(publicCause)
  return { error: { code, message, requestId, ...(cause ? { cause } : {}) }, meta: ENVELOPE_VERSIONS }
}

function toPublicCause(cause: PublicCause) {
  if ('field' in cause) {
    const { others } = cause
    return { ...toFieldCause(cause), ...(others ? { others: others.map(toFieldCause) } : {}) }
  }
  return { code: cause.code ?? 'UNHANDLED', message: cause.message, data: cause.data }
}

function toFieldCause({ field, reason, value }: FieldCause) {
  return { field, reason, value: toPrintable(value) }
}

/** Converts Fastify's own errors to those of the catalogue. */
function toControllerError(thrown: FastifyError | Error): ControllerError {
  if (thrown instanceof ControllerError) return thrown
  // The library that sends files has no codes of its own for conditions of a request.
  if ((thrown as { status?: unknown }).status === 412) return errors.PRECONDITION_FAILED(undefined, { cause: thrown })
  switch ((thrown as FastifyError).code) {
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
      return errors.UNSUPPORTED_MEDIA_TYPE({ field: 'Content-Type', reason: 'is not one that is taken here' })
    case 'FST_ERR_CTP_INVALID_JSON_BODY': {
      // Such a member is not taken, because programs may mistake it for the prototype of an object.
      const message = 'the body is not JSON, which its headers say, or has a member named __proto__'
      return errors.COULD_NOT_PARSE_BODY({ message }, { cause: thrown })
    }
    case 'FST_ERR_CTP_EMPTY_JSON_BODY':
      return errors.COULD_NOT_PARSE_BODY({ message: 'the body is not what its headers say' }, { cause: thrown })
    // The client is gone. The error must only not be logged as a server fault.
    case 'ECONNRESET':
      return errors.REQUEST_TIMEOUT(undefined, { cause: 'the connection closed before the request was complete' })
    case 'FST_ERR_BAD_URL':
      return errors.NOT_FOUND({ message: 'the path cannot be decoded' })
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return errors.NOT_FOUND({ message: 'no id is that long' })
    default:
      return errors.UNHANDLED(undefined, { cause: thrown })
  }
}

/** While the controller is unavailable, every request fails for the same reason. */
function logError(
  { log, aggregatedLog }: Logs,
  error: ControllerError,
  thrown: unknown,
  request: FastifyRequest,
): void {
  const fields = { requestId: request.id, method: request.method, path: request.url.split('?')[0], code: error.code }
  const failure = { ...fields, err: error.cause ?? thrown }
  if (error.status === 503) aggregatedLog.error(error.code, failure, 'a request failed')
  else if (error.status >= 500) log.error(failure, 'a request failed')
  else if (error.cause !== undefined) log.debug({ ...fields, cause: String(error.cause) }, 'a request was refused')
}
