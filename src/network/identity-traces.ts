// The identities that are traced: the controller and the routers log in detail how their connections are established, for a time.
import type { Clock, Instant } from '../foundation/clock.ts'
import type { Log } from '../foundation/log.ts'
import type { CircuitError } from './circuits/circuit-failures.ts'
import type { Circuit } from './circuits/circuit-table.ts'
import type { RouteOutcome } from './circuits/route-results.ts'
import type { RouteTrace, TraceChannel } from './routers/router-connection.ts'

export interface IdentityTrace {
  /** Stands in each line of the logs that belongs to the trace. */
  readonly traceId: string
  readonly channels: readonly TraceChannel[]
  readonly until: Instant
}

// More than an operator can follow in a log.
const MAX_TRACES = 1_000

/** In memory only: a trace ends with the process. */
export class IdentityTraces {
  readonly #clock: Clock
  readonly #log: Log
  /** By identity; those that have ended are removed when another one begins. */
  readonly #byIdentity = new Map<string, IdentityTrace>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Begins to trace an identity, in place of its earlier trace. Returns whether it does: not if too many are traced already. */
  begin(identityId: string, trace: IdentityTrace): boolean {
    const now = this.#clock.now()
    for (const [id, { until }] of this.#byIdentity) if (until <= now) this.#byIdentity.delete(id)
    this.#byIdentity.delete(identityId)
    if (this.#byIdentity.size >= MAX_TRACES) return false
    this.#byIdentity.set(identityId, trace)
    return true
  }

  end(identityId: string): void {
    this.#byIdentity.delete(identityId)
  }

  /** The trace of an identity; undefined if it has none, or its time is over. */
  find(identityId: string): IdentityTrace | undefined {
    const trace = this.#byIdentity.get(identityId)
    return trace && trace.until > this.#clock.now() ? trace : undefined
  }

  /** The request to routers to log a circuit in detail; undefined if its client is not traced. */
  toRouteTrace({ id, clientId, sessionId, serviceId }: Circuit): RouteTrace | undefined {
    const trace = this.find(clientId)
    if (!trace) return undefined
    const { traceId, channels } = trace
    return { channels, fields: { traceId, circuitId: id, identityId: clientId, sessionId, serviceId } }
  }

  /** Logs the path that was selected for a circuit, if its client is traced. @param cost of the path and the terminator */
  recordPath(circuit: Circuit, cost: number): void {
    const trace = this.toRouteTrace(circuit)
    if (!trace?.channels.includes('selectPath')) return
    const { terminatorId, path } = circuit
    const linkIds = path.links.map(({ id }) => id)
    const fields = { ...trace.fields, terminatorId, routerIds: path.routerIds, linkIds, cost }
    this.#log.info(fields, 'traced: a path was selected')
  }

  /** Logs what the routers of a circuit reported, if its client is traced. */
  recordOutcome(circuit: Circuit, outcome: RouteOutcome): void {
    const trace = this.toRouteTrace(circuit)
    if (!trace?.channels.includes('establishPath')) return
    if (outcome.isSuccess) this.#log.info(trace.fields, 'traced: the path was established')
    else this.#log.info({ ...trace.fields, reason: outcome.message }, 'traced: the path could not be established')
  }

  /** Logs that a client could not be connected, if it is traced. */
  recordFailure(identityId: string, serviceId: string, { failureCause, message }: CircuitError): void {
    const trace = this.find(identityId)
    if (!trace) return
    const fields = { traceId: trace.traceId, identityId, serviceId, cause: failureCause, reason: message }
    this.#log.info(fields, 'traced: no circuit was created')
  }
}
