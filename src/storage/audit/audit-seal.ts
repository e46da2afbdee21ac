// The members of an audit record, and the keyed hash that seals it to the record before.
//
// The key is in `audit.key` beside the database, so that write access to the database is not enough to seal a changed
// record again. It is created with the database and never replaced: a controller without it does not start. A backup holds
// both.
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto'

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
  'node',
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
  /** The age of the audit at this record in milliseconds, by a clock that is never set; retention compares it. */
  readonly elapsed: number
  /** The controller that wrote it; null if it was alone. */
  readonly node: string | null
}

/** A record with its place in the chain. */
export interface SealedRecord extends SealedFields {
  readonly previousHash: string
  readonly hash: string
}

/** Whether a record holds only text, integers and null. A file that another process wrote to can hold other types. */
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
