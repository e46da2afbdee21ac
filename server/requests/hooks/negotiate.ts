// Negotiates the content type and reads the query parameters, before the body is read.
import { errors } from '../../../src/foundation/errors.ts'
import type { ServedRequest } from '../exchange.ts'
import { parseQueryOf, readQuery } from '../query.ts'

/** @throws NOT_ACCEPTABLE if the caller accepts no possible content type, COULD_NOT_VALIDATE if a parameter is invalid */
export function negotiate(request: ServedRequest): undefined {
  const { operation } = request.state.route
  if (!operation) return
  const produced = operation.returns.kind === 'raw' ? operation.returns.contentType : 'application/json'
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  // OpenZiti clients that send a body get a response of the same type, whatever `Accept` says.
  if (!operation.hasOneForm && !hasBody && !accepts(request.headers.accept, produced))
    throw notAcceptableError(request.headers.accept ?? '', produced)
  if (operation.query) request.state.query = readQuery(operation.query, parseQueryOf(request.url))
}

/** @throws UNSUPPORTED_MEDIA if the caller does not accept JSON */
export function assertAcceptsJson(accept: string | undefined): void {
  if (!accepts(accept, 'application/json')) throw errors.UNSUPPORTED_MEDIA()
}

function accepts(header: string | undefined, produced: string): boolean {
  if (header === undefined || header === '' || header === '*/*' || header === produced) return true
  const [family = ''] = produced.split('/')
  return header.split(',').some((range) => {
    const [type = '', ...parameters] = range.split(';').map((part) => part.trim().toLowerCase())
    if (parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))) return false
    return type === '*/*' || type === `${family}/*` || type === produced
  })
}

function notAcceptableError(value: string, produced: string) {
  return errors.NOT_ACCEPTABLE({ field: 'Accept', reason: `leaves out ${produced}, and there is nothing else`, value })
}
