// Who asks, on whose behalf code runs, and what it may reach: the first argument of everything that touches the store.
import type { Kysely } from 'kysely'
import type { Clock } from './clock.ts'
import type { VerifiedToken } from './signers/external-tokens.ts'
import type { Change } from './store/changes.ts'
import type { Database } from './store/database.ts'
import type { Reader } from './store/store.ts'

/** The party behind an operation. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | {
      readonly kind: 'identity'
      readonly identityId: string
      readonly identityName: string
      readonly isAdmin: boolean
      readonly apiSessionId: string
      /** A second factor is still owed: only what such a session may call is open to it. */
      readonly isPartial: boolean
      /** The tokens of external signers that its request carries, if a second factor needs them. */
      readonly externalTokens?: readonly VerifiedToken[]
      /** Only the audit names it: the controller itself decided to write, so no right of the caller is required. */
      readonly isActorOnly?: true
    }
  /** A person who can read the data directory, working on it while no controller runs. */
  | { readonly kind: 'local-operator'; readonly osUser: string }
  /** The controller itself: initialization and background work. */
  | { readonly kind: 'system' }

/** A caller without a session. */
export const ANONYMOUS: Caller = { kind: 'anonymous' }

/** A caller as the store knows those who read from it. */
export function toReader(caller: Caller): Reader {
  if (caller.kind === 'identity') return { id: caller.identityId, isAdministrator: caller.isAdmin }
  return { id: caller.kind, isAdministrator: caller.kind !== 'anonymous' }
}

/** Returns the caller as an actor for audit records only, even if its session has ended. */
export function toActor(caller: Caller): Caller {
  return caller.kind === 'identity' ? { ...caller, isActorOnly: true } : caller
}

export interface Origin {
  readonly requestId: string
  /** The peer's address without port; undefined where no connection is involved. */
  readonly address: string | undefined
}

export interface Context {
  readonly db: Kysely<Database>
  readonly clock: Clock
  readonly caller: Caller
  readonly origin: Origin
  /** Runs one transaction; settles once it is on disk. The body awaits nothing but its own queries. */
  write<T>(body: (tx: WriteContext) => Promise<T>): Promise<T>
}

/** What code that reads, or works inside a transaction, needs of a context. */
export type ReadContext = Omit<Context, 'write'>

/** A context inside a transaction: `db` is the transaction. */
export interface WriteContext extends ReadContext {
  /** Notes what changed: its audit record commits with it, its event goes out after. */
  record(change: Change): void
}
