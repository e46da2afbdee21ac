// Commits and the changes in them, as plain JSON: the source of the audit, of every event, and of what memory follows.
//
// A commit holds everything that memory follows: records before and after, the identity of an API session that begins, its
// last activity, what machines reported. Following it therefore needs nothing of the process that made it; the tests pass
// each commit through JSON first.

import type { AuditDetail, Entity } from '../../definitions/resources/define.ts'
import type { resources } from '../../definitions/resources/index.ts'
import type { VersionInfo } from '../../definitions/resources/routers.ts'
import type { Instant } from '../../foundation/clock.ts'
import type { StoredMachineState } from '../../policy/posture/machine-state.ts'

/** The effects of one commit. It is plain JSON, so that a process which did not make the commit can follow it too. */
export interface Commit {
  /** Rises with each commit, and never falls: a restored database continues after every position that was ever used. */
  readonly position: number
  /**
   * When it was made, as its writer's clock says, but later than every commit before: it orders commits as their positions do, also
   * if the clock was set back, and after a restore.
   */
  readonly at: Instant
  /** In the order in which the transactions made them. */
  readonly changes: readonly Change[]
  /** The tables that statements of the commit wrote to. */
  readonly tables: readonly string[]
  /** By the name of a recorder of the store: its words about the commit, which it alone can read. */
  readonly recorded?: Readonly<Record<string, unknown>> | undefined
}

type Registered = (typeof resources)[number]
/** The plural name of a registered resource. */
export type ResourceName = Registered['plural']

type ResourceNamed<Name extends ResourceName> = Extract<Registered, { readonly plural: Name }>

/** The members of the records of a resource that has variants. */
type VariantMembers = { readonly typeId: string; readonly details: Readonly<Record<string, unknown>> }

/** A record of that resource, as the code sees it. */
export type RecordOf<Name extends ResourceName> = Name extends 'posture-checks'
  ? Entity<ResourceNamed<Name>> & VariantMembers
  : Entity<ResourceNamed<Name>>

/** A change of a resource's record: its values before and after. */
export interface ChangeOf<Name extends ResourceName> {
  readonly resource: Name
  readonly id: string
  /** The record before; absent for a create, and if no listener needs it. */
  readonly before?: RecordOf<Name> | undefined
  /** The record after; absent for a delete. */
  readonly after?: RecordOf<Name> | undefined
}

/** A change of something that is not a record of a resource. */
interface OtherChange {
  readonly resource: 'adoption' | 'audit' | 'backups' | 'clock' | 'cluster' | 'keys' | 'log-level' | 'network-file'
  readonly id: string
  readonly before?: Readonly<Record<string, unknown>>
  readonly after?: Readonly<Record<string, unknown>>
}

/**
 * The machines of the identity `id` reported something else; without a state after it, they are removed because its last API
 * session ended (`delete`), or time has changed what their reports amount to.
 */
interface MachineChange {
  readonly resource: 'machines'
  readonly id: string
  /** Their report before; absent if there was none. */
  readonly before?: StoredMachineState | undefined
  readonly after?: StoredMachineState | undefined
  /** If time has changed what the reports amount to: up to when it was judged before. */
  readonly judgedUntil?: Instant
}

/** Tokens of `id` are not accepted any more, or, without a state after it, all of those tokens have ended. */
interface RevocationChange {
  readonly resource: 'revocations'
  readonly id: string
  readonly before?: undefined
  readonly after?: TokenRevocation | undefined
}

/** The routers that are connected to the controller `id`, and their clients; it asks the others for theirs if it says nothing of them. */
interface PresenceChange {
  readonly resource: 'presence'
  readonly id: string
  readonly before?: undefined
  readonly after?: RouterPresence | undefined
}

/** Routers and identities that are connected, or are not any more. */
export type RouterPresence = {
  /** Routers and identities that are not named are not connected; otherwise they are as before. */
  readonly isFull: boolean
  readonly routers: Readonly<Record<string, ConnectedRouterFields | null>>
  /** Whether an identity is connected to any edge router. */
  readonly identities: Readonly<Record<string, boolean>>
}

