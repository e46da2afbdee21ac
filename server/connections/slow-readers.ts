// Cuts connections whose clients do not read, because unsent responses would fill the memory.
import type { ServerResponse } from 'node:http'
import type { Log } from '../../src/foundation/log.ts'
import { getConnection, type HttpConnection } from './http-connection.ts'

export interface UnsentLimits {
  /** How long a client may take nothing of what waits for it. */
  readonly stallMs: number
  /** How much may wait for one connection before another large response is added to it. */
  readonly maxBytesPerConnection: number
  /** How much may wait for all connections together. */
  readonly maxBytes: number
}

// How often connections are looked at: a stall is noticed that much later at most.
const CHECK_MS = 1_000

// How much of the bound on all connections is left after some were cut: so much that the next request does not cut again.
const KEPT_SHARE = 0.75

/** Counted for each request under way, about what it costs: clients may send many before they read the first response. */
const REQUEST_BYTES = 16 * 1024

export class SlowReaders {
  readonly #limits: UnsentLimits
  readonly #log: Log
  readonly #now: () => number
  readonly #connections = new Set<HttpConnection>()
  /** Of all connections; what their sockets have buffered is as it was when they were last looked at. */
  #heldBytes = 0
  #bufferedBytes = 0
  #checkedMs = 0
  readonly #releaseRequest: (this: ServerResponse) => void
  /** The connections that were cut and are not in the log yet, by reason. */
  readonly #unreported = new Map<string, { connections: number; bytes: number }>()
  #timer: NodeJS.Timeout | undefined

  /** @param now the monotonic clock, in milliseconds */
  constructor(limits: UnsentLimits, log: Log, now: () => number = () => performance.now()) {
    this.#limits = limits
    this.#log = log
    this.#now = now
    const release = (connection: HttpConnection) => this.#release(connection, REQUEST_BYTES)
    this.#releaseRequest = function () {
      release(getConnection(this.req.socket))
    }
  }

  /** Looks at all connections regularly until it is stopped. */
  start(): void {
    this.#timer = setInterval(() => {
      this.check()
      this.#report()
    }, CHECK_MS).unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  /** Watches a connection until it closes. */
  watch(connection: HttpConnection): void {
    connection.unsent = this
    connection.lastProgressMs = this.#now()
    this.#connections.add(connection)
    connection.socket.once('close', () => this.#unwatch(connection))
  }

  /** Cuts the connections that take nothing, and if too much waits for all of them, those that have not taken any for longest. */
  check(): void {
    const nowMs = this.#now()
    const stalled: HttpConnection[] = []
    for (const connection of this.#connections) {
      noteProgress(connection, nowMs)
      if (nowMs - connection.lastProgressMs > this.#limits.stallMs) stalled.push(connection)
    }
    this.#checkedMs = nowMs
    this.#cut(stalled, 'nothing was taken for too long')
    this.#cutSlowest()
  }

  /**
   * Counts a request under way until its response is closed.
   * @returns false if the connection was cut instead, because the limits leave no room
   */
  holdRequest(response: ServerResponse): boolean {
    const isHeld = this.#hold(getConnection(response.req.socket), REQUEST_BYTES)
    // Not `once`: it is emitted once, and to remove the listener costs more than all else that is done here.
    if (isHeld) response.on('close', this.#releaseRequest)
    return isHeld
  }

  /**
   * Counts bytes that stay in memory against the limits of a connection until `release` is called.
   * @returns undefined if the connection was cut instead, because the limits leave no room
   */
  hold(connection: HttpConnection, bytes: number): { release(): void } | undefined {
    return this.#hold(connection, bytes) ? { release: () => this.#release(connection, bytes) } : undefined
  }

  #hold(connection: HttpConnection, bytes: number): boolean {
    if (!this.#connections.has(connection)) return false
    if (unsentBytes(connection) > this.#limits.maxBytesPerConnection) {
      this.#cut([connection], 'more was asked for while too much waits')
      return false
    }
    connection.heldBytes += bytes
    this.#heldBytes += bytes
    if (this.#heldBytes + this.#bufferedBytes <= this.#limits.maxBytes) return true
    this.#cutSlowest()
    return this.#connections.has(connection)
  }

  #release(connection: HttpConnection, bytes: number): void {
    if (!this.#connections.has(connection)) return
    connection.heldBytes -= bytes
    this.#heldBytes -= bytes
  }

  /**
   * If too much waits for all connections, cuts those that have taken nothing for longest, and among equals those for which
   * most waits. Whether a connection has taken something since the last check is not known: all such are equals.
   */
  #cutSlowest(): void {
    const waiting = [...this.#connections].filter((connection) => unsentBytes(connection) > 0)
    this.#bufferedBytes = waiting.reduce((sum, { socket }) => sum + socket.writableLength, 0)
    const allBytes = this.#heldBytes + this.#bufferedBytes
    if (allBytes <= this.#limits.maxBytes) return
    const progressMs = ({ lastProgressMs }: HttpConnection) => Math.min(lastProgressMs, this.#checkedMs)
    waiting.sort((a, b) => progressMs(a) - progressMs(b) || unsentBytes(b) - unsentBytes(a))
    let excessBytes = allBytes - this.#limits.maxBytes * KEPT_SHARE
    const slowest: HttpConnection[] = []
    for (const connection of waiting) {
      if (excessBytes <= 0) break
      slowest.push(connection)
      excessBytes -= unsentBytes(connection)
    }
    this.#cut(slowest, 'too much waits for all connections together')
  }

  #cut(connections: readonly HttpConnection[], reason: string): void {
    if (connections.length === 0) return
    const reported = this.#unreported.get(reason) ?? { connections: 0, bytes: 0 }
    const bytes = connections.reduce((sum, connection) => sum + unsentBytes(connection), reported.bytes)
    this.#unreported.set(reason, { connections: reported.connections + connections.length, bytes })
    for (const connection of connections) {
      this.#bufferedBytes -= connection.socket.writableLength
      this.#unwatch(connection)
      connection.socket.destroy()
    }
  }

  /** One line a reason, however many connections were cut: who causes them must not fill the log either. */
  #report(): void {
    for (const [reason, cut] of this.#unreported) this.#log.info({ ...cut, reason }, 'cut clients that do not read')
    this.#unreported.clear()
  }

  #unwatch(connection: HttpConnection): void {
    if (this.#connections.delete(connection)) this.#heldBytes -= connection.heldBytes
  }
}

function unsentBytes({ socket, heldBytes }: HttpConnection): number {
  return heldBytes + socket.writableLength
}

/** Whatever was written and is not buffered any more was taken by the operating system, which has it only if the client reads. */
function noteProgress(connection: HttpConnection, nowMs: number): void {
  const { socket, takenBytes } = connection
  connection.takenBytes = socket.bytesWritten - socket.writableLength
  if (socket.writableLength === 0 || connection.takenBytes !== takenBytes) connection.lastProgressMs = nowMs
}
