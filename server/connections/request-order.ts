// Serves the requests of one connection one after the other. A client may send hundreds before it reads a response: if they
// were all served at once, the requests of other clients would wait behind them.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { getConnection } from './http-connection.ts'

/** Calls `serve` once earlier requests of the same connection have their responses. Never calls it if the connection is closed, or ends. */
export function serveInOrder(request: IncomingMessage, response: ServerResponse, serve: RequestListener): void {
  const connection = getConnection(request.socket)
  const previous = connection.latestResponse
  connection.latestResponse = response
  response.on('close', releaseResponse)
  if (!previous) {
    serve(request, response)
    return
  }
  previous.once('close', () => {
    // In another turn of the event loop, so that other connections are served in between.
    setImmediate(() => {
      if (connection.socket.writable) serve(request, response)
    })
  })
}

function releaseResponse(this: ServerResponse): void {
  getConnection(this.req.socket).releaseResponse(this)
}
