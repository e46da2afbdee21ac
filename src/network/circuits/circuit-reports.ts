// Follows the reports of routers about circuits: results of routes, faults, and circuits that carry no data.
import { setImmediate } from 'node:timers/promises'
import type { Kysely } from 'kysely'
import type { Clock } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { ConnectedRouter, ConnectedRouters } from '../routers/connected-routers.ts'
import type { RouteResult } from '../routers/router-connection.ts'
import type { CircuitIds, EarlierCircuitId } from './circuit-ids.ts'
import type { Circuit } from './circuit-table.ts'
import type { Circuits } from './circuits.ts'
import { type IdleReport, InheritedCircuits } from './inherited-circuits.ts'
import { REROUTE_ATTEMPT, type Rerouting } from './rerouting.ts'
import type { RouteResults } from './route-results.ts'
import type { Unroutes } from './unroutes.ts'

interface CircuitReportsParts {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly connected: ConnectedRouters
  readonly circuits: Circuits
  readonly ids: CircuitIds
  readonly rerouting: Rerouting
  readonly results: RouteResults
  readonly unroutes: Unroutes
  /** The names of the other controllers that run. */
  listLiveNodes(): readonly string[]
}

// How many circuits of one message are handled before everything else gets its turn.
const CIRCUITS_IN_ONE_TURN = 250

// How many circuits a router is told to drop in response to one message. It reports the others again.
const MAX_UNROUTES = 1_000

/** A router is believed only about circuits that pass it. */
export class CircuitReports {
  readonly inherited = new InheritedCircuits()
  readonly #parts: CircuitReportsParts

  constructor(parts: CircuitReportsParts) {
    this.#parts = parts
  }

  /** Takes the result of a route. Of a circuit that is not being created any more, the router drops what it holds. */
  takeRouteResult(router: ConnectedRouter, result: RouteResult): void {
    const { results, circuits, unroutes } = this.#parts
    if (results.report(router.id, result)) {
      // A failure for the lack of the attempt only: the router may hold its part.
      if (result.attempt === undefined) router.connection.sendUnroute(result.circuitId, true)
      return
    }
    unroutes.reportArrived(router.id, result.circuitId)
    const isOnPath = circuits.get(result.circuitId)?.path.routerIds.includes(router.id)
    if (result.attempt !== REROUTE_ATTEMPT && !isOnPath) router.connection.sendUnroute(result.circuitId, true)
  }

  /** One end of a circuit closed the connection. Data that is on its way is still delivered. */
  takeEnd(router: ConnectedRouter, circuitId: string, end: 'client' | 'terminator'): void {
    const { circuits, ids, results } = this.#parts
    const circuit = circuits.get(circuitId)
    if (circuit) {
      if (passes(circuit, router)) circuits.remove(circuitId, false)
    } else if (results.has(circuitId)) {
      if (end === 'terminator') results.reportEnd(router.id, circuitId)
    } else if (ids.parseEarlier(circuitId)) {
      this.#dropInherited(router, circuitId, false)
    }
  }

  /**
   * Whether another controller has a circuit, and decides about it. Of the circuits over routers that are connected to one controller at a
   * time, the one that has the routers decides.
   */
  #isElsewhere(router: ConnectedRouter, earlier: EarlierCircuitId | undefined): boolean {
    if (!earlier || router.hello.isInTurn) return false
    return this.#parts.listLiveNodes().some((node) => earlier.isMadeBy(node))
  }

  /**
   * A router could not forward data of these circuits.
   * @param isOwner whether the router knows the circuit: if neither it nor this process does, it ends
   */
  async takeForwardFaults(router: ConnectedRouter, circuitIds: readonly string[], isOwner: boolean): Promise<void> {
    const { circuits, rerouting, results } = this.#parts
    let unrouteCount = 0
    await this.#takeInTurns(router, [...new Set(circuitIds)], (circuitId) => {
      const circuit = circuits.get(circuitId)
      if (circuit) {
        if (passes(circuit, router)) rerouting.request(circuitId)
      } else if (isOwner && !results.has(circuitId) && unrouteCount < MAX_UNROUTES) {
        unrouteCount += 1
        this.#dropInherited(router, circuitId, true)
      }
    })
  }

  /** Circuits carry no data. Those that have done so for too long end, and a router drops those that are not its own. */
  async takeIdleReports(router: ConnectedRouter, reports: readonly IdleReport[]): Promise<void> {
    const maxIdleTimes = await this.#readMaxIdleTimes(reports)
    let unrouteCount = 0
    await this.#takeInTurns(router, reports, (report) => {
      if (!this.#takeIdleReport(router, report, maxIdleTimes) || unrouteCount >= MAX_UNROUTES) return
      unrouteCount += 1
      router.connection.sendUnroute(report.circuitId, true)
    })
  }

  /** Takes the entries of a message, some in each turn of the event loop, until the router is connected no more. */
  async #takeInTurns<T>(router: ConnectedRouter, entries: readonly T[], take: (entry: T) => void): Promise<void> {
    for (let at = 0; at < entries.length; at += CIRCUITS_IN_ONE_TURN) {
      if (at > 0) await setImmediate()
      if (this.#parts.connected.get(router.id) !== router) return
      for (const entry of entries.slice(at, at + CIRCUITS_IN_ONE_TURN)) take(entry)
    }
  }

  /** Has a router drop a circuit that this process does not know, and the others that reported it, if the router is on its path. */
  #dropInherited(router: ConnectedRouter, circuitId: string, isImmediate: boolean): void {
    const { ids, unroutes } = this.#parts
    const earlier = ids.parseEarlier(circuitId)
    if (this.#isElsewhere(router, earlier)) return
    const routerIds = earlier?.isOnPath(router.id) ? this.inherited.end(circuitId) : []
    for (const routerId of new Set([router.id, ...routerIds])) unroutes.send(routerId, circuitId, isImmediate)
  }

  /** Follows a report. Returns whether the router has to drop the circuit. */
  #takeIdleReport(router: ConnectedRouter, report: IdleReport, maxIdleTimes: ReadonlyMap<string, number>): boolean {
    const { circuits, clock, ids, rerouting, results } = this.#parts
    const { circuitId, idleMs } = report
    const circuit = circuits.get(circuitId)
    if (!circuit) {
      if (results.has(circuitId)) return false
      const earlier = ids.parseEarlier(circuitId)
      if (this.#isElsewhere(router, earlier)) return false
      return !earlier || this.inherited.report(router.id, report, earlier, clock.now())
    }
    const { routerIds } = circuit.path
    if (!passes(circuit, router)) return !rerouting.has(circuitId)
    if (routerIds[0] === router.id || routerIds.at(-1) === router.id) {
      circuits.setIdleSince(circuitId, clock.now() - idleMs)
      const maxIdleMs = maxIdleTimes.get(circuit.serviceId) ?? 0
      if (maxIdleMs > 0 && idleMs > maxIdleMs) circuits.remove(circuitId, true)
    }
    return false
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
