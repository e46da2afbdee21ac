// How many connections there may be, in all and from one address: counted before anything is read from them.
import { isIPv6, type Socket } from 'node:net'

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

  /** Counts a connection until it closes. One too many is cut at once: a handshake would cost more than all the rest. */
  admit(socket: Socket): void {
    const source = sourceOf(socket.remoteAddress ?? '')
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

/** Whom an address belongs to: of IPv6 the first half, because that is what one customer of a provider has to himself. */
export function sourceOf(address: string): string {
  const bare = address.replace(/^::ffff:(?=\d+\.)/i, '')
  if (!isIPv6(bare)) return bare
  const [head = '', tail] = (bare.split('%')[0] ?? '').split('::')
  const groups = head === '' ? [] : head.split(':')
  const after = tail === undefined || tail === '' ? [] : tail.split(':')
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - groups.length - after.length }, () => '0')
  return `${[...groups, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}
