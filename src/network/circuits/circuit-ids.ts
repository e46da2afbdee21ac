// The ids of circuits and of their ends. Routers keep circuits longer than a controller lives, so ids say which process made them, and
// prove which routers carry them.
import { createHmac, randomBytes } from 'node:crypto'
import type { Instant } from '../../foundation/clock.ts'

// Ids are sent with the data of circuits, so they are short: a time of 8 characters, 3 for the
// controller if it has others beside it, 96 random bits, and 24 bits for each router.
const RANDOM_BYTES = 12
const MARK_BYTES = 3
const ID = /^([0-9a-z]{8,12})\.([\w-]{16})\.((?:[\w-]{4})+)(?:\.([0-9a-z]{1,8}))?$/
const MAX_LENGTH = 1_000
const RADIX = 36
const TIME_LENGTH = 8
const NODE_MARK_LENGTH = 3

/** The properties that the id of an earlier process's circuit tells. */
export interface EarlierCircuitId {
  /** After how long without data it ends, in milliseconds; undefined if it does not. */
  readonly maxIdleMs: number | undefined
  /** Whether the circuit passed a router when it began. */
  isOnPath(routerId: string): boolean
  /** Whether a controller of this name made it. */
  isMadeBy(node: string): boolean
}

/** A new address of an end of a circuit. */
export function newEndAddress(): string {
  return randomBytes(RANDOM_BYTES).toString('base64url')
}

export class CircuitIds {
  readonly #key: Buffer
  readonly #nodeMark: string
  #startedAt: Instant
  #start: string

  /**
   * @param key outlives the process
   * @param node the name of this controller, if it has others beside it: they may begin at the same moment
   */
  constructor(key: Buffer, startedAt: Instant, node?: string) {
    this.#key = key
    this.#nodeMark = node === undefined ? '' : this.#markNode(node)
    this.#startedAt = startedAt
    this.#start = startedAt.toString(RADIX) + this.#nodeMark
  }

  /** From now on every id that was made before is one of an earlier process. */
  begin(now: Instant): void {
    this.#startedAt = Math.max(now, this.#startedAt + 1)
    this.#start = this.#startedAt.toString(RADIX) + this.#nodeMark
  }

  /**
   * Makes an id. It carries what a later process could not know otherwise: a mark of each router of the path, and the longest time
   * without data.
   * @param maxIdleMs 0 if there is none
   */
  create(routerIds: readonly string[], maxIdleMs: number): string {
    const random = newEndAddress()
    const id = `${this.#start}.${random}.${routerIds.map((routerId) => this.#mark(random, routerId)).join('')}`
    return maxIdleMs === 0 ? id : `${id}.${Math.ceil(maxIdleMs / 1000).toString(RADIX)}`
  }

  /** Reads the id of a circuit that an earlier process made; undefined if this process did, or no controller. */
  parseEarlier(id: string): EarlierCircuitId | undefined {
    const [, start, random = '', marks = '', maxIdleSeconds] = (id.length <= MAX_LENGTH && ID.exec(id)) || []
    if (start === undefined || start === this.#start) return undefined
    const ofPath: readonly string[] = marks.match(/.{4}/g) ?? []
    return {
      isMadeBy: (node) => start.slice(TIME_LENGTH) === this.#markNode(node),
      maxIdleMs: maxIdleSeconds === undefined ? undefined : Number.parseInt(maxIdleSeconds, RADIX) * 1000,
      isOnPath: (routerId) => ofPath.includes(this.#mark(random, routerId)),
    }
  }

  #markNode(node: string): string {
    const digest = createHmac('sha256', this.#key).update(`node ${node}`).digest()
    return (digest.readUInt32BE() % RADIX ** NODE_MARK_LENGTH).toString(RADIX).padStart(NODE_MARK_LENGTH, '0')
  }

  /** Marks a router in the id of a circuit, as only controllers of this network can. */
  #mark(random: string, routerId: string): string {
    const digest = createHmac('sha256', this.#key).update(`${random} ${routerId}`).digest()
    return digest.subarray(0, MARK_BYTES).toString('base64url')
  }
}
