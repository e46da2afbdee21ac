// Repairs defects of the data, each in a transaction of its own, with its audit record.
import { sql } from 'kysely'
import { listSetTables } from '../../definitions/model/columns.ts'
import { getResource } from '../../definitions/resources/index.ts'
import type { Log } from '../../foundation/log.ts'
import { type EntityStore, find } from '../../storage/entities/entities.ts'
import { getRecordTable } from '../../storage/entities/record-tables.ts'
import type { Store } from '../../storage/store.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import { untyped } from '../../storage/untyped.ts'
import { renewInventoryEntry } from '../certificates/inventory.ts'
import type { Defect, Repair } from './defects.ts'

/** The repair of one kind. */
type RepairOf<K extends Repair['kind']> = Extract<Repair, { kind: K }>

export class Repairs {
  readonly #entities: EntityStore
  readonly #store: Store
  readonly #log: Log

  constructor(entities: EntityStore, store: Store, log: Log) {
    this.#entities = entities
    this.#store = store
    this.#log = log
  }

  /** Repairs a defect if it can be repaired. Returns whether it was. */
  async attempt(context: Context, { description, repair }: Defect): Promise<boolean> {
    if (!repair) return false
    try {
      if (repair.kind === 'rebuild-projection') await this.#rebuildProjection(context, repair.projection)
      else await context.write((tx) => this.#repair(tx, repair))
      this.#log.warn({ defect: description }, 'repaired a defect of the data')
      return true
    } catch (error) {
      this.#log.error({ err: error, defect: description }, 'a defect of the data could not be repaired')
      return false
    }
  }

  /** After a commit of its own, because clients may have been shown what memory held, with the time of the last one. */
  async #rebuildProjection(context: Context, name: string): Promise<void> {
    await context.write(async () => {})
    await this.#store.projections.rebuild(name)
  }

  async #repair(tx: WriteContext, repair: Exclude<Repair, { kind: 'rebuild-projection' }>): Promise<void> {
    switch (repair.kind) {
      case 'rebuild-index':
        await sql`reindex ${sql.ref(repair.index)}`.execute(tx.db)
        return
      case 'rewrite-members':
        return rewriteMembers(tx, repair)
      case 'remove-members':
        return this.#removeMembers(tx, repair)
      case 'clear-reference':
        return this.#change(tx, repair, () => null)
      case 'delete-record':
        return this.#entities.removeInTransaction(tx, getResource(repair.resource), repair.id)
      case 'renew-inventory':
        return renewInventoryEntry(this.#entities, tx, getResource(repair.resource), repair.id)
    }
  }

  #removeMembers(tx: WriteContext, repair: RepairOf<'remove-members'>): Promise<void> {
    return this.#change(tx, repair, (value) =>
      (value as readonly string[]).filter((member) => !repair.members.includes(member)),
    )
  }

  /** Changes one field of a record as a caller of the API would. */
  async #change(
    tx: WriteContext,
    { resource: plural, id, field }: RepairOf<'remove-members' | 'clear-reference'>,
    change: (value: unknown) => unknown,
  ): Promise<void> {
    const resource = getResource(plural)
    const previous = (await find(tx, resource, id)) as (Record<string, unknown> & { id: string }) | undefined
    if (!previous) return
    await this.#entities.update(tx, resource, previous as never, { [field]: change(previous[field]) })
  }
}

/** Replaces the rows of a set by the members of the record; no record changes by that. */
async function rewriteMembers(
  tx: WriteContext,
  { resource: plural, field, n }: RepairOf<'rewrite-members'>,
): Promise<void> {
  const resource = getResource(plural)
  const set = listSetTables(resource).find((each) => each.field === field)
  if (!set) return
  const db = untyped(tx.db)
  await db.deleteFrom(set.table).where('n', '=', n).execute()
  const row = await db.selectFrom(resource.table).select(field).where('n', '=', n).executeTakeFirst()
  if (row) await getRecordTable(resource).writeMembers(tx.db, set, n, [], JSON.parse(row[field] as string) as string[])
}
