// Begins the TLS handshakes of many clients in turn, so that all of them are accepted meanwhile, and those that have connected are served.
import { once } from 'node:events'
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
// Bounds how long the requests of other clients wait: what began in one turn also ends in one, and asks for the same in one.
const MAX_BEGUN_IN_A_TURN = 1
// More than any client sends before the server has responded.
const MAX_FIRST_BYTES = 64 * 1024

export interface HandshakeOptions {
  /** Whether to begin a handshake at all. */
  readonly admit: (socket: Socket) => boolean
  /** How long a client whose turn has come may send nothing. */
  readonly timeoutMs: number
}

class HandshakesInTurn {
  readonly #begin: (socket: Socket) => void
  readonly #timeoutMs: number
  readonly #waiting = new Set<Socket>()
  /** How many may begin now. */
  #credit = MAX_BEGUN_IN_A_TURN
  #creditedAt = performance.now()
  #hasAccepted = false
  #isScheduled = false

  /** @param begin begins the handshake on a connection whose first bytes were read and put back */
  constructor(begin: (socket: Socket) => void, timeoutMs: number) {
    this.#begin = begin
    this.#timeoutMs = timeoutMs
  }

  /** Begins the handshake on a paused connection: at once, or later if the turns before accepted connections too. */
  add(socket: Socket): void {
    this.#hasAccepted = true
    // An error without a listener would end the process.
    socket.on('error', ignoreError)
    if (this.#isScheduled) {
      this.#waiting.add(socket)
      socket.once('close', () => this.#waiting.delete(socket))
      return
    }
    this.#isScheduled = true
    this.#credit -= 1
    setImmediate(() => this.#takeTurn())
    void this.#beginUnlessLeft(socket)
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

  /** A client that has given up waiting, or sends nothing, costs no handshake. */
  async #beginUnlessLeft(socket: Socket): Promise<void> {
    const firstBytes = await readFirstBytes(socket, this.#timeoutMs)
    if (!firstBytes) {
      socket.destroy()
      this.#credit += 1
      return
    }
    socket.off('error', ignoreError)
    socket.unshift(firstBytes)
    this.#begin(socket)
  }
}

/**
 * The first bytes of the client of a paused connection; undefined if it sends nothing or too much, or closes its end. Node.js takes a buffer of 1 KB for
 * what a TLS connection receives if some of it was read before, otherwise one of 64 KB, and keeps it until the connection is closed.
 *
 * So the certificates of a client and the end of its handshake arrive in several reads, as on most networks. Then Node.js ends the connection if a
 * signature among the certificates does not verify, because OpenSSL leaves that error in its queue. Only a client that presents another certificate of
 * its issuer's name is concerned, if that has no subject key identifier, which RFC 5280 4.2.1.2 requires: with one, OpenSSL does not try it.
 */
async function readFirstBytes(socket: Socket, timeoutMs: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let isEnded = false
  const read = () => {
    for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) chunks.push(chunk)
    if (socket.bytesRead > MAX_FIRST_BYTES) socket.destroy()
  }
  const end = () => {
    isEnded = true
  }
  const giveUp = () => socket.destroy(new Error('the client has sent nothing'))
  socket.on('readable', read).on('end', end).setTimeout(timeoutMs, giveUp)
  await once(socket, 'readable').catch(ignoreError)
  // The bytes arrive in the rest of this turn, and that the client has left in the next one.
  for (let turn = 0; turn < 2; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  socket.off('readable', read).off('end', end).setTimeout(0, giveUp)
  return isEnded || socket.destroyed || chunks.length === 0 ? undefined : Buffer.concat(chunks)
}

function ignoreError(): void {}

/** Makes a TLS server that pauses its connections begin their handshakes in turn. */
export function beginHandshakesInTurn(server: Server, { admit, timeoutMs }: HandshakeOptions): void {
  const listeners = server.listeners('connection') as ((this: Server, socket: Socket) => void)[]
  const handshakes = new HandshakesInTurn((socket) => {
    for (const listener of listeners) listener.call(server, socket)
  }, timeoutMs)
  server.removeAllListeners('connection')
  server.on('connection', (socket: Socket) => {
    if (admit(socket)) handshakes.add(socket)
  })
}
