// Moves circuits to other paths, without their ends noticing.

import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Path, PathFinder } from '../links/path.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import { ROUTE_TIMEOUT_MS } from './circuit-creation.ts'
import type { CircuitIds } from './circuit-ids.ts'
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

/** The outcome of moving a circuit to another path: unchanged if no router of its path was sent a route. */
type Move = 'done' | 'unchanged' | 'broken'

/** A circuit that is being moved: whether it is to be moved once more, because something changed meanwhile, and has to be. */
interface Run {
  isRepeated: boolean
  isRequired: boolean
}

interface ReroutingParts {
  readonly clock: Clock
  readonly aggregatedLog: AggregatedLog
  readonly circuits: Circuits
  readonly connected: ConnectedRouters
  readonly ids: CircuitIds
  readonly paths: PathFinder
  readonly results: RouteResults
  readonly unroutes: Unroutes
}

export class Rerouting {
  readonly #parts: ReroutingParts
  /** By circuit: whether its path cannot carry data any more. */
  readonly #queue = new Map<string, boolean>()
  readonly #running = new Map<string, Run>()

  constructor(parts: ReroutingParts) {
    this.#parts = parts
  }

  /** Whether a circuit is being moved, or waits for it: then its routers may not agree on its path. */
  has(circuitId: string): boolean {
    return this.#queue.has(circuitId) || this.#running.has(circuitId)
  }

  /** Moves a circuit to the best path, or removes it if none is left. Never twice at once. */
  request(circuitId: string): void {
    this.#enqueue(circuitId, true)
  }

  /** The same for a circuit whose path may still carry data: it stays as it is if no other path can be used. */
  requestIfPossible(circuitId: string): void {
    this.#enqueue(circuitId, false)
  }

  #enqueue(circuitId: string, isRequired: boolean): void {
    const running = this.#running.get(circuitId)
    if (running) {
      running.isRepeated = true
      running.isRequired ||= isRequired
    } else this.#queue.set(circuitId, isRequired || this.#queue.get(circuitId) === true)
    this.#runNext()
  }

  #runNext(): void {
    for (const [circuitId, isRequired] of this.#queue) {
      if (this.#running.size >= MAX_CONCURRENT) return
      this.#queue.delete(circuitId)
      const run = { isRepeated: false, isRequired }
      this.#running.set(circuitId, run)
      void this.#run(circuitId, run)
    }
  }

  async #run(circuitId: string, run: Run): Promise<void> {
    try {
      do {
        const { isRequired } = run
        Object.assign(run, { isRepeated: false, isRequired: false })
        await this.#reroute(circuitId, isRequired)
      } while (run.isRepeated)
    } catch (error) {
      this.#parts.aggregatedLog.error('', { err: error, circuitId }, 'a circuit could not be rerouted')
      this.#parts.circuits.remove(circuitId, true)
    } finally {
      this.#running.delete(circuitId)
      this.#runNext()
    }
  }

  async #reroute(circuitId: string, isRequired: boolean): Promise<void> {
    const { aggregatedLog, circuits, paths } = this.#parts
    let isBroken = isRequired
    for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt += 1) {
      const circuit = circuits.get(circuitId)
      if (!circuit) return
      const path = paths.findPath(circuit.path.routerIds[0]!, circuit.path.routerIds.at(-1)!)
      if (!path) break
      const move = await this.#apply(circuit, path)
      if (move === 'done') return
      if (move === 'broken') isBroken = true
      if (!isBroken) return
    }
    if (!isBroken || !circuits.remove(circuitId, true)) return
    aggregatedLog.info('', { circuitId }, 'a circuit ended because no other path leads to its terminator')
  }

  /**
   * Has the routers of a path forward the data of a circuit, one after the other: those between the ends first, so that data
   * does not reach a router that does not know the circuit yet.
   */
  async #apply(circuit: Circuit, path: Path): Promise<Move> {
    const { circuits, connected, ids, unroutes } = this.#parts
    const earlier = circuit.path
    const parts = planRoutes(path, circuit)
    const ends = parts.length === 1 ? parts : [parts[0]!, parts.at(-1)!]
    const routedIds: string[] = []
    let isChanged = false
    const leave = (routerIds: readonly string[], remaining: readonly string[], isImmediate: boolean) => {
      for (const routerId of routerIds) {
        if (!remaining.includes(routerId)) unroutes.send(routerId, circuit.id, isImmediate)
      }
    }
    for (const part of [...parts.slice(1, -1), ...ends]) {
      routedIds.push(part.routerId)
      const outcome = await this.#route(circuit.id, part)
      // A router that was lost meanwhile probably did not receive the route; if it did, it reports faults after it reconnects.
      isChanged ||= earlier.routerIds.includes(part.routerId) && connected.get(part.routerId) !== undefined
      if (!circuits.get(circuit.id)) {
        // It ended meanwhile, and its earlier routers were told; or it was left to another process, and goes on.
        if (!ids.parseEarlier(circuit.id)) leave(routedIds, [], true)
        return 'done'
      }
      if (!outcome.isSuccess) {
        leave(routedIds, earlier.routerIds, true)
        return isChanged ? 'broken' : 'unchanged'
      }
    }
    circuits.setPath(circuit.id, path)
    leave(earlier.routerIds, path.routerIds, false)
    return 'done'
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
