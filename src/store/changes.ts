// What a transaction says it changed: the source of the audit and of every event.
import type { Instant } from '../clock.ts'
import type { AuditDetail } from '../resources/define.ts'

export interface Change {
  /**
   * `refuse`: a sign-in came to nothing, and so nothing changed. `cut`: old audit records were taken away. `jump`: the system
   * clock was set.
   */
  readonly operation: 'create' | 'update' | 'delete' | 'refuse' | 'cut' | 'jump'
  /** What the audit keeps of it: the record before and after, only that it happened, or nothing. */
  readonly audit: AuditDetail
  /** The plural name of the resource. */
  readonly resource: string
  readonly id: string
  readonly at: Instant
  /** The record before, as the code sees it; absent for a create, and if no listener needs it. */
  readonly before?: Readonly<Record<string, unknown>>
  /** The record after; absent for a delete. */
  readonly after?: Readonly<Record<string, unknown>>
  /** How a sign-in was made or tried. */
  readonly method?: string
  /** Why a sign-in was refused. */
  readonly reason?: string
  /** How many equal events the audit record stands for; one unless said otherwise. */
  readonly count?: number
  /** Goes into the audit and to no listener, because no record changes now: it says what happened before, or elsewhere. */
  readonly isAuditOnly?: true
  /** Tells the guards of the transaction what to check, and no listener, because no record changes. */
  readonly isForGuardsOnly?: true
}

/** What happened, where no record before or after belongs to it. */
export type AuditEvent = Pick<Change, 'operation' | 'resource' | 'id' | 'method' | 'reason' | 'count'>
