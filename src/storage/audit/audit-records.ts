// Reads the audit: its fields, pages of records, verification and retention.
import { setImmediate } from 'node:timers/promises'
import { sql } from 'kysely'
import { type FilterSource, toFilterSource, toFilterSymbols } from '../../definitions/model/filter-symbols.ts'
import { listReadResources, mayReadRecord } from '../../definitions/permissions/readable-records.ts'
import type { Kind, Stored } from '../../definitions/schema/field.ts'
import { f } from '../../definitions/schema/fields.ts'
import { anyObject } from '../../definitions/schema/json-schema.ts'
import { COUNT } from '../../definitions/schema/ranges.ts'
import { MAX_INSTANT, MIN_INSTANT } from '../../foundation/clock.ts'
import type { ListPlan } from '../lists/list-plan.ts'
import { type ListQuery, queryPage, queryRowsOf, type RowQuery, toListQuery, type Window } from '../lists/lists.ts'
import { getSqlDialect } from '../sql-dialect.ts'
import type { Store } from '../store.ts'
import { type Caller, type Context, toReader, type WriteContext } from '../transactions/context.ts'
import { isOneOf } from '../untyped.ts'
import { PRUNE } from './audit.ts'
import { type Anchor, type ChainedRecord, type ChainReport, ChainVerifier } from './audit-chain.ts'

const ofAChange =
  'of a change, the members that changed. Members that are too large are replaced by their size and SHA-256, as `omitted`.'

/** The members of an audit record, besides its number. */
export const auditFields = {
  at: f.time({ filter: true, summary: 'When it happened.' }),
  actorKind: f.text({
    filter: true,
    summary:
      'Who did it: an identity, local (a person on the machine of the controller), anonymous (a client that was not signed in), or system (the controller by itself).',
  }),
  actorId: f.text({ filter: true, nullable: true, summary: 'The id of the identity that did it.' }),
  actorName: f.text({ filter: true, nullable: true, summary: 'Its name at that time, or that of the system user.' }),
  address: f.text({ filter: true, nullable: true, summary: 'The network address it was done from.' }),
  requestId: f.text({ filter: true, summary: 'The id of the request, as in responses and in the log.' }),
  operation: f.text({
    filter: true,
    summary: 'create, update, delete, refuse (a sign-in), cut (old audit records) or jump (of the system clock).',
  }),
  resource: f.text({ filter: true, summary: 'What kind of record it was done to, in the plural.' }),
  entityId: f.text({ filter: true, summary: 'The id of that record.' }),
  entityName: f.text({ filter: true, nullable: true, summary: 'Its name at that time.' }),
  before: f.json(anyObject, { nullable: true, summary: `The record before: ${ofAChange}` }),
  after: f.json(anyObject, { nullable: true, summary: `The record after: ${ofAChange}` }),
  method: f.text({ filter: true, nullable: true, summary: 'Of a sign-in: password, cert or ext-jwt.' }),
  reason: f.text({
    filter: true,
    nullable: true,
    summary:
      'Of a refused sign-in: why, as a code. Of rows that were rebuilt from the log of a cluster: why, in a sentence.',
  }),
  count: f.int({
    ...COUNT,
    filter: true,
    summary:
      'How many equal events the record stands for. The first is recorded by itself; those after it are counted, refusals by source and reason for a minute, sign-ins by identity, method and address for an hour. Sessions that end along with something else are one record, which names the first of them.',
  }),
  node: f.text({
    filter: true,
    nullable: true,
    summary: 'Which controller wrote it, by its name, if several controllers serve the network.',
  }),
  previousHash: f.text({ summary: 'The hash of the record before this one.' }),
  hash: f.text({
    summary: 'HMAC-SHA-256, in hexadecimal, of the hash before and of this record, under the key of the audit.',
  }),
}

/** The audit as filters see it: numbered in the order in which it was written, the newest first. */
export const auditSource: FilterSource = toFilterSource({
  table: 'audit_records',
  symbols: new Map([
    ['id', { name: 'id', type: 'integer', column: 'n', member: 'id', isNullable: false }],
    ...toFilterSymbols(auditFields),
  ]),
  key: { column: 'n', isDescending: true },
})

const members = Object.entries(auditFields)

/** A record as JSON text. */
export function toAuditJson(row: ChainedRecord): string {
  const texts = members.map(([name, { kind }]) => {
    const column = toWritable(kind, row[name as keyof typeof auditFields])
    return `,"${name}":${column === null ? 'null' : kind.toJson(column)}`
  })
  return `{"id":${row.n}${texts.join('')}}`
}

/**
 * Returns a value in the form that its kind can write. A value that another process wrote to the database may have no such
 * form; then the record can still be read, and verification reports that it was changed.
 */
function toWritable({ name }: Kind, column: Stored): Stored {
  if (name === 'time') return Math.min(Math.max(column as number, MIN_INSTANT), MAX_INSTANT)
  if (name === 'json' && !isJsonObject(column)) return null
  return column
}

function isJsonObject(column: Stored): boolean {
  try {
    const value: unknown = JSON.parse(column as string)
    return typeof value === 'object' && value !== null && !Array.isArray(value)
  } catch {
    return false
  }
}

