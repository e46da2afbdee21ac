// Failures to create circuits: counted by cause, and logged without letting one client fill the log.
import type { AggregatedLog } from '../../foundation/aggregated-log.ts'
import { RequestRefusedError } from '../client-requests/request-refused.ts'

/** The causes, by the names that operators' tools know. */
export type CircuitFailureCause =
  | 'NO_TERMINATORS'
  | 'NO_ONLINE_TERMINATORS'
  | 'NO_PATH'
  | 'ROUTER_RESPONSE_TIMEOUT'
  | 'ROUTER_ERR_GENERIC'
  | 'ROUTER_ERR_INVALID_TERMINATOR'
  | 'ROUTER_ERR_MISCONFIGURED_TERMINATOR'
  | 'ROUTER_ERR_DIAL_TIMED_OUT'
  | 'ROUTER_ERR_CONN_REFUSED'
  | 'ROUTER_ERR_REJECTED_BY_APPLICATION'
  | 'ROUTER_ERR_DNS_RESOLUTION_FAILED'
  | 'ROUTER_ERR_PORT_NOT_ALLOWED'
  | 'ROUTER_ERR_INVALID_LINK_DESTINATION'
  | 'ROUTER_ERR_RESOURCES_NOT_AVAILABLE'
  | 'TOO_MANY_CIRCUITS'

/** A circuit that could not be created. The message is for the client that dialed, the id that of the last attempt. */
export class CircuitError extends RequestRefusedError {
  readonly failureCause: CircuitFailureCause

  constructor(failureCause: CircuitFailureCause, message: string, circuitId?: string) {
    super('other', message, circuitId)
    this.failureCause = failureCause
  }
}

export class CircuitFailures {
  readonly #log: AggregatedLog
  readonly #counts = new Map<CircuitFailureCause, number>()

  constructor(log: AggregatedLog) {
    this.#log = log
  }

  /** How many circuits could not be created since the start, by cause. */
  get counts(): ReadonlyMap<CircuitFailureCause, number> {
    return this.#counts
  }

  add(serviceId: string, { failureCause: cause, message, circuitId }: CircuitError): void {
    this.#counts.set(cause, (this.#counts.get(cause) ?? 0) + 1)
    const fields = { serviceId, cause, circuitId, reason: message }
    this.#log.warn(`${cause} ${serviceId}`, fields, 'a circuit could not be created')
  }
}
