// Negotiates the content type and reads the query parameters, before the body is read.
import type { FastifyRequest } from 'fastify'
import { errors } from '../../../src/foundation/errors.ts'
import { listContentTypes } from '../../api/operation.ts'
import { parseQueryOf, readQuery } from '../../api/query.ts'

/**
 * Chooses the content type of the response, and reads the parameters.
 * @throws NOT_ACCEPTABLE if the caller accepts no possible content type, COULD_NOT_VALIDATE if a parameter is invalid
 */
export function negotiate(request: FastifyRequest): undefined {
  const { operation } = request.state.route
  if (!operation) return
  const types = listContentTypes(operation)
  const hasBody = request.headers['content-length'] !== undefined || request.headers['transfer-encoding'] !== undefined
  // OpenZiti clients that send a body get a response of the same type, whatever `Accept` says.
  const isFixed = operation.hasOneForm || hasBody
  const contentType = isFixed ? types[0] : findPreferredType(request.headers.accept, types)
  if (contentType === undefined) throw notAcceptableError(request.headers.accept ?? '', types)
  request.state.contentType = contentType
  if (operation.query) request.state.query = readQuery(operation.query, parseQueryOf(request.url))
}

/** @throws UNSUPPORTED_MEDIA if the caller does not accept JSON */
export function assertAcceptsJson(accept: string | undefined): void {
  if (findPreferredType(accept, ['application/json']) === undefined) throw errors.UNSUPPORTED_MEDIA()
}

interface MediaRange {
  readonly type: string
  /** From 0, which means that it is not accepted, to 1. */
  readonly quality: number
}

/** The type that `Accept` prefers (RFC 9110, section 12.5.1), among equal ones the first; undefined if it accepts none. */
function findPreferredType(header: string | undefined, types: readonly string[]): string | undefined {
  const [first] = types
  if (header === undefined || header === '' || header === '*/*' || header === first) return first
  const ranges = header.split(',').map(parseRange)
  let preferred: string | undefined
  let highest = 0
  for (const type of types) {
    const quality = getQuality(type, ranges)
    if (quality > highest) {
      preferred = type
      highest = quality
    }
  }
  return preferred
}

function parseRange(text: string): MediaRange {
  const [type = '', ...parameters] = text.split(';').map((part) => part.trim().toLowerCase())
  const weight = parameters.find((parameter) => /^q=[01](\.\d*)?$/.test(parameter))
  return { type, quality: weight === undefined ? 1 : Number(weight.slice(2)) }
}

/** The quality of the most specific range that matches a type. */
function getQuality(type: string, ranges: readonly MediaRange[]): number {
  const family = `${type.slice(0, type.indexOf('/'))}/*`
  for (const name of [type, family, '*/*']) {
    const range = ranges.find((candidate) => candidate.type === name)
    if (range) return range.quality
  }
  return 0
}

function notAcceptableError(value: string, types: readonly string[]) {
  const reason = `leaves out ${types.join(' and ')}, and there is nothing else`
  return errors.NOT_ACCEPTABLE({ field: 'Accept', reason, value })
}
