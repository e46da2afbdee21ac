// The interface of the connection to a router, without its form on the wire.
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import type { TraceChannel } from '../../storage/transactions/changes.ts'
import type { ModelChangeSet } from '../router-model/model-events.ts'
import type { ModelState } from '../router-model/model-state.ts'

/** An address at which a router accepts links of other routers. */
export interface LinkListener {
  readonly address: string
  readonly protocol: string
  readonly costTags: readonly string[]
  readonly groups: readonly string[]
  readonly localBinding: string
}

/** How a router introduces itself. */
export interface RouterHello {
  readonly routerId: string
  /** SHA-1 of its client certificate, lower-case hex. */
  readonly fingerprint: string
  readonly version: VersionInfo
  readonly linkListeners: readonly LinkListener[]
  /** Whether it admits clients by data that the controller publishes, beginning with public keys: routers of release 2 do. */
  readonly hasDataModel: boolean
  /** Whether it is connected to one of several controllers at a time, and not to each of them. */
  readonly isInTurn: boolean
}

/** How an edge router describes where its clients reach it. */
export interface EdgeDescription {
  readonly hostname: string
  /** Protocol → address. */
  readonly supportedProtocols: Readonly<Record<string, string>>
}

/** Whether an identity is connected to a router. */
export interface IdentityPresence {
  readonly identityId: string
  readonly isConnected: boolean
}

/** An API session as routers check it: the client presents the token and one of the certificates. */
export interface RouterApiSession {
  readonly id: string
  readonly token: string
  readonly identityId: string
  /** SHA-1 of the identity's certificates and of those of the session, lower-case hex. */
  readonly fingerprints: readonly string[]
}

/** A part of all API sessions. Once routers have all parts, they remove what is in none. */
export interface SyncPart {
  /** The same in all parts; of two synchronizations the later one has the greater id. */
  readonly id: string
  readonly sequence: number
  readonly isLast: boolean
}

/** An API session, or a service session, that has ended. */
export interface EndedSession {
  /** Undefined if the router is not known to have one. */
  readonly id?: string
  /** The opaque token. */
  readonly token: string
}

/** A message to routers about sessions. One announcement may go to many routers. */
export type SessionAnnouncement =
  | { readonly kind: 'api-sessions-added'; readonly apiSessions: readonly RouterApiSession[]; readonly part?: SyncPart }
  | { readonly kind: 'api-sessions-updated'; readonly apiSessions: readonly RouterApiSession[] }
  | { readonly kind: 'api-sessions-removed'; readonly sessions: readonly EndedSession[] }
  | { readonly kind: 'sessions-removed'; readonly sessions: readonly EndedSession[] }

/** The data that the two ends of a circuit exchange through the controller: header id → value. */
export type PeerData = ReadonlyMap<number, Buffer>

/** All that one end may tell the other, in bytes. */
const MAX_PEER_DATA_BYTES = 16 * 1024

export function isPeerDataTooLong(peerData: PeerData): boolean {
  let bytes = 0
  for (const value of peerData.values()) bytes += value.length
  return bytes > MAX_PEER_DATA_BYTES
}

/** An address in a router's forwarding table, and where data that comes from it goes. */
export interface Forward {
  readonly from: string
  readonly to: string
  /** The kind of the receiver at `to`: the client of the circuit, its terminator, or the next router. */
  readonly toKind: 'client' | 'terminator' | 'link'
}

/** How the last router of a circuit reaches the terminator. */
export interface Egress {
  readonly binding: string
  /** The address of this end of the circuit in forwarding tables. */
  readonly address: string
  /** The address of the terminator. */
  readonly destination: string
  readonly peerData: PeerData
}

/** The steps of a connection that can be traced. The controller selects the path; the routers establish it. */
export const TRACE_CHANNELS: readonly TraceChannel[] = ['selectPath', 'establishPath']

/** The request that a router logs in detail what it does for a circuit. */
export interface RouteTrace {
  readonly channels: readonly TraceChannel[]
  /** The fields of each line of its log. */
  readonly fields: Readonly<Record<string, string>>
}

/** The part of one router in a circuit. */
export interface Route {
  readonly circuitId: string
  /** Distinguishes the results of earlier attempts. */
  readonly attempt: number
  readonly forwards: readonly Forward[]
  readonly egress?: Egress
  /** How long the router may take to reach the terminator. */
  readonly timeoutMs: number
  readonly tags: Readonly<Record<string, string>>
  readonly trace?: RouteTrace
}

/** A router's report about a route. */
export interface RouteResult {
  readonly circuitId: string
  /** Undefined if the result does not say it; then it is a failure. */
  readonly attempt: number | undefined
  /** Undefined if the router forwards the data of the circuit now. */
  readonly failure: RouteFailure | undefined
  /** Data of the terminator for the client of this circuit. */
  readonly peerData: PeerData
}

/** In the order of the codes by which routers tell them apart; those of release 1 know the first five. */
export const ROUTE_FAILURE_KINDS = [
  'generic',
  'invalid terminator',
  'misconfigured terminator',
  'dial timed out',
  'dial refused',
  'rejected by the application',
  'name not resolved',
  'port not allowed',
  'invalid link destination',
  'resources not available',
] as const
export type RouteFailureKind = (typeof ROUTE_FAILURE_KINDS)[number]

