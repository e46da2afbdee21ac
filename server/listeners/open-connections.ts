// Closes the connections of clients when the controller stops, and loses no response: each closes once the request that it runs
// has its response.
import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

// A property of the connection, because an entry of a map for each request burdens the garbage collector.
const RUNNING = Symbol('response to the running request')

interface Connection extends Socket {
  [RUNNING]?: ServerResponse
}

export class OpenConnections {
  readonly #connections = new Set<Connection>()
  #isClosing = false

  /** Follows a connection, from its handshake on, until it is closed. */
  watch(connection: Socket): void {
    if (this.#isClosing) connection.destroySoon()
    this.#connections.add(connection)
    connection.once('close', () => this.#connections.delete(connection))
  }

  /** Notes that a request is run now. */
  beginResponse(response: ServerResponse): void {
    const connection: Connection = response.req.socket
    connection[RUNNING] = response
    if (this.#isClosing) closeAfter(response)
  }

  /** Closes all connections; requests that have arrived already are still run, one of each connection. */
  close(): void {
    this.#isClosing = true
    for (const { [RUNNING]: response } of this.#connections) if (response) closeAfter(response)
    // What has arrived is read between the two.
    setImmediate(() => setImmediate(() => this.#closeIdle()))
  }

  #closeIdle(): void {
    for (const connection of this.#connections) if (!isRunning(connection)) connection.destroySoon()
  }
}

function isRunning({ [RUNNING]: response }: Connection): boolean {
  return response !== undefined && !response.closed
}

/** Closes a connection once its client has been sent a response, which tells it so if it has not begun. */
function closeAfter(response: ServerResponse): void {
  if (response.closed) return
  response.shouldKeepAlive = false
  const { socket } = response.req
  response.once('close', () => socket.destroySoon())
}