/** The part of what a connected router says of itself that other controllers show. */
export type ConnectedRouterFields = {
  readonly hostname: string
  readonly supportedProtocols: Readonly<Record<string, string>>
  readonly syncStatus: string
  readonly versionInfo: VersionInfo
  readonly modelMode: 'none' | 'waiting' | 'following'
  /** When it asked the controller for the data model; absent if it does not follow that one. */
  readonly subscribedAt?: Instant
  /** Whether it is connected to one controller at a time. */
  readonly isInTurn: boolean
  /** Whether it does not respond to the controller, though it is connected. */
  readonly isSilent?: boolean
  /** The addresses at which it accepts links of other routers. */
  readonly listeners: readonly ConnectedListener[]
}

/** An address at which a router accepts links. */
export type ConnectedListener = {
  readonly address: string
  readonly protocol: string
  readonly costTags: readonly string[]
  readonly groups: readonly string[]
  readonly localBinding: string
}

/** The identity `id` is traced, or, without a state after it, is not any more. */
interface TraceChange {
  readonly resource: 'traces'
  readonly id: string
  readonly before?: undefined
  readonly after?: IdentityTrace | undefined
}

/** A step of a connection that a trace logs. */
export type TraceChannel = 'selectPath' | 'establishPath'

/** How an identity is traced: controllers and routers log in detail how its connections are established. */
export type IdentityTrace = {
  /** Stands in each line of the logs that belongs to the trace. */
  readonly traceId: string
  readonly channels: readonly TraceChannel[]
  readonly until: Instant
}

/** The tokens that are not accepted any more. */
export type TokenRevocation = {
  readonly type: 'IDENTITY' | 'API_SESSION' | 'JTI'
  /** Later ones are accepted. */
  readonly issuedBefore: Instant
  /** By then no such token is valid any more. */
  readonly expiresAt: Instant
}

/** A change, with the values before and after, typed by its resource. */
export type RecordChange =
  | { [Name in ResourceName]: ChangeOf<Name> }[ResourceName]
  | MachineChange
  | RevocationChange
  | PresenceChange
  | TraceChange
  | OtherChange

/** The values of a record of that name after a change. */
export type StateOf<Name extends RecordChange['resource']> = Extract<RecordChange, { readonly resource: Name }>['after']

/** The fields of an identity that its sessions need. */
export type SessionIdentity = Pick<
  RecordOf<'identities'>,
  'id' | 'name' | 'isAdmin' | 'permissions' | 'authPolicyId' | 'roleAttributes' | 'externalId'
>

interface ChangeFacts {
  /**
   * `refuse`: a sign-in failed, and nothing changed. `cut`: old audit records were pruned. `jump`: the system clock was set.
   */
  readonly operation: 'create' | 'update' | 'delete' | 'refuse' | 'cut' | 'jump'
  /** The detail in which the audit stores it: the record before and after, only the event, or nothing. */
  readonly audit: AuditDetail
  readonly at: Instant
  /** The method of a sign-in, also of a failed one. */
  readonly method?: string
  /** The identity of an API session that begins, because memory follows a commit without a look at rows. */
  readonly identity?: SessionIdentity
  /** The reason for which a sign-in was refused. */
  readonly reason?: string
  /** How many equal events the audit record stands for; one by default. */
  readonly count?: number
  /** The change is audited but not announced, because no record changes now: the event happened before, or elsewhere. */
  readonly isAuditOnly?: true
}

/** A change that a transaction recorded. */
export type Change = ChangeFacts & RecordChange

/** A change of a resource that is only known at run time. */
export interface AnyChange extends ChangeFacts {
  readonly resource: string
  readonly id: string
  readonly before?: Readonly<Record<string, unknown>> | undefined
  readonly after?: Readonly<Record<string, unknown>> | undefined
}

/** An event without a record before or after it. */
export type AuditEvent = Pick<AnyChange, 'operation' | 'resource' | 'id' | 'method' | 'reason' | 'count'>

type Members = Readonly<Record<string, unknown>>

/** The change of a record whose resource is only known at run time. */
export function toRecordChange(
  resource: string,
  id: string,
  before: Members | undefined,
  after: Members | undefined,
): RecordChange {
  return { resource, id, before, after } as RecordChange
}

/** A change of a resource that is only known at run time, as one that is typed by its resource. */
export function toChange(change: AnyChange): Change {
  return change as Change
}
