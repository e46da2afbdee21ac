// From the bytes of a body to JSON or text: whatever could not be stored as it was sent is refused here.
import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { errors } from '../src/errors.ts'
import { assertBodySize } from '../src/schema/body-sizes.ts'
import { assertExactNumbers } from '../src/schema/exact-numbers.ts'
import type { Reauthorize } from './hooks/reauthorize.ts'

// Operations that take certificates and signing requests take them as text, too.
const TEXT_TYPES = ['text/plain', 'application/x-pem-file', 'application/pkcs7'] as const

/** Every content type that can be read. */
export const BODY_TYPES: readonly string[] = ['application/json', ...TEXT_TYPES]

/**
 * Replaces Fastify's parsers. JSON with keys that reach into prototypes is refused. A caller that lost its right while the
 * body arrived does not learn whether it can be parsed. Nothing is awaited between a parser and the operation, so that the
 * operation runs with these rights.
 */
export function addBodyParsers(app: FastifyInstance, reauthorize: Reauthorize): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeAllContentTypeParsers()
  app.addContentTypeParser<Buffer>('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    const refusal = reauthorize(request)
    if (refusal) return done(refusal)
    if (body.length === 0) return done(null, undefined)
    const text = decodeText(body)
    if (text instanceof Error) return done(text)
    const { sizeLimits } = request.state.route.operation ?? {}
    try {
      if (sizeLimits) assertBodySize(body, sizeLimits)
    } catch (refusal) {
      return done(refusal as Error)
    }
    return parseJson(request, text, (error, parsed) => {
      if (error) return done(error)
      try {
        // A bare text would pass for one that was sent as text.
        if (typeof parsed === 'string')
          throw errors.COULD_NOT_PARSE_BODY({ message: 'the body is neither an object nor a list' })
        assertExactNumbers(text)
      } catch (refusal) {
        return done(refusal as Error)
      }
      return done(null, parsed)
    })
  })
  for (const type of TEXT_TYPES) {
    app.addContentTypeParser<Buffer>(type, { parseAs: 'buffer' }, (request, body, done) => {
      const text = reauthorize(request) ?? decodeText(body)
      if (text instanceof Error) return done(text)
      return done(null, text)
    })
  }
}

/** The text, or the error for bytes that a decoder would have to replace. */
function decodeText(body: Buffer): string | Error {
  if (isUtf8(body)) return body.toString('utf8')
  return errors.COULD_NOT_PARSE_BODY({ message: 'the body is not valid UTF-8' })
}
