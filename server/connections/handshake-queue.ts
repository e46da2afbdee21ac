// Begins the handshakes of a crowd one after the other, so that requests of others are served in between.
//
// The event loop serves all sockets that are ready before anything else has its turn, and a handshake takes milliseconds. If hundreds began at
// once, their clients would respond at once, and then sign in at once: each time, all other requests would wait for them.
import type { Socket } from 'node:net'

// One begins in each turn of the event loop, and none sooner after another one.
const INTERVAL_MS = 1

// Of those that have begun within the time, so many may wait for their clients. A distant client takes longer, and holds no other up.
const MAX_UNSETTLED = 32
const UNSETTLED_MS = 50

// The first message of a client is one record of TLS, which holds 16 KiB.
const MAX_FIRST_BYTES = 17_000

export class HandshakeQueue {
  readonly #timeoutMs: number
  /** The sockets whose clients have begun, in their order, and what begins the handshake of each. */
  readonly #waiting = new Map<Socket, () => void>()
  /** When the handshakes began that are not known to have ended, by the monotonic clock. */
  readonly #begunAt: number[] = []
  #isResting = false

  /** @param timeoutMs how long a client may take to begin */
  constructor(timeoutMs: number) {
    this.#timeoutMs = timeoutMs
  }

  /** Calls `begin` once the client has begun its handshake, and those before it have had their turn. */
  enter(socket: Socket, begin: () => void): void {
    const cut = () => socket.destroy()
    const receive = () => {
      socket.setTimeout(0, cut)
      // One of no length has ended.
      if (socket.readableLength === 0 || socket.readableLength > MAX_FIRST_BYTES) cut()
      else if (!this.#waiting.has(socket)) this.#waiting.set(socket, start)
      this.#beginNext()
    }
    const start = () => {
      socket.off('readable', receive)
      begin()
    }
    socket.setTimeout(this.#timeoutMs, cut)
    socket.on('readable', receive)
    // The connection is closed then.
    socket.on('error', () => {})
  }

  /** Notes that a handshake has ended, however it did. */
  settle(): void {
    this.#begunAt.shift()
  }

  #beginNext(): void {
    if (this.#isResting) return
    for (const [socket, start] of this.#waiting) {
      if (socket.destroyed) {
        this.#waiting.delete(socket)
        continue
      }
      this.#isResting = true
      setTimeout(() => {
        this.#isResting = false
        this.#beginNext()
      }, INTERVAL_MS)
      const now = performance.now()
      const [oldest = now] = this.#begunAt
      if (this.#begunAt.length >= MAX_UNSETTLED) {
        if (now - oldest < UNSETTLED_MS) return
        this.#begunAt.shift()
      }
      this.#begunAt.push(now)
      this.#waiting.delete(socket)
      start()
      return
    }
  }
}
