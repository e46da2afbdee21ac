// Limits connections, in total and from one address, before anything is read from them.
import type { Socket } from 'node:net'
import { sourceFromAddress } from '../src/sources.ts'

export interface ConnectionLimits {
  readonly inAll: number
  readonly ofOneAddress: number
}

export class Connections {
  readonly #limits: ConnectionLimits
  readonly #byAddress = new Map<string, number>()
  #open = 0

  constructor(limits: ConnectionLimits) {
    this.#limits = limits
  }

  /** Counts a connection until it closes. Beyond the limit it is cut before the handshake, which is the costly part. */
  admit(socket: Socket): void {
    const source = sourceFromAddress(socket.remoteAddress ?? '')
    const ofSource = this.#byAddress.get(source) ?? 0
    if (this.#open >= this.#limits.inAll || ofSource >= this.#limits.ofOneAddress) {
      socket.destroy()
      return
    }
    this.#open += 1
    this.#byAddress.set(source, ofSource + 1)
    socket.once('close', () => this.#release(source))
  }

  #release(source: string): void {
    this.#open -= 1
    const left = (this.#byAddress.get(source) ?? 1) - 1
    if (left > 0) this.#byAddress.set(source, left)
    else this.#byAddress.delete(source)
  }
}
