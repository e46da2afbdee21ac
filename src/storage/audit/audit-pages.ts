// Reads the audit in the order in which it was written, a page at a time.
import type { Kysely } from 'kysely'
import type { Database } from '../database.ts'
import type { ChainedRecord } from './audit-chain.ts'

/** The records after the one with the number `n`, at most `limit`, the oldest first. */
export function readAuditAfter(db: Kysely<Database>, n: number, limit: number): Promise<ChainedRecord[]> {
  return db.selectFrom('audit_records').selectAll().where('n', '>', n).orderBy('n').limit(limit).execute()
}

export function findNewestAuditRecord(db: Kysely<Database>): Promise<Pick<ChainedRecord, 'n' | 'hash'> | undefined> {
  return db.selectFrom('audit_records').select(['n', 'hash']).orderBy('n', 'desc').limit(1).executeTakeFirst()
}

/** The oldest record that was not pruned. */
export function findOldestAuditRecord(
  db: Kysely<Database>,
): Promise<Pick<ChainedRecord, 'n' | 'previousHash'> | undefined> {
  return db.selectFrom('audit_records').select(['n', 'previousHash']).orderBy('n').limit(1).executeTakeFirst()
}
