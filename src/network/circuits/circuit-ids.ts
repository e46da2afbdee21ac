// The ids of circuits and of their ends. Routers keep circuits longer than a controller lives, so ids say which process made them.
import { randomBytes } from 'node:crypto'
import type { Instant } from '../../foundation/clock.ts'

// Ids are sent with the data of circuits, so they are short: a time of 8 characters, and 96 random bits.
const RANDOM_BYTES = 12
const ID = /^([0-9a-z]{8,9})\.[\w-]{16}(?:\.([0-9a-z]{1,8}))?$/
const RADIX = 36

/** What a circuit of an earlier process says of itself. */
export interface EarlierCircuitId {
  /** After how long without data it ends, in milliseconds; undefined if it does not. */
  readonly maxIdleMs: number | undefined
}

/** A new address of an end of a circuit. */
export function newEndAddress(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

export class CircuitIds {
  readonly #start: string

  constructor(startedAt: Instant) {
    this.#start = startedAt.toString(RADIX)
  }

  /**
   * Makes an id. It carries the longest time without data, which a later process could not know otherwise.
   * @param maxIdleMs 0 if there is none
   */
  create(maxIdleMs: number): string {
    const id = `${this.#start}.${newEndAddress()}`
    return maxIdleMs === 0 ? id : `${id}.${Math.ceil(maxIdleMs / 1000).toString(RADIX)}`
  }

  /** Reads the id of a circuit that an earlier process made; undefined if this process did, or no controller. */
  parseEarlier(id: string): EarlierCircuitId | undefined {
    const [, start, maxIdleSeconds] = ID.exec(id) ?? []
    if (start === undefined || start === this.#start) return undefined
    return { maxIdleMs: maxIdleSeconds === undefined ? undefined : Number.parseInt(maxIdleSeconds, RADIX) * 1000 }
  }
}
