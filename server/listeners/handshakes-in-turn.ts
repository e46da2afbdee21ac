// Begins the TLS handshakes of many clients in turn, so that all of them are accepted meanwhile, and those that have connected are served.
import type { Server, Socket } from 'node:net'

// The event loop accepts one connection in each turn, and the kernel queues no more than `net.core.somaxconn`. It drops the packets of further
// clients, which retry after delays that double. So while each turn accepts a connection, few handshakes begin, and the turns stay short:
// accepting so many connections costs a fifth of the handshake and the first requests of one client.
const ACCEPTED_BEFORE_ONE_BEGINS = 16
// Meanwhile, one handshake begins at least this often, however long the turns are, so that clients that are connected do not keep others out.
const MAX_PAUSE_MS = 10
// Otherwise, one begins this often: faster than a core completes them, but slowly enough that clients that all respond in the same turn delay
// nothing else.
const MIN_PAUSE_MS = 1
// Bounds how long the requests of other clients wait for the handshakes that begin in one turn.
const MAX_BEGUN_IN_A_TURN = 2

class HandshakesInTurn {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new Set<Socket>()
  /** How many may begin now. */
  #credit = MAX_BEGUN_IN_A_TURN
  #creditedAt = performance.now()
  #hasAccepted = false
  #isScheduled = false

  /** @param begin begins the handshake on a connection from which nothing was read, or what was read was put back */
  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  /** Begins the handshake on a paused connection: at once, or later if the turns before accepted connections too. */
  add(socket: Socket): void {
    this.#hasAccepted = true
    if (this.#isScheduled) {
      this.#waiting.add(socket)
      socket.once('close', () => this.#waiting.delete(socket))
      // An error without a listener would end the process.
      socket.on('error', ignoreError)
      return
    }
    this.#isScheduled = true
    setImmediate(() => this.#takeTurn())
    this.#begin(socket)
  }

  #takeTurn(): void {
    const hasAccepted = this.#hasAccepted
    this.#hasAccepted = false
    this.#earnCredit(hasAccepted)
    for (const socket of this.#waiting) {
      if (this.#credit < 1) break
      this.#credit -= 1
      this.#waiting.delete(socket)
      void this.#beginUnlessLeft(socket)
    }
    this.#isScheduled = hasAccepted || this.#waiting.size > 0
    if (hasAccepted) setImmediate(() => this.#takeTurn())
    else if (this.#isScheduled) setTimeout(() => this.#takeTurn(), MIN_PAUSE_MS)
  }

  #earnCredit(hasAccepted: boolean): void {
    const now = performance.now()
    const elapsedMs = now - this.#creditedAt
    this.#creditedAt = now
    const earned = hasAccepted
      ? Math.max(1 / ACCEPTED_BEFORE_ONE_BEGINS, elapsedMs / MAX_PAUSE_MS)
      : elapsedMs / MIN_PAUSE_MS
    this.#credit = Math.min(this.#credit + earned, MAX_BEGUN_IN_A_TURN)
  }

  /** A client that has given up waiting costs no handshake. */
  async #beginUnlessLeft(socket: Socket): Promise<void> {
    if (await hasLeft(socket)) {
      socket.destroy()
      this.#credit += 1
      return
    }
    socket.off('error', ignoreError)
    this.#begin(socket)
  }
}

/** Whether a client has closed its end of a paused connection. What it has sent before can still be read. */
async function hasLeft(socket: Socket): Promise<boolean> {
  const chunks: Buffer[] = []
  let isEnded = false
  const read = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk)
  }
  const end = () => {
    isEnded = true
  }
  socket.on('readable', read).on('end', end)
  // One turn brings what the client has sent, the next one that it has left.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  socket.off('readable', read).off('end', end)
  if (isEnded || socket.destroyed) return true
  for (const chunk of chunks.toReversed()) socket.unshift(chunk)
  return false
}

function ignoreError(): void {}

/** Makes a TLS server that pauses its connections begin their handshakes in turn. @param admit whether to begin a handshake at all */
export function beginHandshakesInTurn(server: Server, admit: (socket: Socket) => boolean): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  const handshakes = new HandshakesInTurn((socket) => {
    for (const listener of listeners) listener.call(server, socket)
  })
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) handshakes.add(socket)
  })
}
