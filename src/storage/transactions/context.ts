// The caller on whose behalf code runs, and its access to the store: the first argument of all code that uses the store.
import type { Kysely } from 'kysely'
import type { Rights } from '../../definitions/permissions/rights.ts'
import type { RecordScope } from '../../definitions/permissions/words.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Database } from '../database.ts'
import type { VerifiedToken } from '../external-tokens.ts'
import type { Reader } from '../store.ts'
import type { Change } from './changes.ts'
import type { UncommittedChanges } from './uncommitted-changes.ts'

/** The actor that requests an operation. */
export type Caller =
  | { readonly kind: 'anonymous' }
  | {
      readonly kind: 'identity'
      readonly identityId: string
      readonly identityName: string
      readonly isAdmin: boolean
      /** Its rights on the management and fabric APIs; none on the client API, unless it administers. */
      readonly rights: Rights
      /** The records that its request is limited to, if its right is not on all records. */
      readonly limit?: RecordLimit
      /** The id of the session. A caller by a token has the id of the token here, which no session has. */
      readonly apiSessionId: string
      /** The token of a machine that the request is made with in place of a session. */
      readonly token?: CallerToken
      /** The id of the access token of OpenID Connect that the request is made with. */
      readonly accessTokenId?: string
      /** A second factor is outstanding: the caller has only the permissions of a partial session. */
      readonly isPartial: boolean
      /** The tokens of external signers that its request carries, if a second factor needs them. */
      readonly externalTokens?: readonly VerifiedToken[]
      /** The caller is only the actor in the audit: the controller itself writes, so no right of the caller is required. */
      readonly isActorOnly?: true
    }
  /** A person who can read the data directory, working on it while no controller runs. */
  | { readonly kind: 'local-operator'; readonly osUser: string }
  /** The controller itself: initialization and background work. */
  | { readonly kind: 'system' }

/** The token of a machine, as its requests know it. */
export interface CallerToken {
  readonly id: string
  readonly name: string
  readonly expiresAt: Instant
}

export type IdentityCaller = Extract<Caller, { readonly kind: 'identity' }>

/** Of these resources, a request reads and changes only the records in these scopes. */
export interface RecordLimit {
  readonly resources: readonly string[]
  readonly scopes: readonly RecordScope[]
}

/** A caller without a session. */
export const ANONYMOUS: Caller = { kind: 'anonymous' }

/** Returns the caller as the store identifies its readers. */
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
  /** The peer's address without port; undefined without a connection. */
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

/** The part of a context that code for reading, or inside a transaction, needs. */
export type ReadContext = Omit<Context, 'write'>

/** A context inside a transaction: `db` is the transaction. */
export interface WriteContext extends ReadContext {
  readonly uncommitted: UncommittedChanges
  /** Records a change: its audit record is committed with it, and its event follows the commit. */
  record(change: Change): void
}
