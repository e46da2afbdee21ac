// What routers are told of sessions, as messages. An announcement to many routers is encoded once.
import { create, toBinary } from '@bufbuild/protobuf'
import type { RouterApiSession, SessionAnnouncement, SyncPart } from '../../src/routers/router-connection.ts'
import { ContentType } from './content-types.ts'
import {
  ApiSessionAddedSchema,
  ApiSessionRemovedSchema,
  ApiSessionUpdatedSchema,
  SessionRemovedSchema,
} from './messages/edge_pb.ts'

/** A message that has no number yet. */
export interface EncodedAnnouncement {
  readonly type: number
  readonly body: Uint8Array
  readonly headers: readonly (readonly [number, Buffer])[]
}

const SYNC_STRATEGY = 1013
const SYNC_STATE = 1014
const INSTANT = Buffer.from('instant')

const encodings = new WeakMap<SessionAnnouncement, EncodedAnnouncement>()

/** Renders an announcement. */
export function encodeAnnouncement(announcement: SessionAnnouncement): EncodedAnnouncement {
  let encoded = encodings.get(announcement)
  if (!encoded) {
    encoded = encode(announcement)
    encodings.set(announcement, encoded)
  }
  return encoded
}

function encode(announcement: SessionAnnouncement): EncodedAnnouncement {
  switch (announcement.kind) {
    case 'api-sessions-added': {
      const { part } = announcement
      const apiSessions = announcement.apiSessions.map(toMessage)
      const message = create(ApiSessionAddedSchema, { isFullState: part !== undefined, apiSessions })
      const headers = part ? encodeSyncHeaders(part) : []
      return { type: ContentType.API_SESSION_ADDED, body: toBinary(ApiSessionAddedSchema, message), headers }
    }
    case 'api-sessions-updated': {
      const message = create(ApiSessionUpdatedSchema, { apiSessions: announcement.apiSessions.map(toMessage) })
      return { type: ContentType.API_SESSION_UPDATED, body: toBinary(ApiSessionUpdatedSchema, message), headers: [] }
    }
    case 'api-sessions-removed': {
      const message = create(ApiSessionRemovedSchema, { tokens: [...announcement.tokens] })
      return { type: ContentType.API_SESSION_REMOVED, body: toBinary(ApiSessionRemovedSchema, message), headers: [] }
    }
    case 'sessions-removed': {
      const message = create(SessionRemovedSchema, { tokens: [...announcement.tokens] })
      return { type: ContentType.SESSION_REMOVED, body: toBinary(SessionRemovedSchema, message), headers: [] }
    }
  }
}

/** The state must be JSON of exactly this form, and the id must not be empty: a router panics otherwise. */
function encodeSyncHeaders({ id, isLast, sequence }: SyncPart): EncodedAnnouncement['headers'] {
  return [
    [SYNC_STRATEGY, INSTANT],
    [SYNC_STATE, Buffer.from(JSON.stringify({ id, isLast, sequence }))],
  ]
}

function toMessage({ id, token, identityId, fingerprints }: RouterApiSession) {
  return { id, token, identityId, certFingerprints: [...fingerprints] }
}
