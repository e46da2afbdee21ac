// The requests of callers and the responses that they got, with the times: the evidence that a run is judged by.

/** A moment, in milliseconds of the clock of the test. */
export type Moment = number

interface Interval {
  readonly node: string
  readonly begun: Moment
  readonly ended: Moment
}

/** A change that a caller asked for. */
export interface Write extends Interval {
  readonly kind: 'create' | 'count' | 'end session' | 'set policy'
  /** The record that it concerns; for a create, the name that it was to have. */
  readonly subject: string
  /** The number that was written; of a policy, 1 for a grant and 0 for none. */
  readonly value?: number
  /** Unknown if no response came, or one that does not say. */
  readonly result: 'acknowledged' | 'refused' | 'unknown'
  /** The id of a created record. */
  readonly id?: string
}

/** A number that a caller has read. */
export interface Read extends Interval {
  readonly subject: string
  readonly value: number
}

/** A right that was granted, or not: to list services with a session, or to see a service by a policy. */
export interface Grant extends Interval {
  readonly kind: 'session' | 'policy'
  readonly subject: string
  readonly isGranted: boolean
}

export class History {
  readonly writes: Write[] = []
  readonly reads: Read[] = []
  readonly grants: Grant[] = []
}
