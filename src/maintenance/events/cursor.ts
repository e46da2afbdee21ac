// The cursor of a watcher: up to where it was sent what the audit records, and what happens in the network.
import { invalidError } from '../../foundation/errors.ts'
import type { ChainedRecord } from '../../storage/audit/audit-chain.ts'

/** A place in the audit. */
export interface AuditPlace {
  /** The number of the last record before it; 0 at the beginning. */
  readonly n: number
  /** The beginning of the hash of that record, by which another history of the audit is noticed: that of a restored backup. */
  readonly mark: string
}

export interface EventCursor extends AuditPlace {
  /** The run of the ring of network events. */
  readonly run: string
  /** How many network events of that run came before it. */
  readonly sequence: number
}

const MARK_LENGTH = 12

export const AUDIT_BEGIN: AuditPlace = { n: 0, mark: '0' }

/** In place of the run of a ring: of the network, only what happens from now on is watched. */
export const NO_RUN = '00000000'

export function toAuditPlace({ n, hash }: Pick<ChainedRecord, 'n' | 'hash'>): AuditPlace {
  return { n, mark: hash.slice(0, MARK_LENGTH) }
}

export function formatCursor({ n, mark, run, sequence }: EventCursor): string {
  return `${n}-${mark}-${run}-${sequence}`
}

/** @throws COULD_NOT_VALIDATE */
export function parseCursor(text: string): EventCursor {
  const [, n, mark = '', run = '', sequence] = /^(\d{1,15})-([0-9a-f]{1,12})-([0-9A-Z]{8})-(\d{1,15})$/.exec(text) ?? []
  if (n === undefined) throw invalidError('since', 'is not the cursor of an event', text)
  return { n: Number(n), mark, run, sequence: Number(sequence) }
}
