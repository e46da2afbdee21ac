// Ends the circuits that administrators delete.
//
// A router that is to deliver the data that is on its way keeps a circuit for as long as data arrives, so that a connection in
// use would never end.
import type { Clock } from '../../foundation/clock.ts'
import type { Circuits } from './circuits.ts'
import type { InheritedCircuits } from './inherited-circuits.ts'
import type { Unroutes } from './unroutes.ts'

// Routers look after five seconds whether data still arrives.
const DELIVERY_GRACE_MS = 10_000

interface CircuitDeletionParts {
  readonly clock: Clock
  readonly circuits: Circuits
  readonly inherited: InheritedCircuits
  readonly unroutes: Unroutes
}

interface DeletedCircuit {
  readonly id: string
  readonly routerIds: readonly string[]
  readonly dueAt: number
}

export class CircuitDeletion {
  readonly #parts: CircuitDeletionParts
  /** Circuits that routers may still carry, in order of the time at which they drop them. */
  readonly #delivering: DeletedCircuit[] = []

  constructor(parts: CircuitDeletionParts) {
    this.#parts = parts
  }

  /**
   * Ends a circuit at its routers, or one of an earlier process at those that reported it.
   * @param isImmediate false if routers first deliver the data that is on its way
   */
  end(id: string, isImmediate: boolean): void {
    const { clock, circuits, inherited, unroutes } = this.#parts
    const circuit = circuits.get(id)
    const routerIds = circuit ? circuit.path.routerIds : inherited.end(id)
    if (circuit) circuits.remove(id, isImmediate)
    else for (const routerId of routerIds) unroutes.send(routerId, id, isImmediate)
    if (!isImmediate) this.#delivering.push({ id, routerIds, dueAt: clock.monotonic() + DELIVERY_GRACE_MS })
  }

  /** Has routers drop what they still carry after their time to deliver. */
  tick(): void {
    const { clock, unroutes } = this.#parts
    const now = clock.monotonic()
    while ((this.#delivering[0]?.dueAt ?? Number.POSITIVE_INFINITY) <= now) {
      const { id, routerIds } = this.#delivering.shift()!
      for (const routerId of routerIds) unroutes.send(routerId, id, true)
    }
  }
}
