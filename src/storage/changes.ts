// The changes that a transaction records: the source of the audit and of every event.

import type { AuditDetail } from '../definitions/resources/define.ts'
import type { Instant } from '../foundation/clock.ts'

export interface Change {
  /**
   * `refuse`: a sign-in failed, and nothing changed. `cut`: old audit records were pruned. `jump`: the system clock was set.
   */
  readonly operation: 'create' | 'update' | 'delete' | 'refuse' | 'cut' | 'jump'
  /** What the audit stores of it: the record before and after, only the event, or nothing. */
  readonly audit: AuditDetail
  /** The plural name of the resource. */
  readonly resource: string
  readonly id: string
  readonly at: Instant
  /** The record before, as the code sees it; absent for a create, and if no listener needs it. */
  readonly before?: Readonly<Record<string, unknown>>
  /** The record after; absent for a delete. */
  readonly after?: Readonly<Record<string, unknown>>
  /** The method of a sign-in, also of a failed one. */
  readonly method?: string
  /** Why a sign-in was refused. */
  readonly reason?: string
  /** How many equal events the audit record stands for; one by default. */
  readonly count?: number
  /** The change is audited but not announced, because no record changes now: the event happened before, or elsewhere. */
  readonly isAuditOnly?: true
  /** Tells the guards of the transaction what to check, and no listener, because no record changes. */
  readonly isForGuardsOnly?: true
}

/** An event without a record before or after it. */
export type AuditEvent = Pick<Change, 'operation' | 'resource' | 'id' | 'method' | 'reason' | 'count'>
