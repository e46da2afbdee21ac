// Adds to the cost of terminators for their load and their failures.
import type { Clock } from '../../foundation/clock.ts'

const COST_OF_CIRCUIT = 2
const COST_OF_FAILURE = 20
const CREDIT_OF_SUCCESS = 2

// Failures are forgiven faster the longer none follows: 10 after one minute, 20 more after the next, and so on.
const CREDIT_PERIOD_MS = 60_000
const FIRST_CREDIT = 10

/** The highest cost, as of every cost of a terminator. */
export const MAX_TERMINATOR_COST = 65_535

interface TerminatorLoad {
  circuits: number
  failureCost: number
  lastFailureAt: number
}

/** In memory only: after a start every terminator is as good as its record says. */
export class TerminatorCosts {
  readonly #clock: Clock
  readonly #loads = new Map<string, TerminatorLoad>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** The cost that is added to that of a terminator now: 0 to 65535. */
  get(terminatorId: string): number {
    const load = this.#loads.get(terminatorId)
    if (!load) return 0
    return Math.min(MAX_TERMINATOR_COST, load.circuits * COST_OF_CIRCUIT + this.#computeFailureCost(load))
  }

  /** Notes that a circuit to the terminator was opened. */
  addCircuit(terminatorId: string): void {
    const load = this.#getOrAdd(terminatorId)
    load.circuits += 1
    load.failureCost = Math.max(0, load.failureCost - CREDIT_OF_SUCCESS)
  }

  /** Notes that a circuit to the terminator ended. */
  removeCircuit(terminatorId: string): void {
    const load = this.#loads.get(terminatorId)
    if (!load) return
    load.circuits = Math.max(0, load.circuits - 1)
    if (load.circuits === 0 && this.#computeFailureCost(load) === 0) this.#loads.delete(terminatorId)
  }

  /** Notes that the terminator could not be reached. */
  addFailure(terminatorId: string): void {
    const load = this.#getOrAdd(terminatorId)
    load.failureCost = Math.min(MAX_TERMINATOR_COST, this.#computeFailureCost(load) + COST_OF_FAILURE)
    load.lastFailureAt = this.#clock.monotonic()
  }

  /** Drops what is stored of a terminator that was deleted. */
  remove(terminatorId: string): void {
    this.#loads.delete(terminatorId)
  }

  #getOrAdd(terminatorId: string): TerminatorLoad {
    let load = this.#loads.get(terminatorId)
    if (!load) {
      load = { circuits: 0, failureCost: 0, lastFailureAt: 0 }
      this.#loads.set(terminatorId, load)
    }
    return load
  }

  #computeFailureCost({ failureCost, lastFailureAt }: TerminatorLoad): number {
    if (failureCost === 0) return 0
    const quietPeriods = Math.floor((this.#clock.monotonic() - lastFailureAt) / CREDIT_PERIOD_MS)
    return Math.max(0, failureCost - FIRST_CREDIT * (2 ** quietPeriods - 1))
  }
}
