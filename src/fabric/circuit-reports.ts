// What routers report of circuits: results of routes, faults, and that circuits carry no data.
import type { Kysely } from 'kysely'
import type { Clock } from '../clock.ts'
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'
import type { RouteResult } from '../routers/router-connection.ts'
import type { Database } from '../store/database.ts'
import { isOneOf } from '../store/untyped.ts'
import type { CircuitIds } from './circuit-ids.ts'
import type { Circuit } from './circuit-table.ts'
import type { Circuits } from './circuits.ts'
import { type IdleReport, InheritedCircuits } from './inherited-circuits.ts'
import { REROUTE_ATTEMPT, type Rerouting } from './rerouting.ts'
import type { RouteResults } from './route-results.ts'

interface Collaborators {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly circuits: Circuits
  readonly ids: CircuitIds
  readonly rerouting: Rerouting
  readonly results: RouteResults
}

/** A router is believed only about circuits that pass it. */
export class CircuitReports {
  readonly inherited = new InheritedCircuits()
  readonly #parts: Collaborators

  constructor(parts: Collaborators) {
    this.#parts = parts
  }

  /** Takes the result of a route. Of a circuit that is not being created any more, the router drops what it holds. */
  takeRouteResult(router: ConnectedRouter, result: RouteResult): void {
    const { results, circuits } = this.#parts
    if (results.report(router.id, result)) return
    const isOnPath = circuits.get(result.circuitId)?.path.routerIds.includes(router.id)
    if (result.attempt !== REROUTE_ATTEMPT && !isOnPath) router.connection.sendUnroute(result.circuitId, true)
  }

  /** One end of a circuit closed the connection. Data that is on its way is still delivered. */
  takeEnd(router: ConnectedRouter, circuitId: string, end: 'client' | 'terminator'): void {
    const { circuits, connected, ids, results } = this.#parts
    const circuit = circuits.get(circuitId)
    if (circuit) {
      if (passes(circuit, router)) circuits.remove(circuitId, false)
    } else if (results.has(circuitId)) {
      if (end === 'terminator') results.reportEnd(router.id, circuitId)
    } else if (ids.parseEarlier(circuitId)) {
      for (const routerId of new Set([router.id, ...this.inherited.end(circuitId)]))
        connected.get(routerId)?.connection.sendUnroute(circuitId, false)
    }
  }

  /**
   * A router could not forward data of these circuits.
   * @param isOwner whether the router knows the circuit: if neither it nor this process does, it ends
   */
  takeForwardFaults(router: ConnectedRouter, circuitIds: readonly string[], isOwner: boolean): void {
    const { circuits, connected, ids, rerouting, results } = this.#parts
    for (const circuitId of new Set(circuitIds)) {
      const circuit = circuits.get(circuitId)
      if (circuit) {
        if (passes(circuit, router)) rerouting.request(circuitId)
      } else if (isOwner && !results.has(circuitId)) {
        const routerIds = ids.parseEarlier(circuitId) ? this.inherited.end(circuitId) : []
        for (const routerId of new Set([router.id, ...routerIds]))
          connected.get(routerId)?.connection.sendUnroute(circuitId, true)
      }
    }
  }

  /** Circuits carry no data. Those that have done so for too long end, and a router drops those that are not its own. */
  async takeIdleReports(router: ConnectedRouter, reports: readonly IdleReport[]): Promise<void> {
    const maxIdleTimes = await this.#readMaxIdleTimes(reports)
    for (const report of reports) this.#takeIdleReport(router, report, maxIdleTimes)
  }

  /** Ends a circuit of an earlier process, at the routers that reported it. Returns whether any has. */
  endInherited(circuitId: string, isImmediate: boolean): boolean {
    const routerIds = this.inherited.end(circuitId)
    for (const routerId of routerIds)
      this.#parts.connected.get(routerId)?.connection.sendUnroute(circuitId, isImmediate)
    return routerIds.length > 0
  }

  #takeIdleReport(router: ConnectedRouter, report: IdleReport, maxIdleTimes: ReadonlyMap<string, number>): void {
    const { circuits, clock, ids, rerouting, results } = this.#parts
    const { circuitId, idleMs } = report
    const circuit = circuits.get(circuitId)
    const drop = () => router.connection.sendUnroute(circuitId, true)
    if (circuit) {
      const { routerIds } = circuit.path
      if (!passes(circuit, router)) {
        if (!rerouting.has(circuitId)) drop()
      } else if (routerIds[0] === router.id || routerIds.at(-1) === router.id) {
        circuits.setIdleSince(circuitId, clock.now() - idleMs)
        const maxIdleMs = maxIdleTimes.get(circuit.serviceId) ?? 0
        if (maxIdleMs > 0 && idleMs > maxIdleMs) circuits.remove(circuitId, true)
      }
    } else if (!results.has(circuitId)) {
      const earlier = ids.parseEarlier(circuitId)
      if (!earlier || this.inherited.report(router.id, report, earlier, clock.now())) drop()
    }
  }

  /** Service → the longest time without data, as the service is configured now. */
  async #readMaxIdleTimes(reports: readonly IdleReport[]): Promise<ReadonlyMap<string, number>> {
    const { db, circuits } = this.#parts
    const serviceIds = new Set(reports.flatMap(({ circuitId }) => circuits.get(circuitId)?.serviceId ?? []))
    if (serviceIds.size === 0) return new Map()
    const rows = await db
      .selectFrom('services')
      .select(['id', 'maxIdleTimeMillis'])
      .where(isOneOf(db, 'id', [...serviceIds]))
      .execute()
    return new Map(rows.map(({ id, maxIdleTimeMillis }) => [id, maxIdleTimeMillis]))
  }
}

function passes({ path }: Circuit, { id }: ConnectedRouter): boolean {
  return path.routerIds.includes(id)
}
