// What a request says of the form of its response, then its parameters: before its body is read.
import type { FastifyRequest } from 'fastify'
import { errors } from '../../src/errors.ts'
import { readQuery } from '../query.ts'

/** @throws COULD_NOT_VALIDATE (406) where nothing the caller accepts can be answered, and for parameters that do not fit */
export async function negotiate(request: FastifyRequest): Promise<void> {
  const { operation } = request.routeOptions.config
  if (!operation) return
  const produced = operation.returns.kind === 'raw' ? operation.returns.contentType : 'application/json'
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  // With a body, clients of the peer are answered in the type they sent, whatever they say they accept.
  if (!operation.hasOneForm && !hasBody && !accepts(request.headers.accept, produced))
    throw notAcceptableError(request.headers.accept ?? '', produced)
  request.state.query = readQuery(operation.query ?? {}, request.query as Record<string, string | string[]>)
}

/** @throws UNSUPPORTED_MEDIA where a caller who sends something other than JSON does not take JSON back */
export function assertAcceptsJson(accept: string | undefined): void {
  if (!accepts(accept, 'application/json')) throw errors.UNSUPPORTED_MEDIA()
}

function accepts(header: string | undefined, produced: string): boolean {
  if (header === undefined || header === '') return true
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
