// Has routers drop a circuit that has ended; those that are not connected at that moment do so when they return.
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'

// A connected router that never reports is broken: what it owes is bounded.
const MAX_AWAITED_REPORTS = 10_000

/**
 * A router that loses only the connection to its controller still forwards data, and reports a circuit by itself only if it is
 * idle. Without what is kept here, a circuit in use would outlive the right to it.
 */
export class Unroutes {
  readonly #connected: ConnectedRouters
  /**
   * Router → the circuits that it may still carry when it connects again; routers that carry none are missing. There are never more than
   * it carried, or was to carry, when it lost its connection, because no circuit begins at a router that is not connected.
   */
  readonly #owed = new Map<string, Set<string>>()

  constructor(connected: ConnectedRouters) {
    this.#connected = connected
  }

  /**
   * Has a router drop a circuit, now or when it connects again.
   * @param isImmediate false if it still delivers the data that is on its way
   */
  send(routerId: string, circuitId: string, isImmediate: boolean): void {
    const router = this.#connected.get(routerId)
    if (router) router.connection.sendUnroute(circuitId, isImmediate)
    else this.#owe(routerId, circuitId)
  }

  /**
   * Notes that a router has not reported yet what became of its part of a circuit that has failed. A late success is undone when it arrives;
   * if it is lost with the connection, the router drops its part when it connects again.
   */
  awaitReport(routerId: string, circuitId: string): void {
    if ((this.#owed.get(routerId)?.size ?? 0) < MAX_AWAITED_REPORTS) this.#owe(routerId, circuitId)
  }

  /** Notes that a router has reported what became of its part of a circuit. */
  reportArrived(routerId: string, circuitId: string): void {
    const owed = this.#owed.get(routerId)
    if (owed?.delete(circuitId) && owed.size === 0) this.#owed.delete(routerId)
  }

  #owe(routerId: string, circuitId: string): void {
    const owed = this.#owed.get(routerId)
    if (owed) owed.add(circuitId)
    else this.#owed.set(routerId, new Set([circuitId]))
  }

  /** Has a router that connected drop what ended while it was away. */
  sendOwed({ id, connection }: ConnectedRouter): void {
    for (const circuitId of this.#owed.get(id) ?? []) connection.sendUnroute(circuitId, true)
    this.#owed.delete(id)
  }

  /** Notes that a router will not return. */
  routerDeleted(routerId: string): void {
    this.#owed.delete(routerId)
  }
}
