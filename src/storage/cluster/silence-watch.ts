// Notices that another controller does not respond long before its lease has ended: soon, and not with certainty.
//
// A controller that is busy, or far from the database, may be taken for silent. So nothing that is decided by it may harm if it is wrong.
import type { ClusterNodes } from './nodes.ts'

const LOOK_MS = 100

// A heartbeat comes three times in a lease.
const SILENT_LEASES = 0.5

// Routers have long found out by then.
const MAX_SILENT_MS = 300_000

export class SilenceWatch {
  readonly #nodes: ClusterNodes
  readonly #name: string
  readonly #listeners: ((isAny: boolean) => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isReading = false
  #names: readonly string[] = []

  /** @param name that of this controller */
  constructor(nodes: ClusterNodes, name: string) {
    this.#nodes = nodes
    this.#name = name
  }

  start(): void {
    this.#timer = setInterval(() => this.#look(), LOOK_MS).unref()
  }

  close(): void {
    clearInterval(this.#timer)
  }

  /** The other controllers that do not respond, and have not said that they end. */
  get names(): readonly string[] {
    return this.#names
  }

  /** The listener is told whether there are such controllers, when that has changed, and when it is another one. It must not throw. */
  onChange(listener: (isAny: boolean) => void): void {
    this.#listeners.push(listener)
  }

  #look(): void {
    // Only what was read counts: without contact, this controller would take all others for silent.
    if (this.#list(this.#nodes.ageMs).length > 0) this.#read()
    const names = this.#list(0)
    const isEqual = names.length === this.#names.length && names.every((name, at) => name === this.#names[at])
    this.#names = names
    if (!isEqual) for (const listener of this.#listeners) listener(names.length > 0)
  }

  /** Lists the controllers that are silent if none has reported since the rows were read, which is so many milliseconds ago. */
  #list(ageMs: number): string[] {
    const minMs = this.#nodes.leaseMs * SILENT_LEASES
    return this.#nodes.list().flatMap(({ name, hasProcess, silentMs }) => {
      const isSilent = hasProcess && silentMs + ageMs > minMs && silentMs < MAX_SILENT_MS
      return isSilent && name !== this.#name ? [name] : []
    })
  }

  /** Asks before the next heartbeat of this controller would, also whether a controller has come back. */
  #read(): void {
    if (this.#isReading) return
    this.#isReading = true
    const settle = () => {
      this.#isReading = false
    }
    // Without contact, the heartbeat reports it.
    this.#nodes.refresh().then(settle, settle)
  }
}