type Reading = Pick<Context, 'db' | 'caller'>

export interface AuditPage extends Window {
  readonly items: readonly ChainedRecord[]
}

/** One page of the audit, as far as the caller may read it. @throws INVALID_FILTER, INVALID_SORT_IDENTIFIER */
export async function listAuditRecords(store: Store, context: Reading, plan: ListPlan): Promise<AuditPage> {
  const { keys, ...window } = await queryPage(store, toAuditQuery(context, plan))
  const rows = await context.db
    .selectFrom('audit_records')
    .selectAll()
    .where(isOneOf(context.db, 'n', keys))
    .execute()
  const byKey = new Map(rows.map((row) => [row.n, row]))
  return { ...window, items: keys.flatMap((n) => byKey.get(n) ?? []) }
}

/** All records that match a plan, for a stream. */
export function queryAuditRows(store: Store, context: Reading, plan: ListPlan): Promise<RowQuery<ChainedRecord>> {
  return queryRowsOf<ChainedRecord>(store, toAuditQuery(context, plan))
}

function toAuditQuery(context: Reading, plan: ListPlan): ListQuery {
  const query = toListQuery(context, auditSource, plan)
  const { caller } = context
  const resources = caller.kind === 'identity' ? listReadResources(caller.rights) : undefined
  if (!resources) return query
  const conditionCost = getSqlDialect(context.db).costs.ofTest.set
  return { ...query, conditions: async () => [isOneOf(context.db, 'resource', resources)], conditionCost }
}

/** Whether a caller may read what the audit tells of records of a resource. */
export function mayReadAudited(caller: Caller, resource: string): boolean {
  return caller.kind !== 'identity' || mayReadRecord(caller.rights, { resource, states: [] })
}

/** One record by its number. */
export function findAuditRecord({ db }: Pick<Context, 'db'>, n: number): Promise<ChainedRecord | undefined> {
  return db.selectFrom('audit_records').selectAll().where('n', '=', n).executeTakeFirst()
}

// Hashing a record takes a few microseconds; this many are checked in one turn of the event loop.
const VERIFY_BATCH = 200
const VERIFY_TIMEOUT_MS = 15 * 60_000

/**
 * Verifies that the audit is one unbroken chain, on one snapshot of the database.
 * @param expectedHash a hash that was stored earlier, which must still be part of the chain
 */
export async function verifyAudit(store: Store, { db, caller }: Reading, expectedHash?: string): Promise<ChainReport> {
  const verifier = new ChainVerifier(store.auditSealer, expectedHash)
  const rows = store.stream(db.selectFrom('audit_records').selectAll().orderBy('n'), {
    reader: toReader(caller),
    timeoutMs: VERIFY_TIMEOUT_MS,
  })
  let count = 0
  for await (const row of rows) {
    verifier.add(row)
    if (++count % VERIFY_BATCH === 0) await setImmediate()
  }
  return verifier.report()
}

// The number of records that one transaction prunes. It is small, because other writers wait for the transaction.
const PRUNE_BATCH = 500

/**
 * Prunes the records that are older than `maxAgeMs`. Age is measured by the elapsed time that each record stores, so neither a
 * clock that was set nor a record with a wrong time prunes new records or keeps old ones. Each pruning adds a record, by which
 * the chain can still be verified. Returns how many records were pruned.
 */
export async function pruneAudit(store: Store, context: Context, maxAgeMs: number): Promise<number> {
  let count = 0
  for (;;) {
    const batchCount = await context.write((tx) => pruneOldest(store, tx, maxAgeMs))
    count += batchCount
    if (batchCount < PRUNE_BATCH) return count
  }
}

async function pruneOldest(store: Store, { db, clock, record }: WriteContext, maxAgeMs: number): Promise<number> {
  const limit = store.auditElapsed() - maxAgeMs
  const ages = await db
    .selectFrom('audit_records')
    .select(['n', 'elapsed'])
    .orderBy('n')
    .limit(PRUNE_BATCH + 1)
    .execute()
  // The newest record always stays, because numbers restart in an empty table.
  const newestOld = ages.slice(0, -1).findLast(({ elapsed }) => elapsed < limit)
  if (!newestOld) return 0
  const candidates = await db
    .selectFrom('audit_records')
    .selectAll()
    .where('n', '<=', newestOld.n)
    .orderBy('n')
    .execute()
  // The age of a changed record is not reliable, so it is pruned together with a later record that is intact.
  const end = candidates.findLastIndex((record) => record.elapsed < limit && store.auditSealer.isIntact(record))
  const old = candidates.slice(0, end + 1)
  const [first, last] = [old[0], old.at(-1)]
  if (!first || !last) return 0
  const verifier = new ChainVerifier(store.auditSealer)
  for (const record of old) verifier.add(record)
  await sql`delete from audit_records where n <= ${last.n}`.execute(db)
  const { findings } = verifier
  const anchor: Anchor = { through: last.n, hash: last.hash, since: first.previousHash }
  const after = findings.length > 0 ? { ...anchor, findings } : { ...anchor }
  record({ ...PRUNE, audit: 'values', isAuditOnly: true, id: String(last.n), at: clock.now(), after })
  return old.length
}
