// Receives the body of a request on the direct route.
import type { IncomingMessage } from 'node:http'
import { GrowingBytes } from '../growing-bytes.ts'

const NOTHING = Buffer.alloc(0)

/**
 * Calls back with the bytes of a body once all of `content-length` have arrived: never, if the connection ends before. How long they
 * may take is limited by the HTTP server, which then responds, and closes the connection.
 */
export function receiveBody(message: IncomingMessage, callback: (bytes: Buffer) => void): void {
  const length = Number(message.headers['content-length'] ?? 0)
  if (length === 0) {
    callback(NOTHING)
    return
  }
  const received = new GrowingBytes()
  message.on('data', (piece: Buffer) => {
    received.add(piece)
    if (received.length === length) callback(received.bytes)
  })
}
