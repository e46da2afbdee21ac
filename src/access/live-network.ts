// The interface of live router state, which computed fields read and the control channel provides.
import type { VersionInfo } from '../definitions/resources/routers.ts'
import type { Instant } from '../foundation/clock.ts'

/** How a router follows the data model, by which routers of release 2 decide about clients. */
export interface ModelProgress {
  /** `none` is a router without clients, or of release 1; one that waits has not subscribed, or not again. */
  readonly mode: 'none' | 'waiting' | 'following'
  /** The index that it was sent last; undefined before. */
  readonly index: number | undefined
  /** Since when it lacks a change, by the monotonic clock; undefined if it lacks none. */
  readonly behindSince: number | undefined
}

/** A router as it describes itself while it is connected. */
export interface LiveRouter {
  readonly hostname: string
  /** Protocol → the address at which clients reach the router by it. */
  readonly supportedProtocols: Readonly<Record<string, string>>
  /** How far the router has got with what the controller tells it: one of the words that clients know. */
  readonly syncStatus: string
  readonly versionInfo: VersionInfo
  readonly model: ModelProgress
}

export type ConnectionStatus = 'online' | 'offline' | 'unknown'

/** The load of a router: the links and circuits that pass it. */
export interface RouterLoad {
  countLinks(routerId: string): number
  countCircuits(routerId: string): number
}

/** The measurements of the traffic over routers. */
export interface Traffic {
  /** The cost that the present load adds to a terminator: 0 to 65535. */
  getDynamicCost(terminatorId: string): number
  /** Ids of the routers that the first circuit of a session passes, in order; none if it has no circuit. */
  listRoutePath(sessionId: string): readonly string[]
}

export interface LiveNetwork extends Traffic {
  /** A connected router; undefined while it is not. */
  findRouter(id: string): LiveRouter | undefined
  /** Whether a router is connected; `unknown` if nothing watches the routers. */
  getPresence(routerId: string): ConnectionStatus
  /** When a router lost its connection; undefined if it is connected, or was not since the controller started. */
  getDisconnectTime(routerId: string): Instant | undefined
  /** The names of the controllers of a cluster that a router is connected to, in order; none if this one is alone. */
  listNodesOf(routerId: string): readonly string[]
  /** Whether an identity is connected to an edge router. */
  getConnectionStatus(identityId: string): ConnectionStatus
}

/** The state without a control channel: no router is connected, and no identity is connected to one. */
export const disconnectedNetwork: LiveNetwork = {
  findRouter: () => undefined,
  getPresence: () => 'unknown',
  getDisconnectTime: () => undefined,
  getDynamicCost: () => 0,
  listNodesOf: () => [],
  getConnectionStatus: () => 'offline',
  listRoutePath: () => [],
}
