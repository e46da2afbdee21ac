// Limits connections, in total and from one address, before anything is read from them; and cuts them at the end.
import type { Socket } from 'node:net'
import { sourceFromAddress } from '../../src/storage/sources.ts'

export interface ConnectionLimits {
  readonly inAll: number
  readonly ofOneAddress: number
}

export class Connections {
  readonly #limits: ConnectionLimits
  readonly #byAddress = new Map<string, number>()
  readonly #open = new Set<Socket>()

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** How many are open. */
  get size(): number {
    return this.#open.size
  }

  /**
   * Counts a connection until it closes. Beyond the limit it is cut before the handshake, which is the costly part.
   * @returns false if it was cut
   */
  admit(socket: Socket): boolean {
    const source = sourceFromAddress(socket.remoteAddress ?? '')
    const ofSource = this.#byAddress.get(source) ?? 0
    if (this.#open.size >= this.#limits.inAll || ofSource >= this.#limits.ofOneAddress) {
      socket.destroy()
      return false
    }
    this.#open.add(socket)
    this.#byAddress.set(source, ofSource + 1)
    socket.once('close', () => this.#release(socket, source))
    return true
  }

  /** Cuts the connections from which nothing has arrived: they have not begun a handshake. */
  cutSilent(): void {
    for (const socket of this.#open) if (socket.bytesRead === 0) socket.destroy()
  }

  cutAll(): void {
    for (const socket of this.#open) socket.destroy()
  }

  #release(socket: Socket, source: string): void {
    this.#open.delete(socket)
    const left = (this.#byAddress.get(source) ?? 1) - 1
    if (left > 0) this.#byAddress.set(source, left)
    else this.#byAddress.delete(source)
  }
}
