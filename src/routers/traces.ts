// Which identities' connections are logged in detail, and until when. In memory: tracing is for the moment.
import type { Instant } from '../clock.ts'

/** The steps of a connection that can be logged. */
export const traceChannels = ['selectPath', 'establishPath'] as const
type TraceChannel = (typeof traceChannels)[number]

export interface Trace {
  readonly traceId: string
  readonly until: Instant
  readonly channels: ReadonlySet<TraceChannel>
}

export class Traces {
  readonly #byIdentity = new Map<string, Trace>()

  /** Starts a trace, which replaces an earlier one of the same identity. Expired traces are removed. */
  start(identityId: string, trace: Trace, now: Instant): void {
    for (const [id, { until }] of this.#byIdentity) if (until <= now) this.#byIdentity.delete(id)
    this.#byIdentity.set(identityId, trace)
  }

  /** Ends the trace of an identity and returns it; undefined if it has none. */
  stop(identityId: string): Trace | undefined {
    const trace = this.#byIdentity.get(identityId)
    this.#byIdentity.delete(identityId)
    return trace
  }

  /** The trace of an identity that is in force now. */
  get(identityId: string, now: Instant): Trace | undefined {
    const trace = this.#byIdentity.get(identityId)
    return trace && trace.until > now ? trace : undefined
  }
}
