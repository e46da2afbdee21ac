// The messages between the bench and the process of the simulated routers.
import type { Credential, Target } from '../generator/connection.ts'

/** A router that has enrolled. */
export interface RouterIdentity {
  readonly id: string
  readonly credential: Credential
}

/** The release by whose protocol routers speak. */
export type Release = 1 | 2

/** With what a client dials. */
export interface DialTokens {
  readonly session: string
  readonly apiSession: string
}

/** `at` is the number of a router, in the order in which they were given. */
export type SwarmCommand =
  | {
      readonly kind: 'connect'
      readonly target: Target
      readonly routers: readonly RouterIdentity[]
      readonly release?: Release
    }
  /** Has each router follow each of several controllers, and come back whenever it loses one. */
  | { readonly kind: 'stay'; readonly targets: readonly Target[]; readonly routers: readonly RouterIdentity[] }
  | { readonly kind: 'countConnections' }
  | { readonly kind: 'synchronize'; readonly at: number }
  | { readonly kind: 'countAnnouncements' }
  | { readonly kind: 'follow' }
  | { readonly kind: 'countChanges' }
  | { readonly kind: 'awaitChanges'; readonly count: number }
  | {
      readonly kind: 'dial'
      readonly at: number
      readonly tokens: DialTokens
      readonly inFlight: number
      readonly milliseconds: number
    }

export interface Synchronized {
  readonly milliseconds: number
  readonly parts: number
}

export interface Dialed {
  readonly completed: number
  readonly refused: number
  readonly seconds: number
  /** Milliseconds, in order of size. */
  readonly latencies: readonly number[]
}

/**
 * The result of a command; the announcements of sessions are those that all routers have received together, and so are the changes of the
 * data model.
 */
export type SwarmResult =
  | { readonly kind: 'connected' }
  | { readonly kind: 'connections'; readonly count: number }
  | ({ readonly kind: 'synchronized' } & Synchronized)
  | { readonly kind: 'announcements'; readonly count: number }
  | { readonly kind: 'following' }
  | { readonly kind: 'changes'; readonly count: number }
  | ({ readonly kind: 'dialed' } & Dialed)
  | { readonly kind: 'failed'; readonly why: string }
