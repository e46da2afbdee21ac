// Who changed what: one record a change, in the change's own transaction, each sealed with the hash of the one before.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { Clock } from '../clock.ts'
import type { Values } from '../model/audit-mask.ts'
import { getCompiledResource } from '../model/index.ts'
import { toAuditName, toAuditValues } from './audit-values.ts'
import type { Change } from './changes.ts'
import type { Database } from './database.ts'
import { type Parameter, prepareQuery } from './prepared-queries.ts'
import type { AuditOrigin } from './store.ts'

/** What records are about that say that older ones were cut off. */
export const PRUNE = { operation: 'cut', resource: 'audit' } as const

/** What a record is about that says that the system clock was set. */
export const CLOCK_JUMP = { operation: 'jump', resource: 'clock' } as const

/** The hash that stands before the first record. */
export const CHAIN_START = '0'.repeat(64)

/** The members of a record that its hash is made of, in this order. */
export const SEALED_COLUMNS = [
  'at',
  'actorKind',
  'actorId',
  'actorName',
  'address',
  'requestId',
  'operation',
  'resource',
  'entityId',
  'entityName',
  'before',
  'after',
  'method',
  'reason',
  'count',
  'elapsed',
] as const

/** A record without its own number. */
export interface SealedFields {
  readonly at: number
  readonly actorKind: string
  readonly actorId: string | null
  readonly actorName: string | null
  readonly address: string | null
  readonly requestId: string
  readonly operation: string
  readonly resource: string
  readonly entityId: string
  readonly entityName: string | null
  readonly before: string | null
  readonly after: string | null
  readonly method: string | null
  readonly reason: string | null
  readonly count: number
  /** Milliseconds that the audit had lasted, by a clock that is not set: what retention measures the age of records by. */
  readonly elapsed: number
}

/** A record with its place in the chain. */
export interface SealedRecord extends SealedFields {
  readonly previousHash: string
  readonly hash: string
}

/** Whether a record holds text, integers and null alone. A file that another process wrote to can hold anything. */
export function isWellFormed(record: SealedRecord): boolean {
  const isPlain = (value: unknown) => value === null || typeof value === 'string' || Number.isInteger(value)
  const { previousHash, hash } = record
  return (
    SEALED_COLUMNS.every((name) => isPlain(record[name])) &&
    typeof previousHash === 'string' &&
    typeof hash === 'string'
  )
}

/** The length of the key of the chain. */
export const AUDIT_KEY_BYTES = 32

/** Computes the hashes of the chain under a key that is not in the database, so that write access to it is not enough. */
export class AuditSealer {
  readonly #key: KeyObject

  constructor(key: Buffer) {
    this.#key = createSecretKey(key)
  }

  /** Whether a record is as it was sealed. */
  isIntact(record: SealedRecord): boolean {
    return isWellFormed(record) && this.seal(record.previousHash, record) === record.hash
  }

  /** Returns HMAC-SHA-256, in hexadecimal, of the hash before and the record's members as a JSON array. */
  seal(previousHash: string, record: SealedFields): string {
    const members = JSON.stringify(SEALED_COLUMNS.map((name) => record[name]))
    return createHmac('sha256', this.#key).update(previousHash).update(members).digest('hex')
  }
}

const columns = [...SEALED_COLUMNS, 'previousHash', 'hash'] as const

const insertRecord = prepareQuery((db, ...values: Parameter[]) =>
  db.insertInto('audit_records').values(Object.fromEntries(columns.map((name, at) => [name, values[at] as Parameter]))),
)

/** With what a chain goes on after a start. */
export interface ChainHead {
  readonly hash: string
  readonly elapsed: number
}

/** The writing end of the chain. `mark` and `reset` let the store take back what a rollback took back. */
export class Audit {
  readonly #sealer: AuditSealer
  readonly #clock: Clock
  /** What `elapsed` was when the monotonic clock read zero. */
  readonly #origin: number
  #head: string

  constructor(sealer: AuditSealer, clock: Clock, { hash, elapsed }: ChainHead) {
    this.#sealer = sealer
    this.#clock = clock
    this.#origin = elapsed - clock.monotonic()
    this.#head = hash
  }

  /** Milliseconds that the audit has lasted. */
  elapsed(): number {
    return Math.floor(this.#origin + this.#clock.monotonic())
  }

  mark(): string {
    return this.#head
  }

  reset(mark: string): void {
    this.#head = mark
  }

  /** Adds one record for each change that is audited; part of the transaction that made them. */
  async append(db: Kysely<Database>, changes: readonly Change[], stamp: AuditOrigin): Promise<void> {
    const elapsed = this.elapsed()
    for (const change of changes) {
      if (change.audit === 'none') continue
      const record = { ...toSealedRecord(change, stamp), elapsed }
      const previousHash = this.#head
      this.#head = this.#sealer.seal(previousHash, record)
      await insertRecord(db, ...SEALED_COLUMNS.map((name) => record[name]), previousHash, this.#head)
    }
  }
}

function toSealedRecord(change: Change, { actor, address, requestId }: AuditOrigin): Omit<SealedFields, 'elapsed'> {
  const isEvent = change.audit !== 'values'
  const { before, after } = isEvent ? { before: null, after: null } : toAuditValues(change, maskFor(change))
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

/** What must not be shown of the records that a change is about. */
function maskFor({ resource }: Change): (values: Values) => Values {
  const isOfRecord = resource !== PRUNE.resource && resource !== CLOCK_JUMP.resource
  return isOfRecord ? getCompiledResource(resource).auditMask : (values) => values
}
