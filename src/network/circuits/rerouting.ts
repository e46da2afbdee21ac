// Moves circuits to other paths, without their ends noticing.

import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Path, PathFinder } from '../links/path.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import { ROUTE_TIMEOUT_MS } from './circuit-creation.ts'
import type { Circuit } from './circuit-table.ts'
import type { Circuits } from './circuits.ts'
import { planRoutes, type RouterPart } from './route-plan.ts'
import type { RouteOutcome, RouteResults } from './route-results.ts'
import type { Unroutes } from './unroutes.ts'

/** By this number routers report that a route replaces another one. */
export const REROUTE_ATTEMPT = 99_969_996

const MAX_ATTEMPTS = 2

// A lost link may carry thousands of circuits; its routers are not flooded with all their routes at once.
const MAX_CONCURRENT = 100

interface ReroutingParts {
  readonly clock: Clock
  readonly aggregatedLog: AggregatedLog
  readonly circuits: Circuits
  readonly connected: ConnectedRouters
  readonly paths: PathFinder
  readonly results: RouteResults
  readonly unroutes: Unroutes
}

export class Rerouting {
  readonly #parts: ReroutingParts
  readonly #queuedIds = new Set<string>()
  /** The circuits that are being moved, and whether to move them once more, because something changed meanwhile. */
  readonly #running = new Map<string, { isRepeated: boolean }>()

  constructor(parts: ReroutingParts) {
    this.#parts = parts
  }

  /** Whether a circuit is being moved, or waits for it: then its routers do not agree on its path. */
  has(circuitId: string): boolean {
    return this.#queuedIds.has(circuitId) || this.#running.has(circuitId)
  }

  /** Moves a circuit to the best path, or removes it if none is left. Never twice at once. */
  request(circuitId: string): void {
    const running = this.#running.get(circuitId)
    if (running) running.isRepeated = true
    else this.#queuedIds.add(circuitId)
    this.#runNext()
  }

  #runNext(): void {
    for (const circuitId of this.#queuedIds) {
      if (this.#running.size >= MAX_CONCURRENT) return
      this.#queuedIds.delete(circuitId)
      this.#running.set(circuitId, { isRepeated: false })
      void this.#run(circuitId)
    }
  }

  async #run(circuitId: string): Promise<void> {
    try {
      do {
        this.#running.set(circuitId, { isRepeated: false })
        await this.#reroute(circuitId)
      } while (this.#running.get(circuitId)?.isRepeated)
    } catch (error) {
      this.#parts.aggregatedLog.error('', { err: error, circuitId }, 'a circuit could not be rerouted')
      this.#parts.circuits.remove(circuitId, true)
    } finally {
      this.#running.delete(circuitId)
      this.#runNext()
    }
  }

  async #reroute(circuitId: string): Promise<void> {
    const { aggregatedLog, circuits, paths } = this.#parts
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const circuit = circuits.get(circuitId)
      if (!circuit) return
      const path = paths.findPath(circuit.path.routerIds[0]!, circuit.path.routerIds.at(-1)!)
      if (!path) break
      if (await this.#apply(circuit, path)) return
    }
    if (!circuits.remove(circuitId, true)) return
    aggregatedLog.info('', { circuitId }, 'a circuit ended because no other path leads to its terminator')
  }

  /**
   * Has the routers of a path forward the data of a circuit, one after the other: those between the ends first, so that data
   * does not reach a router that does not know the circuit yet. Returns whether all succeeded.
   */
  async #apply(circuit: Circuit, path: Path): Promise<boolean> {
    const { circuits, unroutes } = this.#parts
    const earlier = circuit.path
    const parts = planRoutes(path, circuit)
    const ends = parts.length === 1 ? parts : [parts[0]!, parts.at(-1)!]
    const routedIds: string[] = []
    const leave = (routerIds: readonly string[], remaining: readonly string[], isImmediate: boolean) => {
      for (const routerId of routerIds) {
        if (!remaining.includes(routerId)) unroutes.send(routerId, circuit.id, isImmediate)
      }
    }
    for (const part of [...parts.slice(1, -1), ...ends]) {
      routedIds.push(part.routerId)
      const outcome = await this.#route(circuit.id, part)
      if (!circuits.get(circuit.id)) {
        // It ended meanwhile, and its earlier routers were told.
        leave(routedIds, [], true)
        return true
      }
      if (!outcome.isSuccess) {
        leave(routedIds, earlier.routerIds, true)
        return false
      }
    }
    circuits.setPath(circuit.id, path)
    leave(earlier.routerIds, path.routerIds, false)
    return true
  }

  #route(circuitId: string, { routerId, forwards }: RouterPart): Promise<RouteOutcome> {
    const { clock, connected, results } = this.#parts
    const deadline = clock.monotonic() + ROUTE_TIMEOUT_MS
    return new Promise((resolve) => {
      results.wait({ circuitId, attempt: REROUTE_ATTEMPT, routerIds: [routerId], deadline }, resolve)
      const router = connected.get(routerId)
      if (!router) return results.loseRouter(routerId)
      const route = { circuitId, attempt: REROUTE_ATTEMPT, forwards, tags: {}, timeoutMs: ROUTE_TIMEOUT_MS }
      router.connection.sendRoute(route)
    })
  }
}
