// The messages between the main thread and the worker of a generator: its orders, and its reports.
import type { Credential, Target } from './connection.ts'
import type { PackedRequests } from './requests.ts'

/** So many connections that each send the next request when the last is completed. */
export interface ClosedLoop {
  readonly kind: 'closed-loop'
  readonly inFlight: number
  /** Opens a connection for each request, with the credentials in turn. */
  readonly connectsEachTime: boolean
  readonly credentials: readonly Credential[]
  /** Each request can be sent once only; the run ends when none is left. */
  readonly isOnce: boolean
  /** The rest of each connection between a response and the next request. */
  readonly pauseMilliseconds: number
  /** The same is done for so long before anything counts. */
  readonly warmUpMilliseconds: number
  /** Whether it does not sleep between responses that follow each other closely. */
  readonly staysAwake: boolean
}

/** Many clients that begin at the same moment: each opens a connection of its own and sends a few requests in turn. */
export interface Crowd {
  readonly kind: 'crowd'
  readonly members: readonly CrowdMember[]
}

export interface CrowdMember {
  readonly credential?: Credential
  /** The indexes of the requests that it sends, in this order. */
  readonly requests: readonly number[]
}

/** Clients that come back at the same moment, each with a connection of its own, sign in, and do what SDKs do then. */
export interface Storm {
  readonly kind: 'storm'
  readonly members: readonly StormMember[]
  /** The texts of the requests that follow the first one, with placeholders; none if the first one begins no session. */
  readonly steps: readonly string[]
  /** The text of the request that each sends again and again from then on until all are back. */
  readonly poll: string
  /** Whether they resume a TLS session that they began before. */
  readonly resumes: boolean
}

export interface StormMember {
  readonly credential?: Credential
  /** The index of its first request. */
  readonly request: number
  /** The address that it comes from. */
  readonly address: string
}

/** The figures of a storm besides the time that each client took to be back. */
export interface StormFigures {
  /** Milliseconds, in order of size. */
  readonly polls: Float64Array
  /** How often a client was told to come later. */
  readonly refusedCount: number
  readonly maxRetryAfterSeconds: number
  readonly failedConnections: number
}

export interface Plan {
  readonly target: Target
  readonly requests: PackedRequests
  readonly countFrom: number
  readonly load: ClosedLoop | Crowd | Storm
}

/** The outcome of a run. */
export interface Outcome {
  /** Responses that were no refusals. */
  readonly completed: number
  readonly seconds: number
  /** Of these, how long the generator had something to do. */
  readonly busySeconds: number
  /** Milliseconds from sending, or connecting where each request or member connects, to the whole response; in order of size. */
  readonly latencies: Float64Array
  /** Of all responses together. */
  readonly bodyBytes: number
  /** The failures, each with its number. */
  readonly failures: readonly { readonly what: string; readonly times: number }[]
  readonly storm?: StormFigures
}

/** Each order names its run: others may be prepared before it goes. */
export type ToWorker = { readonly run: number } & (
  | { readonly kind: 'prepare'; readonly plan: Plan }
  | { readonly kind: 'go'; readonly milliseconds: number | undefined; readonly isLast: boolean }
  | { readonly kind: 'stop' }
)

export type FromWorker =
  | { readonly kind: 'ready'; readonly meanBodyBytes: number }
  | { readonly kind: 'progress'; readonly completed: number }
  | { readonly kind: 'done'; readonly outcome: Outcome }
  | { readonly kind: 'failed'; readonly message: string }

/** Something that a worker was told to do. */
export interface Load {
  /** Does what must not be measured. Returns the mean size of the bodies that it received; 0 if it received none. */
  prepare(): Promise<number>
  /** Runs for a time, until the requests are used up, or until it is told to stop; can be repeated until it is closed. */
  run(milliseconds: number | undefined): Promise<Outcome>
  stop(): void
  close(): void
  readonly completed: number
}
