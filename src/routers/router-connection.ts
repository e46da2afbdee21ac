// What passes between the controller and a connected router, without its form on the wire.
import type { VersionInfo } from './live-network.ts'

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

/** What the controller does with the connection of a router. The control channel implements it. */
export interface RouterConnection {
  /** When the router last sent anything, by the monotonic clock. */
  readonly lastHeardAt: number
  /** Ends the connection. The reason goes to the log only: routers are not told. */
  close(reason: string): void
}
