// Why circuits could not be created: counted by cause, and logged without letting one client fill the log.
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import { RequestRefusedError } from './request-refused.ts'

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
  | 'TOO_MANY_CIRCUITS'

/** A circuit that could not be created. The message is for the client that dialed, the id that of the last attempt. */
export class CircuitError extends RequestRefusedError {
  readonly failureCause: CircuitFailureCause

  constructor(failureCause: CircuitFailureCause, message: string, circuitId?: string) {
    super('other', message, circuitId)
    this.failureCause = failureCause
  }
}

const LOG_PERIOD_MS = 60_000

// Services whose failures are logged one by one within a period; those of further services are only counted.
const MAX_LOGGED = 500

export class CircuitFailures {
  readonly #clock: Clock
  readonly #log: Log
  readonly #counts = new Map<CircuitFailureCause, number>()
  /** The failures of this period that were not logged: service and cause → number. */
  readonly #unlogged = new Map<string, { serviceId: string; cause: CircuitFailureCause; count: number }>()
  #periodEndsAt: number

  constructor(clock: Clock, log: Log) {
    this.#clock = clock
    this.#log = log
    this.#periodEndsAt = clock.monotonic() + LOG_PERIOD_MS
  }

  /** How many circuits could not be created since the start, by cause. */
  get counts(): ReadonlyMap<CircuitFailureCause, number> {
    return this.#counts
  }

  /** Counts a failure, and logs it if it is the first of its service and cause in this period. */
  add(serviceId: string, { failureCause: cause, message, circuitId }: CircuitError): void {
    this.#counts.set(cause, (this.#counts.get(cause) ?? 0) + 1)
    const key = `${cause} ${serviceId}`
    const entry = this.#unlogged.get(key)
    if (entry) {
      entry.count += 1
    } else if (this.#unlogged.size < MAX_LOGGED) {
      this.#unlogged.set(key, { serviceId, cause, count: 0 })
      this.#log.warn({ serviceId, cause, circuitId, reason: message }, 'a circuit could not be created')
    }
  }

  /** Ends a period that is over: logs how often its failures were repeated. */
  tick(): void {
    const now = this.#clock.monotonic()
    if (now < this.#periodEndsAt) return
    this.#periodEndsAt = now + LOG_PERIOD_MS
    for (const { serviceId, cause, count } of this.#unlogged.values()) {
      if (count > 0) this.#log.warn({ serviceId, cause, count }, 'more circuits could not be created')
    }
    this.#unlogged.clear()
  }
}
