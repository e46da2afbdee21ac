// Serves requests that ask for another protocol on their connection as all others: an operation may go on over a WebSocket, and any
// other one responds, and closes the connection.
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Server as TlsServer } from 'node:https'
import type { Socket } from 'node:net'
import { type WebSocket, WebSocketServer } from 'ws'
import { getConnection } from './http-connection.ts'

// A client sends short requests only.
const MAX_MESSAGE_BYTES = 64 * 1024

const webSockets = new WebSocketServer({
  ...{ noServer: true, clientTracking: false, perMessageDeflate: false },
  maxPayload: MAX_MESSAGE_BYTES,
})

/** @param refuse responds to a request whose connection cannot be left to another protocol */
export function serveUpgrades(
  server: Server | TlsServer,
  serve: RequestListener,
  refuse: (socket: Socket) => void,
): void {
  server.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
    // The server listens to the socket no longer.
    socket.on('error', () => socket.destroy())
    const connection = getConnection(socket)
    // Nothing reads a body, and a response that is under way would be mixed with another one.
    if (hasBody(request) || connection.latestResponse) return refuse(socket)
    connection.bytesBehindUpgrade = head
    const response = new ServerResponse(request)
    response.shouldKeepAlive = false
    response.assignSocket(socket)
    response.once('finish', () => socket.destroySoon())
    serve(request, response)
  })
}

/** Whether the client of a request asks for a WebSocket. */
export function asksForWebSocket({ socket, headers }: IncomingMessage): boolean {
  return getConnection(socket).bytesBehindUpgrade !== undefined && headers.upgrade?.toLowerCase() === 'websocket'
}

/** Goes on over a WebSocket, unless the handshake is not valid: then the client is told so. */
export function beginWebSocket(request: IncomingMessage, use: (webSocket: WebSocket) => void): void {
  const { bytesBehindUpgrade = Buffer.alloc(0) } = getConnection(request.socket)
  webSockets.handleUpgrade(request, request.socket, bytesBehindUpgrade, use)
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0
}
