// Encodes announcements to routers, about sessions, other routers, public keys and the index of the data model. An announcement to many
// routers is encoded once for each of the two protocols.
import { create, type MessageInitShape, toBinary } from '@bufbuild/protobuf'
import type {
  ControllerAnnouncement,
  EndedSession,
  LinkFault,
  PeerChange,
  PublicKey,
  PublicKeyAnnouncement,
  RouterAnnouncement,
  RouterApiSession,
  SyncPart,
} from '../../src/network/routers/router-connection.ts'
import { ContentType } from './content-types.ts'
import { encodeUint64 } from './header-values.ts'
import {
  FaultSchema,
  FaultSubject,
  PeerState,
  PeerStateChangesSchema,
  UpdateCtrlAddressesSchema,
} from './messages/control_pb.ts'
import {
  ApiSessionAddedSchema,
  ApiSessionRemovedSchema,
  ApiSessionUpdatedSchema,
  DataState_Action,
  DataState_ChangeSetSchema,
  type DataState_EventSchema,
  DataState_PublicKey_Usage,
  Header,
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
const NO_BODY = new Uint8Array()
const INSTANT = Buffer.from('instant')

/** How the router is connected: routers of release 1 have one connection. */
export type Protocol = 'single' | 'grouped'

const encodings = {
  single: new WeakMap<RouterAnnouncement, EncodedAnnouncement>(),
  grouped: new WeakMap<RouterAnnouncement, EncodedAnnouncement>(),
}

/** Renders an announcement. */
export function encodeAnnouncement(announcement: RouterAnnouncement, protocol: Protocol): EncodedAnnouncement {
  const ofProtocol = encodings[protocol]
  let encoded = ofProtocol.get(announcement)
  if (!encoded) {
    encoded = encode(announcement, protocol)
    ofProtocol.set(announcement, encoded)
  }
  return encoded
}

function encode(announcement: RouterAnnouncement, protocol: Protocol): EncodedAnnouncement {
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
      const message = create(ApiSessionRemovedSchema, toEndedApiSessions(announcement.sessions, protocol))
      return { type: ContentType.API_SESSION_REMOVED, body: toBinary(ApiSessionRemovedSchema, message), headers: [] }
    }
    case 'sessions-removed': {
      const message = create(SessionRemovedSchema, toEndedSessions(announcement.sessions, protocol))
      return { type: ContentType.SESSION_REMOVED, body: toBinary(SessionRemovedSchema, message), headers: [] }
    }
    case 'peers-changed': {
      const body = Buffer.concat(announcement.changes.map(encodePeerChange))
      return { type: ContentType.PEER_STATE_CHANGE, body, headers: [] }
    }
    case 'public-keys':
      return { type: ContentType.DATA_STATE_CHANGE_SET, body: encodePublicKeys(announcement), headers: [] }
    case 'controllers':
      return { type: ContentType.UPDATE_CONTROLLER_ADDRESSES, body: encodeControllers(announcement), headers: [] }
    case 'model-index': {
      const index = encodeUint64(BigInt(announcement.index))
      return { type: ContentType.CURRENT_INDEX, body: NO_BODY, headers: [[Header.RouterDataModelIndex, index]] }
    }
  }
}

/** Routers of release 2 look for the ids of all, or of none. */
function toEndedApiSessions(sessions: readonly EndedSession[], protocol: Protocol) {
  const ids = sessions.flatMap(({ id }) => id ?? [])
  const hasIds = protocol === 'grouped' && ids.length === sessions.length
  return { tokens: sessions.map(({ token }) => token), ids: hasIds ? ids : [] }
}

/** Routers of release 2 know sessions by their ids alone, and expect them in both members. */
function toEndedSessions(sessions: readonly EndedSession[], protocol: Protocol) {
  if (protocol === 'single') return { tokens: sessions.map(({ token }) => token) }
  const ids = sessions.flatMap(({ id }) => id ?? [])
  return { tokens: ids, ids }
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

type KeyEvent = MessageInitShape<typeof DataState_EventSchema>

const KEY_USAGES = {
  'client certificates': DataState_PublicKey_Usage.ClientX509CertValidation,
  tokens: DataState_PublicKey_Usage.JWTValidation,
} as const

/** An event by which a router gets a public key. */
export function toKeyEvent({ id, certificate, usage }: PublicKey): KeyEvent {
  const value = { kid: id, data: certificate, usages: [KEY_USAGES[usage]] }
  return { action: DataState_Action.Create, isSynthetic: true, Model: { case: 'publicKey', value } }
}

/** A change set without an index, which routers apply in addition to those that have one. */
function encodePublicKeys({ added, removedIds }: PublicKeyAnnouncement): Uint8Array {
  const removed = removedIds.map((kid): KeyEvent => {
    return { action: DataState_Action.Delete, isSynthetic: true, Model: { case: 'publicKey', value: { kid } } }
  })
  const changes = [...added.map(toKeyEvent), ...removed]
  return toBinary(DataState_ChangeSetSchema, create(DataState_ChangeSetSchema, { isSynthetic: true, changes }))
}

/** Every controller has the same list, so each speaks with the word of a leader: a router takes removals from a leader only. */
function encodeControllers({ version, controllers }: ControllerAnnouncement): Uint8Array {
  const message = create(UpdateCtrlAddressesSchema, {
    addresses: controllers.map(({ address }) => address),
    index: BigInt(version),
    isLeader: true,
    controllers: controllers.map(({ id, address }) => ({ id, endpoints: [{ address, groups: [] }] })),
  })
  return toBinary(UpdateCtrlAddressesSchema, message)
}

const PEER_STATES = { online: PeerState.Healthy, offline: PeerState.Unhealthy, removed: PeerState.Removed } as const

const peerEncodings = new WeakMap<PeerChange, Uint8Array>()

/** A message with this change only. Messages that follow each other in a body are one message with the entries of all. */
function encodePeerChange(change: PeerChange): Uint8Array {
  let encoded = peerEncodings.get(change)
  if (!encoded) {
    const { routerId, state, version, linkListeners } = change
    const listeners = linkListeners.map(({ address, protocol, costTags, groups, localBinding }) => ({
      address,
      protocol,
      costTags: [...costTags],
      groups: [...groups],
      localBinding,
    }))
    const changes = [{ id: routerId, version, state: PEER_STATES[state], listeners }]
    encoded = toBinary(PeerStateChangesSchema, create(PeerStateChangesSchema, { changes }))
    peerEncodings.set(change, encoded)
  }
  return encoded
}

/** Renders the body of a message by which a router drops a link. */
export function encodeLinkFault({ linkId, iteration }: LinkFault): Uint8Array {
  return toBinary(FaultSchema, create(FaultSchema, { subject: FaultSubject.LinkFault, id: linkId, iteration }))
}
