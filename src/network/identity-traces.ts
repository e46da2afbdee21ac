// The identities that are traced: the controller and the routers log in detail how their connections are established, for a time.
//
// A trace begins and ends by a commit, so that every controller has it, whichever of them creates the circuits of the identity.
import type { Kysely } from 'kysely'
import { identities } from '../definitions/resources/identities.ts'
import type { Clock } from '../foundation/clock.ts'
import { errors } from '../foundation/errors.ts'
import type { Log } from '../foundation/log.ts'
import type { Database } from '../storage/database.ts'
import type { Commit, IdentityTrace } from '../storage/transactions/changes.ts'
import type { WriteContext } from '../storage/transactions/context.ts'
import type { LiveState } from '../storage/transactions/projection.ts'
import { isOneOf } from '../storage/untyped.ts'
import type { CircuitError } from './circuits/circuit-failures.ts'
import type { Circuit } from './circuits/circuit-table.ts'
import type { RouteOutcome } from './circuits/route-results.ts'
import type { RouteTrace } from './routers/router-connection.ts'

// More than an operator can follow in a log.
const MAX_TRACES = 1_000

/** In memory only: at a controller, a trace ends with the process. */
export class IdentityTraces implements LiveState {
  readonly kind = 'live state'
  readonly name = 'traces of identities'
  readonly #clock: Clock
  readonly #log: Log
  /** By identity, those that began last at the end; those that have ended are removed when another one begins. */
  readonly #byIdentity = new Map<string, IdentityTrace>()

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
  }

  /** Begins to trace an identity, in place of its earlier trace. @throws SERVER_TOO_MANY_REQUESTS if too many are traced already */
  begin(tx: WriteContext, identityId: string, trace: IdentityTrace): void {
    const tracedIds = new Set([...this.#byIdentity.keys()].filter((id) => this.find(id)))
    for (const { resource, id, after } of tx.uncommitted.all) if (resource === 'traces' && after) tracedIds.add(id)
    tracedIds.delete(identityId)
    if (tracedIds.size >= MAX_TRACES)
      throw errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause: 'too many identities are traced already' })
    const at = tx.clock.now()
    tx.record({ operation: 'create', audit: 'none', resource: 'traces', id: identityId, at, after: trace })
  }

  /** Ends the trace of an identity, also if only other controllers have one. */
  end(tx: WriteContext, identityId: string): void {
    tx.record({ operation: 'delete', audit: 'none', resource: 'traces', id: identityId, at: tx.clock.now() })
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === 'traces' && after) this.#set(id, after)
      else if (resource === 'traces' || (resource === identities.plural && operation === 'delete'))
        this.#byIdentity.delete(id)
    }
  }

  async reconcile(db: Kysely<Database>): Promise<void> {
    const ids = [...this.#byIdentity.keys()]
    if (ids.length === 0) return
    const rows = await db
      .selectFrom('identities')
      .select('id')
      .where(isOneOf(db, 'id', ids))
      .execute()
    const existingIds = new Set(rows.map(({ id }) => id))
    for (const id of ids) if (!existingIds.has(id)) this.#byIdentity.delete(id)
  }

  #set(identityId: string, trace: IdentityTrace): void {
    for (const id of this.#byIdentity.keys()) if (!this.find(id)) this.#byIdentity.delete(id)
    this.#byIdentity.delete(identityId)
    this.#byIdentity.set(identityId, trace)
    // A controller that has begun since has fewer, and permits more.
    for (const id of this.#byIdentity.keys()) if (this.#byIdentity.size > MAX_TRACES) this.#byIdentity.delete(id)
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
