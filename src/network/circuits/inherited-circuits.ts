// Circuits that an earlier process of the controller created, and that routers still carry: left alone while they are in use.
//
// A circuit is in use until a router reports a fault, or until the time is over for which the id says that it may be idle
// (`circuit-ids.ts`). Only the controller can compute the marks of routers in the id, so no other router that knows the id
// can end the circuit. The controller does not know who dialed; the routers do.
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { EarlierCircuitId } from './circuit-ids.ts'

/** The part of such a circuit that its routers report, which they do only while it is idle. */
export interface InheritedCircuit {
  readonly id: string
  /** The routers that reported it. */
  readonly routerIds: readonly string[]
  readonly firstReportedAt: Instant
  readonly idleSince: Instant
}

/** A router says that a circuit has carried no data for some time. */
export interface IdleReport {
  readonly circuitId: string
  readonly idleMs: number
}

// Its routers may not all have learned that it ended; without a limit of its own a circuit ends after a day without data.
const MAX_IDLE_MS = 24 * 60 * 60_000

// More are left alone, too, but not listed.
const MAX_CIRCUITS = 100_000
const MAX_ENDED = 100_000

interface InheritedEntry {
  readonly routerIds: Set<string>
  readonly firstReportedAt: Instant
  idleSince: Instant
}

export class InheritedCircuits {
  readonly #byId = new Map<string, InheritedEntry>()
  readonly #endedIds = createBoundedCache<true>(MAX_ENDED)

  list(): InheritedCircuit[] {
    return Array.from(this.#byId, ([id, { routerIds, ...times }]) => ({ id, routerIds: [...routerIds], ...times }))
  }

  /** Follows a report. Returns whether the circuit has ended: then the router has to drop it. */
  report(routerId: string, { circuitId, idleMs }: IdleReport, earlier: EarlierCircuitId, now: Instant): boolean {
    if (this.#endedIds.has(circuitId)) return true
    if (idleMs > Math.min(earlier.maxIdleMs ?? MAX_IDLE_MS, MAX_IDLE_MS)) return true
    // The circuit may have moved to the router later, but nothing proves it.
    if (!earlier.isOnPath(routerId)) return false
    const idleSince = now - idleMs
    const entry = this.#byId.get(circuitId)
    if (entry) {
      entry.routerIds.add(routerId)
      entry.idleSince = Math.max(entry.idleSince, idleSince)
    } else if (this.#byId.size < MAX_CIRCUITS) {
      this.#byId.set(circuitId, { routerIds: new Set([routerId]), firstReportedAt: now, idleSince })
    }
    return false
  }

  /** Ends a circuit. Returns the routers that reported it; others learn it when they do. */
  end(circuitId: string): readonly string[] {
    const entry = this.#byId.get(circuitId)
    this.#byId.delete(circuitId)
    this.#endedIds.set(circuitId, true)
    return entry ? [...entry.routerIds] : []
  }

  /** Drops what a router reported whose process ended: its circuits ended with it. */
  loseRouter(routerId: string): void {
    for (const [id, { routerIds }] of this.#byId) {
      if (!routerIds.delete(routerId)) continue
      if (routerIds.size === 0) this.#byId.delete(id)
    }
  }
}