export interface RouteFailure {
  readonly kind: RouteFailureKind
  /** In the words of the router. */
  readonly message: string
}

/** A terminator that a router is asked about. */
export interface TerminatorQuestion {
  readonly id: string
  readonly binding: string
  readonly address: string
  /** The response repeats it. */
  readonly marker: bigint
  /** Whether it was created over this connection: then the router asks the host itself. */
  readonly isNew: boolean
}

/** A router's report about a terminator. */
export interface TerminatorState {
  readonly id: string
  readonly isValid: boolean
  /** The marker of the question, or 0. */
  readonly marker: bigint
}

/** A message to a router about another one, so that it dials links to it. */
export interface PeerChange {
  readonly routerId: string
  /** `offline` peers may come back; `removed` ones do not. */
  readonly state: 'online' | 'offline' | 'removed'
  /** The version that the peer introduced itself with; empty unless it is online. */
  readonly version: string
  readonly linkListeners: readonly LinkListener[]
}

/** A message to routers about each other. A router ignores what concerns itself. */
export interface PeerAnnouncement {
  readonly kind: 'peers-changed'
  readonly changes: readonly PeerChange[]
}

/** A certificate by whose key routers verify. */
export interface PublicKey {
  /** SHA-1 of the certificate, lower-case hex. */
  readonly id: string
  /** DER. */
  readonly certificate: Uint8Array
  /** The key verifies certificates of clients, which lead to it, or tokens of the controller. */
  readonly usage: 'client certificates' | 'tokens'
}

/** A message to routers about public keys, besides those that they have. */
export interface PublicKeyAnnouncement {
  readonly kind: 'public-keys'
  readonly added: readonly PublicKey[]
  readonly removedIds: readonly string[]
}

/** The index that the data model has by now, whatever a router has received of it. */
export interface ModelIndexAnnouncement {
  readonly kind: 'model-index'
  readonly index: number
}

/** A message to routers about the controllers that they connect to: these, and no others. */
export interface ControllerAnnouncement {
  readonly kind: 'controllers'
  /** Routers drop what is not newer than what they have. */
  readonly version: number
  readonly controllers: readonly { readonly id: string; readonly address: string }[]
}

/** A message that may go to many routers at once. */
export type RouterAnnouncement =
  | SessionAnnouncement
  | PeerAnnouncement
  | PublicKeyAnnouncement
  | ModelIndexAnnouncement
  | ControllerAnnouncement

/** The whole data model for a router. */
export interface ModelTransfer {
  readonly state: ModelState
  /** The keys that belong to it by now: they change by other means than the model does. */
  listKeys(): readonly PublicKey[]
  /** As the router named its subscription; undefined if it did not. */
  readonly subscriptionId: string | undefined
}

/** A link that its other end has to drop. */
export interface LinkFault {
  readonly linkId: string
  /** The attempt of the dialing router at this link; 0 stands for any. */
  readonly iteration: number
}

/** The connection of a router, as the controller uses it. The control channel implements it. */
export interface RouterConnection {
  /** Tells the router of sessions or of other routers; the message is on its way when this returns. */
  announce(announcement: RouterAnnouncement): void
  /** Has the router forward the data of a circuit. Its result is reported later, or never. */
  sendRoute(route: Route): void
  /** Ends a circuit at the router: at once, or when it has carried no data for some seconds. */
  sendUnroute(circuitId: string, isImmediate: boolean): void
  /** Tells the router that a link is gone. */
  sendFault(fault: LinkFault): void
  /** Sends the whole data model. Resolves when it is on its way as a whole, or the connection has ended. */
  sendModel(transfer: ModelTransfer): Promise<void>
  /**
   * Has the router take this model in place of its own if they differ, whichever controller it follows, and subscribe anew then. Resolves as
   * `sendModel` does.
   */
  replaceModel(transfer: Pick<ModelTransfer, 'state' | 'listKeys'>): Promise<void>
  /** Sends what a commit changed of the data model. */
  sendModelChanges(set: ModelChangeSet, subscriptionId: string | undefined): void
  /** Resolves when little is left of what was sent before, or the connection has ended; undefined if that is so. */
  waitUntilWritable(): Promise<void> | undefined
  /** Asks whether these terminators are there; the router may give up those that are not. */
  validateTerminators(terminators: readonly TerminatorQuestion[]): void
  /** Has the router give up a terminator, whose host is told, because its session has ended. */
  endTerminator(terminatorId: string): void
  /**
   * Has the router compute, until it is set to 0, that the controller responds to heartbeats sooner than it does by so many milliseconds:
   * of several, it asks the fastest.
   */
  setHeadStart(headStartMs: number): void
  /** Whether the router does not respond, as one that stands still or is out of reach. */
  readonly isSilent: boolean
  /** When the router last sent anything, by the monotonic clock. */
  readonly lastHeardAt: number
  /** Ends the connection. The reason goes to the log only: routers are not told. */
  close(reason: string): void
}
