// The circuits of this process: created, found and removed here, and nowhere else.
//
// They are in memory only, because routers forward data without the controller: its restart must not end a connection, and
// a dial must not wait for a disk.

import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { IdentityTraces } from '../identity-traces.ts'
import type { Path, PathFinder } from '../links/path.ts'
import type { ConnectedRouters } from '../routers/connected-routers.ts'
import type { TerminatorCosts } from '../terminators/terminator-costs.ts'
import type { LiveTerminator, TerminatorDirectory } from '../terminators/terminator-directory.ts'
import { CircuitCreation, type CircuitRequest, type CreatedCircuit } from './circuit-creation.ts'
import { CircuitError, CircuitFailures } from './circuit-failures.ts'
import type { CircuitIds } from './circuit-ids.ts'
import type { Circuit, CircuitFilter, CircuitTable } from './circuit-table.ts'
import type { RouteResults } from './route-results.ts'
import type { Unroutes } from './unroutes.ts'

interface CircuitsParts {
  readonly clock: Clock
  readonly aggregatedLog: AggregatedLog
  readonly connected: ConnectedRouters
  readonly costs: TerminatorCosts
  readonly ids: CircuitIds
  readonly paths: PathFinder
  readonly results: RouteResults
  readonly table: CircuitTable
  readonly terminators: Pick<TerminatorDirectory, 'get' | 'listOfService'>
  readonly traces: IdentityTraces
  readonly unroutes: Unroutes
  /** The names of the controllers that a router is connected to; empty if this one is alone. */
  listNodesOf(routerId: string): readonly string[]
  /** The ids of the routers that other controllers have. */
  listIdsElsewhere(): readonly string[]
  /** A random number in [0, 1). */
  readonly random: () => number
  /** Runs if the router of a terminator says that it does not know the address. */
  rejectTerminator(terminator: LiveTerminator): void
}

/** An observer of circuits. */
export interface CircuitObserver {
  circuitBegun(circuit: Circuit): void
  circuitFailed(request: CircuitRequest, error: CircuitError): void
  circuitEnded(circuit: Circuit): void
}

/** In memory only: routers forward the data of a circuit without the controller, also while it restarts. */
export class Circuits {
  readonly failures: CircuitFailures
  readonly #clock: Clock
  readonly #costs: TerminatorCosts
  readonly #table: CircuitTable
  readonly #creation: CircuitCreation
  readonly #traces: IdentityTraces
  readonly #unroutes: Unroutes
  readonly #observers: CircuitObserver[] = []

  constructor({ aggregatedLog, clock, connected, costs, table, traces, unroutes, ...parts }: CircuitsParts) {
    this.failures = new CircuitFailures(aggregatedLog)
    this.#clock = clock
    this.#costs = costs
    this.#table = table
    this.#traces = traces
    this.#unroutes = unroutes
    this.#creation = new CircuitCreation({
      ...parts,
      traces,
      unroutes,
      clock,
      connected,
      costs,
      open: (circuit) => this.#open(circuit),
      countCircuits: (routerId) => this.#table.count('routerId', routerId),
    })
  }

  /** From now on an observer is told about circuits. */
  addObserver(observer: CircuitObserver): void {
    this.#observers.push(observer)
  }

  /**
   * Creates a circuit: its routers forward data when this resolves.
   * @throws CircuitError if no terminator of the service can be reached
   */
  async create(request: CircuitRequest): Promise<CreatedCircuit> {
    try {
      return await this.#creation.create(request)
    } catch (error) {
      if (error instanceof CircuitError) {
        this.failures.add(request.service.id, error)
        this.#traces.recordFailure(request.clientId, request.service.id, error)
        for (const observer of this.#observers) observer.circuitFailed(request, error)
      }
      throw error
    }
  }

  get size(): number {
    return this.#table.size
  }

  get(id: string): Circuit | undefined {
    return this.#table.get(id)
  }

  /** The circuits that match. */
  list(filter: CircuitFilter = {}): Circuit[] {
    return this.#table.list(filter)
  }

  /** How many circuits have this value of a property. */
  count(property: keyof CircuitFilter, value: string): number {
    return this.#table.count(property, value)
  }

  /**
   * Ends a circuit at all its routers. Returns whether it existed.
   * @param isImmediate false if routers still deliver the data that is on its way
   */
  remove(id: string, isImmediate: boolean): boolean {
    const circuit = this.#table.remove(id)
    if (!circuit) return false
    if (circuit.strategy !== 'random') this.#costs.removeCircuit(circuit.terminatorId)
    for (const routerId of circuit.path.routerIds) this.#unroutes.send(routerId, id, isImmediate)
    for (const observer of this.#observers) observer.circuitEnded(circuit)
    return true
  }

  /**
   * Drops from memory the circuits that pass routers which another controller has from now on. Their routers go on, and that one
   * inherits them.
   */
  leave(isElsewhere: (routerId: string) => boolean): void {
    for (const { id, path, strategy, terminatorId } of this.#table.list()) {
      if (!path.routerIds.some(isElsewhere)) continue
      this.#table.remove(id)
      if (strategy !== 'random') this.#costs.removeCircuit(terminatorId)
    }
  }

  /** Notes that the routers of a circuit forward its data on another path. */
  setPath(id: string, path: Path): void {
    this.#table.setPath(id, path, this.#clock.now())
  }

  /** Notes since when a circuit has carried no data. */
  setIdleSince(id: string, idleSince: Instant): void {
    this.#table.setIdleSince(id, idleSince)
  }

  #open(circuit: Circuit): void {
    this.#table.add(circuit)
    if (circuit.strategy !== 'random') this.#costs.addCircuit(circuit.terminatorId)
    for (const observer of this.#observers) observer.circuitBegun(circuit)
  }
}
