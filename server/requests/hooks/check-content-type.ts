// Refuses bodies that the operation cannot read, by their headers, before the body is read.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { errors } from '../../../src/foundation/errors.ts'
import type { AnyOperation } from '../../api/operation.ts'
import { BODY_TYPES } from '../body-parsers.ts'

/** Refuses with 415 a content type that the operation does not take, and every content coding. */
export function checkContentType(request: FastifyRequest, reply: FastifyReply): Error | undefined {
  const { operation } = request.state.route
  if (!operation || (operation.method === 'GET' && !operation.body) || !hasContent(request)) return undefined
  return refuseCoding(request, reply) ?? refuseType(request, operation)
}

function refuseCoding({ headers }: FastifyRequest, reply: FastifyReply): Error | undefined {
  const coding = (headers['content-encoding'] ?? 'identity').trim().toLowerCase()
  if (coding === 'identity') return undefined
  reply.header('accept-encoding', 'identity')
  const reason = 'is not supported: the body must be sent as it is'
  return errors.UNSUPPORTED_MEDIA_TYPE({ field: 'Content-Encoding', reason, value: coding })
}

function refuseType({ headers }: FastifyRequest, { body }: AnyOperation): Error | undefined {
  // A body that an operation does not look at only has to be one that can be read.
  const types = body?.contentTypes ?? BODY_TYPES
  const [type = ''] = (headers['content-type'] ?? '').split(';')
  if (types.includes(type.trim().toLowerCase())) return undefined
  const reason = `is not one of ${types.join(', ')}`
  return errors.UNSUPPORTED_MEDIA_TYPE({ field: 'Content-Type', reason, value: type })
}

function hasContent({ headers }: FastifyRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}
