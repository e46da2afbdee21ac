// Answers to what never becomes a request: not HTTP, headers too large, or too slow to arrive.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { type ControllerError, errors } from '../src/errors.ts'
import { newId } from '../src/ids.ts'
import { renderErrorEnvelope } from './error-handler.ts'

interface Exchange {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

const latestExchanges = new WeakMap<Duplex, Exchange>()

/** Keeps what a connection is busy with, for when what follows on it is broken. */
export function noteExchange(request: IncomingMessage, response: ServerResponse): void {
  latestExchanges.set(request.socket, { request, response })
}

/** Says in the words of the catalogue what is wrong, where that can still be said, and closes the connection. */
export function handleClientError(error: Error & { code?: string }, socket: Duplex): void {
  const { code = '' } = error
  // Failed handshakes come here too, and connections that broke off: there is nobody to say anything to.
  const isOfHttp = code.startsWith('HPE_') || code.startsWith('ERR_HTTP_')
  if (!isOfHttp || !socket.writable || hasStartedResponse(socket)) {
    socket.destroy()
    return
  }
  refuse(socket, toClientError(code))
}

/** Refuses a CONNECT request: this server is no proxy, so that method is allowed nowhere. */
export function refuseTunnel(_request: unknown, socket: Duplex): void {
  refuse(socket, errors.METHOD_NOT_ALLOWED({ message: 'CONNECT is not supported' }), ['allow: '])
}

function refuse(socket: Duplex, refusal: ControllerError, headers: readonly string[] = []): void {
  const body = `${JSON.stringify(renderErrorEnvelope(refusal, newId()))}\n`
  const head = [
    `HTTP/1.1 ${refusal.status} ${STATUS_CODES[refusal.status]}`,
    'content-type: application/json',
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

/** Whether a response of ours is on its way, or was sent before the rest of its request: a second one would belong to no request. */
function hasStartedResponse(socket: Duplex): boolean {
  const exchange = latestExchanges.get(socket)
  if (!exchange?.response.headersSent) return false
  return !exchange.response.writableFinished || !exchange.request.complete
}
