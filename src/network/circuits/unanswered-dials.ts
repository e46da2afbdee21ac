// The dials that hosts have not responded to: a host that accepts one connection after the other does not recover from a backlog as old as clients wait.
//
// Each connection that it accepts then is one whose client has just given up, and it waits for that client until the circuit has ended. So at a constant rate of dials, all
// of them fail for as long as it lasts. Without new ones for some seconds, what waits at the host ends, and it accepts connections again.
import type { Clock } from '../../foundation/clock.ts'

// Half of the time after which clients give up.
const MAX_RESPONSE_MS = 2_500

// A few of them may wait for something else, such as a server that does not respond.
const MIN_UNANSWERED = 4

export class UnansweredDials {
  readonly #clock: Clock
  /** Terminator → when each of its dials began, in that order, by the monotonic clock. */
  readonly #beginnings = new Map<string, number[]>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns what ends it. */
  begin(terminatorId: string): () => void {
    const at = this.#clock.monotonic()
    const beginnings = this.#beginnings.get(terminatorId) ?? []
    this.#beginnings.set(terminatorId, beginnings)
    beginnings.push(at)
    return () => {
      beginnings.splice(beginnings.indexOf(at), 1)
      if (beginnings.length === 0) this.#beginnings.delete(terminatorId)
    }
  }

  /** Whether the host has let so many dials wait that more would wait for longer than their clients do. */
  hasBacklog(terminatorId: string): boolean {
    const since = this.#beginnings.get(terminatorId)?.[MIN_UNANSWERED - 1]
    return since !== undefined && this.#clock.monotonic() - since > MAX_RESPONSE_MS
  }
}
