// The types of the tables for Kysely, derived from the resource definitions; only tables without a resource are declared here.
//
// Keys are integers inside and ids outside: every table of records has `n integer primary key` besides `id`. A set that
// lists are filtered by (role attributes, roles of policies, configs of services) has a table `(value, n)` that is ordered
// by value, and a JSON column in the record for reads.
import type { Generated } from 'kysely'
import type { Resource, RowOf } from '../definitions/resources/define.ts'
import type { resources } from '../definitions/resources/index.ts'
import type { Field, Fields } from '../definitions/schema/fields.ts'
import type { SealedFields } from './audit/audit-seal.ts'

type SnakeFromKebab<S extends string> = S extends `${infer A}-${infer B}` ? `${A}_${SnakeFromKebab<B>}` : S

type SnakeFromCamel<S extends string> = S extends `${infer C}${infer Rest}`
  ? `${C extends Lowercase<C> ? C : `_${Lowercase<C>}`}${SnakeFromCamel<Rest>}`
  : ''

/** The subtypes, whose records are in the table of another resource. */
type Subtypes = 'edge-routers'
type AnyDefined = Exclude<(typeof resources)[number], { plural: Subtypes }>
type TableOf<R> = R extends Resource<string, infer Plural, Fields, Fields> ? SnakeFromKebab<Plural> : never

type EntityTables = {
  [R in AnyDefined as TableOf<R>]: R extends Resource<string, string, infer F, Fields>
    ? Omit<RowOf<F>, 'n'> & { n: Generated<number> }
    : never
}

/** Names of the fields that are sets and can be filtered by: each has a table of its members. */
type IndexedSets<F extends Fields> = {
  [K in keyof F]: F[K] extends Field<string[], string, infer O> ? (O extends { filter: true } ? K : never) : never
}[keyof F]

type SetTables = {
  [R in AnyDefined as R extends Resource<string, string, infer F, Fields>
    ? `${TableOf<R>}_${SnakeFromCamel<IndexedSets<F> & string>}`
    : never]: SetTable
}

/** One row per member: `n` is the record's key, `value` the member. */
interface SetTable {
  n: number
  value: string
}

/** One sealed record per change; see `audit.ts`. */
interface AuditTable extends SealedFields {
  n: Generated<number>
  previousHash: string
  hash: string
}

/** The receipts of the new root while it replaces another one; see `certificates/root-receipts.ts`. */
interface RootReceiptTable {
  holderId: string
  /** SHA-256 of the root, lower-case hex. */
  fingerprint: string
  fetchedAt: number
}

/** A change that revoked API sessions whose rows are not all deleted yet, so that lists still show them; see `authentication/api-sessions/api-sessions.ts`. */
interface ApiSessionRevocationTable {
  id: string
  /** JSON: which sessions, of those that there were. */
  sessions: string
  /** The number of the newest session that there was. */
  newest: number
}

/** The latest reports of the machines of identities; see `access/posture/reported-posture.ts`. */
interface MachineStateTable {
  identityId: string
  /** JSON. */
  state: string
}

/** One row; see `sqlite/group-commit.ts`. */
interface CommitPositionTable {
  position: number
  at: number
  /** Random; another one after a restore, whose rows do not follow from the commits before. */
  timeline: string
  /** Of the last commit, if several controllers share a log; see `commit-log.ts`. */
  chain: string
  /** The id of the log that several controllers share; empty if this one is alone. */
  network: string
}

/** The changes of the model of routers by a commit; see `network/router-model/model-log.ts`. */
interface ModelChangeTable {
  position: number
  /** The position of the commit that concerned routers before this one. */
  previous: number
  at: number
  /** The length of `events`. */
  size: number
  /** JSON; null if routers have to receive everything in place of what changed. */
  events: string | null
}

/** A revocation of tokens; see `network/router-model/revocations.ts`. */
interface RevocationTable {
  n: Generated<number>
  id: string
  type: string
  /** Later tokens are accepted. */
  issuedBefore: number
  /** By then no such token is valid any more. */
  expiresAt: number
}

/** An API session that lasts, and sessions of which have ended; see `network/routers/ended-sessions.ts`. */
interface EndedSessionTable {
  apiSessionId: string
  /** When the first of those sessions began. */
  firstCreatedAt: number
  /** The time of the commit that ended the last one. */
  endedAt: number
}

/** A router that is away, or has not been back for long; see `network/routers/ended-sessions.ts`. */
interface AbsentRouterTable {
  routerId: string
  /** The time of a commit: it has heard of the sessions that ended by then. */
  heardUntil: number
}

/** A setting on which all controllers of a network agree; see `cluster/equal-settings.ts`. */
interface SharedSettingTable {
  name: string
  /** JSON of the value as it is written. */
  value: string
}

/** One row; see `network/controllers/controller-list.ts`. */
interface ControllerListTable {
  id: Generated<number>
  /** The position of the last commit that changed where routers reach the controllers. */
  version: number
}

export interface Database extends EntityTables, SetTables {
  absent_routers: AbsentRouterTable
  api_session_revocations: ApiSessionRevocationTable
  audit_records: AuditTable
  ended_sessions: EndedSessionTable
  root_receipts: RootReceiptTable
  commit_position: CommitPositionTable
  controller_list: ControllerListTable
  machine_states: MachineStateTable
  model_changes: ModelChangeTable
  revocations: RevocationTable
  shared_settings: SharedSettingTable
}
