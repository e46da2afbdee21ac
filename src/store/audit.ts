// Who changed what: one record a change, in the change's own transaction, each sealed with the hash of the one before.
import { createHash } from 'node:crypto'
import type { Kysely } from 'kysely'
import { resourceOf } from '../resources/index.ts'
import type { AnyField } from '../schema/fields.ts'
import type { Change } from './changes.ts'
import type { Database } from './database.ts'
import type { Stamp } from './store.ts'

/** The hash that stands before the first record. */
export const CHAIN_START = '0'.repeat(64)

/** A record without its own number: what its hash is made of, in this order. */
export interface Sealed {
  readonly at: number
  readonly actorKind: string
  readonly actorId: string | null
  readonly actorName: string | null
  readonly address: string | null
  readonly requestId: string
  readonly operation: string
  readonly resource: string
  readonly entityId: string
  readonly before: string | null
  readonly after: string | null
}

/** SHA-256, hex, of the hash before and the record's members as a JSON array. */
export function seal(previousHash: string, record: Sealed): string {
  const members = [
    record.at,
    record.actorKind,
    record.actorId,
    record.actorName,
    record.address,
    record.requestId,
    record.operation,
    record.resource,
    record.entityId,
    record.before,
    record.after,
  ]
  return createHash('sha256').update(previousHash).update(JSON.stringify(members)).digest('hex')
}

/** The writing end of the chain. `mark` and `reset` let the store take back what a rollback took back. */
export class Audit {
  #head: string

  constructor(head: string) {
    this.#head = head
  }

  mark(): string {
    return this.#head
  }

  reset(mark: string): void {
    this.#head = mark
  }

  /** Adds one record for each change that is audited; part of the transaction that made them. */
  async append(db: Kysely<Database>, changes: readonly Change[], stamp: Stamp): Promise<void> {
    const audited = changes.filter((change) => change.audit !== 'none')
    if (audited.length === 0) return
    const rows = audited.map((change) => {
      const record = sealedRecord(change, stamp)
      const previousHash = this.#head
      this.#head = seal(previousHash, record)
      return { ...record, previousHash, hash: this.#head }
    })
    await db.insertInto('audit_records').values(rows).execute()
  }
}

/** The hash of the newest record, from which a chain is continued after a start. */
export async function chainHead(db: Kysely<Database>): Promise<string> {
  const newest = await db.selectFrom('audit_records').select('hash').orderBy('n', 'desc').limit(1).executeTakeFirst()
  return newest?.hash ?? CHAIN_START
}

function sealedRecord(change: Change, { actor, address, requestId }: Stamp): Sealed {
  const isFull = change.audit === 'values'
  return {
    at: change.at,
    actorKind: actor.kind,
    actorId: actor.id,
    actorName: actor.name,
    address,
    requestId,
    operation: change.operation,
    resource: change.resource,
    entityId: change.id,
    before: isFull && change.before ? valuesText(change.resource, change.before) : null,
    after: isFull && change.after ? valuesText(change.resource, change.after) : null,
  }
}

/** A record's values as JSON, without what only its reader may know. */
function valuesText(plural: string, values: Readonly<Record<string, unknown>>): string {
  const { fields } = resourceOf(plural)
  return JSON.stringify(values, (key, value) => (isMasked(fields[key]) && value !== null ? '***' : value))
}

function isMasked(field: AnyField | undefined): boolean {
  return field?.options.secret === true || field?.options.masked === true
}
