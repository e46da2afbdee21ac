// Begins the TLS handshakes of a crowd in turn, so that all of it is accepted meanwhile, and those who are back are served.
import type { Server, Socket } from 'node:net'

// The event loop accepts one connection in each of its turns, and the kernel holds no more than `net.core.somaxconn` for it: of those beyond, it
// drops the packets, and their clients try again after times that double. So while connections arrive in turn after turn, the turns are kept
// short: to accept so many costs a fifth of what the handshake and the first requests of one client do.
const ACCEPTED_BEFORE_ONE_BEGINS = 16
// However long the turns are that connections arrive in, a handshake begins once in this time, so that those who are there do not keep others out.
const MAX_PAUSE_MS = 10
// Otherwise, one begins in this time: more than a core serves, and few enough that those whose clients respond at the same moment delay nothing.
const MIN_PAUSE_MS = 1
// So many in one turn at most: that bounds how long the requests of others wait for it.
const MAX_BEGUN_IN_A_TURN = 4

export class HandshakesInTurn {
  readonly #begin: (socket: Socket) => void
  readonly #waiting = new Set<Socket>()
  /** How many may begin now. */
  #credit = MAX_BEGUN_IN_A_TURN
  #creditedAt = performance.now()
  #acceptedInTurn = 0
  #isScheduled = false

  /** @param begin begins the handshake on a connection from which nothing was read, or what was read was put back */
  constructor(begin: (socket: Socket) => void) {
    this.#begin = begin
  }

  /** Begins the handshake on a connection that is paused: at once, or in its turn if connections arrive in turn after turn. */
  add(socket: Socket): void {
    this.#acceptedInTurn += 1
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
    const hasAccepted = this.#acceptedInTurn > 0
    this.#acceptedInTurn = 0
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

  /** A client that has waited for longer than it is willing to costs no handshake. */
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

/** Has a TLS server begin its handshakes in turn. It has to pause its connections. @param admit whether to begin one at all */
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
