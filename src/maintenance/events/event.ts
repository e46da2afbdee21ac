// One event of the stream: what happened, to what, and its data as JSON text.

import type { ReadableRecord } from '../../definitions/permissions/readable-records.ts'
import type { ScopedRecord } from '../../definitions/permissions/rights.ts'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { AuditEventType, EventType, NetworkEventType } from '../../definitions/resources/event-types.ts'
import { type Instant, toIsoTime } from '../../foundation/clock.ts'
import type { ChainedRecord } from '../../storage/audit/audit-chain.ts'
import { toAuditJson } from '../../storage/audit/audit-records.ts'

export interface StreamedEvent {
  readonly type: EventType
  /** A resource in the plural, and ids: a watcher may select it by each. */
  readonly subjects: readonly string[]
  /** The record that it is about: watchers get it if they may read that. */
  readonly record: ReadableRecord
  /** JSON text. */
  readonly data: string
}

/** Something that happened in the network, with the members of it that watchers see. */
export interface NetworkEvent {
  readonly type: NetworkEventType
  /** In the plural. */
  readonly resource: string
  readonly id: string
  /** The ids of other records that it concerns. */
  readonly related: readonly string[]
  readonly details: Readonly<Record<string, unknown>>
}

const TYPES: Readonly<Record<string, AuditEventType>> = {
  create: 'record-created',
  update: 'record-updated',
  delete: 'record-deleted',
  refuse: 'sign-in-refused',
  cut: 'audit-cut',
  jump: 'clock-jump',
}

/**
 * An audit record as an event. The audit has masked its secrets already.
 * @param states of the record that it is about, if some watcher may read only some of the records
 */
export function toAuditEvent(record: ChainedRecord, states: readonly ScopedRecord[] = []): StreamedEvent {
  const { operation, resource, entityId, actorId } = record
  const isSignIn = operation === 'create' && resource === apiSessions.plural
  const type = isSignIn ? 'sign-in' : (TYPES[operation] ?? 'record-updated')
  // Of a sign-in, the identity is the actor.
  const ids = isSignIn && actorId !== null ? [entityId, actorId] : [entityId]
  return {
    type,
    subjects: [resource, ...ids],
    record: { resource, states },
    data: `{"type":"${type}","audit":${toAuditJson(record)}}`,
  }
}

export function toNetworkEvent({ type, resource, id, related, details }: NetworkEvent, at: Instant): StreamedEvent {
  return {
    type,
    subjects: [resource, id, ...related],
    record: { resource, states: [] },
    data: JSON.stringify({ type, at: toIsoTime(at), resource, id, ...details }),
  }
}
