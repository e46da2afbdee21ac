// Responses to input that never becomes a request: not HTTP, headers too large, or too slow.
import { STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ControllerError, errors } from '../../src/foundation/errors.ts'
import { newId } from '../../src/foundation/ids.ts'
import { CONTENT_HEADERS } from '../api/responses.ts'
import { getConnection } from '../connections/http-connection.ts'
import { renderErrorEnvelope } from '../responses/error-handler.ts'

/** Sends an error of the catalogue, if a response is still possible, and closes the connection. */
export function handleClientError(error: Error & { code?: string }, socket: Duplex): void {
  const { code = '' } = error
  // More of the same input is invalid, too, and must not end the connection before the response is on its way.
  if (code.startsWith('HPE_') && refusedSockets.has(socket)) return
  // Failed handshakes and broken connections come here too: they cannot receive a response.
  const isOfHttp = code.startsWith('HPE_') || code.startsWith('ERR_HTTP_')
  if (!isOfHttp || !socket.writable || hasStartedResponse(socket)) {
    socket.destroy()
    return
  }
  refuse(socket, toClientError(code))
}

/** Refuses a CONNECT request: this server is not a proxy. */
export function refuseTunnel(_request: unknown, socket: Duplex): void {
  refuse(socket, errors.METHOD_NOT_ALLOWED({ message: 'CONNECT is not supported' }), ['allow: '])
}

/** Refuses a request with a body that asks for another protocol, or one that does not wait for the response before. */
export function refuseUpgrade(socket: Duplex): void {
  refuse(socket, errors.COULD_NOT_VALIDATE({ message: 'another protocol is asked for in a request without a body' }))
}

const refusedSockets = new WeakSet<Duplex>()

function refuse(socket: Duplex, refusal: ControllerError, headers: readonly string[] = []): void {
  refusedSockets.add(socket)
  const body = `${JSON.stringify(renderErrorEnvelope(refusal, newId()))}\n`
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'content-type: application/json',
    ...Object.entries(CONTENT_HEADERS).map(([name, value]) => `${name}: ${value}`),
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    ...headers,
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}

function toClientError(code: string): ControllerError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return errors.REQUEST_TIMEOUT()
    case 'HPE_HEADER_OVERFLOW':
      return errors.REQUEST_HEADER_FIELDS_TOO_LARGE()
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return errors.REQUEST_ENTITY_TOO_LARGE()
    default:
      return errors.COULD_NOT_VALIDATE({ message: 'this is not a request of HTTP/1.1' })
  }
}

/** Whether a response has started, or was sent before its request was complete: a second response would match no request. */
function hasStartedResponse(socket: Duplex): boolean {
  const { runningResponse } = getConnection(socket)
  if (!runningResponse?.headersSent) return false
  return !runningResponse.writableFinished || !runningResponse.req.complete
}
