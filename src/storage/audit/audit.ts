// Writes the audit: one record for each change, in the transaction of the change, sealed with the hash of the record before.
import type { Kysely } from 'kysely'
import type { RecordValues } from '../../definitions/model/audit-mask.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { Clock } from '../../foundation/clock.ts'
import type { Database } from '../database.ts'
import { type Parameter, prepareQuery } from '../prepared-queries.ts'
import type { AuditOrigin } from '../store.ts'
import type { AnyChange } from '../transactions/changes.ts'
import type { RowChange } from '../transactions/row-changes.ts'
import { untyped } from '../untyped.ts'
import { type AuditSealer, SEALED_COLUMNS, type SealedFields } from './audit-seal.ts'
import { toAuditName, toAuditValues } from './audit-values.ts'

/** The subject of records about pruning. */
export const PRUNE = { operation: 'cut', resource: 'audit' } as const

/** The subject of records about a system clock that was set. */
export const CLOCK_JUMP = { operation: 'jump', resource: 'clock' } as const

/** The subject of records about a log level that was changed. */
export const LOG_LEVEL = { operation: 'update', resource: 'log-level' } as const
/** A network of another controller was adopted. */
export const ADOPTION = { operation: 'create', resource: 'adoption' } as const

/** The subject of records about a key that was replaced. */
export const KEY_ROTATION = { operation: 'update', resource: 'keys' } as const

/** The subject of records about a controller that begins, joins or leaves a cluster. */
export const CLUSTER_CHANGE = { resource: 'cluster' } as const

const columns = [...SEALED_COLUMNS, 'previousHash', 'hash'] as const

const insertRecord = prepareQuery((db, ...values: Parameter[]) =>
  untyped(db)
    .insertInto('audit_records')
    .values(Object.fromEntries(columns.map((name, at) => [name, values[at] as Parameter]))),
)

/** The state from which the chain continues after a start. */
export interface ChainHead {
  readonly hash: string
  readonly elapsed: number
}

/** The head of the chain. The store uses `mark` and `reset` to revert it together with a rollback. */
export class Audit {
  readonly #sealer: AuditSealer
  readonly #clock: Clock
  readonly #node: string | null
  /** The result of `elapsed` at the time when the monotonic clock read zero. */
  #origin: number
  #head: string

  /** @param node what the other controllers of the network call this one; null if it is alone */
  constructor(sealer: AuditSealer, clock: Clock, node: string | null, { hash, elapsed }: ChainHead) {
    this.#sealer = sealer
    this.#clock = clock
    this.#node = node
    this.#origin = elapsed - clock.monotonic()
    this.#head = hash
  }

  /** The age of the audit in milliseconds. */
  elapsed(): number {
    return Math.floor(this.#origin + this.#clock.monotonic())
  }

  mark(): string {
    return this.#head
  }

  reset(mark: string): void {
    this.#head = mark
  }

  /**
   * Continues after the records among rows that another process added. The age follows the clock of this process, as long as it is
   * not behind: what a commit took on its way does not make the audit younger.
   */
  follow(rows: readonly RowChange[]): void {
    const newest = rows.findLast((change) => change.table === 'audit_records' && change.operation === 'insert')
    if (newest?.operation !== 'insert') return
    this.#head = newest.row.hash as string
    this.#origin = Math.max(this.#origin, (newest.row.elapsed as number) - this.#clock.monotonic())
  }

  /** Adds one record for each audited change, in the transaction of the changes. */
  async append(db: Kysely<Database>, changes: readonly AnyChange[], origin: AuditOrigin): Promise<void> {
    const elapsed = this.elapsed()
    for (const change of changes) {
      if (change.audit === 'none') continue
      const record = { ...toSealedRecord(change, origin), elapsed, node: this.#node }
      const previousHash = this.#head
      this.#head = this.#sealer.seal(previousHash, record)
      await insertRecord(db, ...SEALED_COLUMNS.map((name) => record[name]), previousHash, this.#head)
    }
  }
}

function toSealedRecord(
  change: AnyChange,
  { actor, address, requestId }: AuditOrigin,
): Omit<SealedFields, 'elapsed' | 'node'> {
  const isEvent = change.audit !== 'values'
  const { before, after } = isEvent ? { before: null, after: null } : toAuditValues(change, findMask(change))
  const name = (change.after ?? change.before)?.name
  return {
    at: change.at,
    actorKind: actor.kind,
    actorId: actor.id,
    actorName: actor.name === null ? null : toAuditName(actor.name),
    address,
    requestId,
    operation: change.operation,
    resource: change.resource,
    entityId: change.id,
    entityName: typeof name === 'string' ? toAuditName(name) : null,
    before,
    after,
    method: change.method ?? null,
    reason: change.reason ?? null,
    count: change.count ?? 1,
  }
}

/** The subjects whose values are not those of a resource. */
const hasNoSecrets: ReadonlySet<string> = new Set(
  [PRUNE, CLOCK_JUMP, LOG_LEVEL, ADOPTION, CLUSTER_CHANGE].map(({ resource }) => resource),
)

/** Returns the function that masks the secrets of a change. */
function findMask({ resource }: AnyChange): (values: RecordValues) => RecordValues {
  return hasNoSecrets.has(resource) ? (values) => values : getCompiledResource(resource).auditMask
}
