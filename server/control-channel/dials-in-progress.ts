// Bounds the memory of dials that are being handled: of each router by their number, and of all routers together in bytes.
import type { Message } from './message.ts'

/** The dials in progress of one router. */
export interface DialShare {
  count: number
  bytes: number
}

/** The reason why a dial is not handled. */
export type DialObjection = 'too-many' | 'too-long' | 'busy'

/** All that a dial holds while it waits for routers. */
const MAX_BYTES = 64 * 1024 * 1024

// More than all that a dial may carry.
const MAX_BYTES_OF_DIAL = 64 * 1024

// The memory that a dial takes besides its message: promises, and the values that are read from it.
const OVERHEAD_BYTES = 8 * 1024

// A router sends as many at a time only if it does not wait for any reply.
const MAX_DIALS_OF_ROUTER = 5_000

export class DialsInProgress {
  #bytes = 0

  /**
   * Reserves memory for a dial. A router gets no more than what is left for the others, so that none takes all of it.
   * @returns what releases it, or why there is none
   */
  begin(share: DialShare, message: Pick<Message, 'headers' | 'body'>): (() => void) | DialObjection {
    if (share.count >= MAX_DIALS_OF_ROUTER) return 'too-many'
    const size = countBytes(message)
    if (size > MAX_BYTES_OF_DIAL) return 'too-long'
    const bytes = size + OVERHEAD_BYTES
    if (share.bytes + bytes > MAX_BYTES - this.#bytes - bytes) return 'busy'
    this.#add(share, 1, bytes)
    return () => this.#add(share, -1, -bytes)
  }

  #add(share: DialShare, count: number, bytes: number): void {
    share.count += count
    share.bytes += bytes
    this.#bytes += bytes
  }
}

function countBytes({ headers, body }: Pick<Message, 'headers' | 'body'>): number {
  let bytes = body.length
  for (const value of headers.values()) bytes += value.length
  return bytes
}
