// Closes the connections of clients when the controller stops, and loses no response: each closes once the request that it runs
// has its response.
import type { ServerResponse } from 'node:http'
import { getConnection, type HttpConnection } from './http-connection.ts'

export class OpenConnections {
  readonly #connections = new Set<HttpConnection>()
  #isClosing = false

  /** Follows a connection, from its handshake on, until it is closed. */
  watch(connection: HttpConnection): void {
    if (this.#isClosing) connection.socket.destroySoon()
    this.#connections.add(connection)
    connection.socket.once('close', () => this.#connections.delete(connection))
  }

  /** Notes that a request is run now. */
  beginResponse(response: ServerResponse): void {
    getConnection(response.req.socket).runningResponse = response
    if (this.#isClosing) closeAfter(response)
  }

  /** Closes all connections; requests that have arrived already are still run, one of each connection. */
  close(): void {
    this.#isClosing = true
    for (const { runningResponse } of this.#connections) if (runningResponse) closeAfter(runningResponse)
    // Bytes that have arrived are read between the two.
    setImmediate(() => setImmediate(() => this.#closeIdle()))
  }

  #closeIdle(): void {
    for (const connection of this.#connections) if (!isRunning(connection)) connection.socket.destroySoon()
  }
}

function isRunning({ runningResponse }: HttpConnection): boolean {
  return runningResponse !== undefined && !runningResponse.closed
}

/** Closes a connection once its client has been sent a response, which tells it so if it has not begun. */
function closeAfter(response: ServerResponse): void {
  if (response.closed) return
  response.shouldKeepAlive = false
  const { socket } = response.req
  response.once('close', () => socket.destroySoon())
}
