// From the bytes of a body to JSON or text: whatever could not be stored as it was sent is refused here.
import { isUtf8 } from 'node:buffer'
import type { IncomingMessage } from 'node:http'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { assertBodySize } from '../../src/definitions/schema/body-sizes.ts'
import { assertExactNumbers } from '../../src/definitions/schema/exact-numbers.ts'
import { errors } from '../../src/foundation/errors.ts'
import { GrowingBytes } from '../connections/growing-bytes.ts'
import type { Reauthorize } from './hooks/reauthorize.ts'

// Operations that take certificates and signing requests take them as text, too.
const TEXT_TYPES = ['text/plain', 'application/x-pem-file', 'application/pkcs7'] as const

/** The content types that every operation can read. */
export const BODY_TYPES: readonly string[] = ['application/json', ...TEXT_TYPES]

/** A form, of operations that say so. */
export const FORM_TYPE = 'application/x-www-form-urlencoded'

/**
 * Turns the bytes of a body into what the operation reads.
 * @throws why the request is refused
 */
export type BodyParser = (request: FastifyRequest, bytes: Buffer) => unknown

type JsonParser = ReturnType<FastifyInstance['getDefaultJsonParser']>

/**
 * Returns the parsers of bodies, by content type. A caller that lost its right while the body arrived does not learn whether it
 * can be parsed. Nothing may be awaited between a parser and the operation, so that the operation runs with these rights.
 */
export function createBodyParsers(parseJson: JsonParser, reauthorize: Reauthorize): ReadonlyMap<string, BodyParser> {
  const afterReauthorization =
    (parse: BodyParser): BodyParser =>
    (request, bytes) => {
      const refusal = reauthorize(request)
      if (refusal) throw refusal
      return parse(request, bytes)
    }
  const parseJsonBody = afterReauthorization((request, bytes) => readJson(parseJson, request, bytes))
  const parseText = afterReauthorization((_request, bytes) => decodeText(bytes))
  const parseForm = afterReauthorization((_request, bytes) => new URLSearchParams(decodeText(bytes)))
  return new Map([
    ['application/json', parseJsonBody],
    [FORM_TYPE, parseForm],
    ...TEXT_TYPES.map((type) => [type, parseText] as const),
  ])
}

/** Replaces Fastify's parsers. */
export function addBodyParsers(app: FastifyInstance, parsers: ReadonlyMap<string, BodyParser>): void {
  app.removeAllContentTypeParsers()
  for (const [type, parse] of parsers) {
    app.addContentTypeParser(type, (request, payload, done) => {
      receiveUpTo(request.routeOptions.bodyLimit, payload, (failure, bytes) => {
        if (failure) return done(failure)
        let body: unknown
        try {
          body = parse(request, bytes)
        } catch (refusal) {
          return done(refusal as Error)
        }
        return done(null, body)
      })
    })
  }
}

/** Receives a body of any length, or of none that is declared. Fastify's own way keeps the pieces, see `GrowingBytes`. */
function receiveUpTo(
  maxBytes: number,
  message: IncomingMessage,
  callback: (failure: Error | undefined, bytes: Buffer) => void,
): void {
  const received = new GrowingBytes()
  const declaredLength = message.headers['content-length']
  const finish = (failure?: Error) => {
    message.off('data', add).off('end', end).off('error', finish)
    callback(failure, received.bytes)
  }
  const add = (piece: Buffer) => {
    received.add(piece)
    if (received.length > maxBytes) finish(errors.REQUEST_ENTITY_TOO_LARGE())
  }
  const end = () => {
    const isWhole = declaredLength === undefined || received.length === Number(declaredLength)
    finish(isWhole ? undefined : errors.COULD_NOT_PARSE_BODY({ message: 'the body is not what its headers say' }))
  }
  if (Number(declaredLength ?? 0) > maxBytes) callback(errors.REQUEST_ENTITY_TOO_LARGE(), received.bytes)
  else message.on('data', add).on('end', end).on('error', finish)
}

function readJson(parseJson: JsonParser, request: FastifyRequest, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined
  const text = decodeText(bytes)
  const { sizeLimits } = request.state.route.operation ?? {}
  if (sizeLimits) assertBodySize(bytes, sizeLimits)
  let refusal: Error | null = null
  let parsed: unknown
  // Calls back at once.
  parseJson(request as FastifyRequest, text, (error, value) => {
    refusal = error
    parsed = value
  })
  if (refusal) throw refusal
  // A bare text would pass for one that was sent as text.
  if (typeof parsed === 'string')
    throw errors.COULD_NOT_PARSE_BODY({ message: 'the body is neither an object nor a list' })
  assertExactNumbers(text)
  return parsed
}

/** @throws COULD_NOT_PARSE_BODY if a decoder would have to replace bytes */
function decodeText(bytes: Buffer): string {
  if (!isUtf8(bytes)) throw errors.COULD_NOT_PARSE_BODY({ message: 'the body is not valid UTF-8' })
  return bytes.toString('utf8')
}
