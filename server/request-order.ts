// Serves the requests of one connection one after the other. A client may send hundreds before it reads a response: served
// all at once they would hold up the requests of everybody else.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** The response to the request of a connection that came last. */
const latest = new WeakMap<Socket, ServerResponse>()

/** Calls `serve` once the responses to earlier requests of the same connection have ended; never if the connection has. */
export function serveInOrder({ socket }: IncomingMessage, response: ServerResponse, serve: () => void): void {
  const previous = latest.get(socket)
  latest.set(socket, response)
  if (!previous || previous.closed) {
    serve()
    return
  }
  previous.once('close', () => {
    // In a turn of its own: other connections have theirs between.
    setImmediate(() => {
      if (!socket.destroyed) serve()
    })
  })
}
