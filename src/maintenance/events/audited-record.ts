// The record that an audit record is about, as far as it decides who may read it.
import type { Kysely } from 'kysely'
import type { ScopedRecord } from '../../definitions/permissions/rights.ts'
import { resources } from '../../definitions/resources/index.ts'
import type { ChainedRecord } from '../../storage/audit/audit-chain.ts'
import type { Database } from '../../storage/database.ts'
import { find } from '../../storage/entities/entities.ts'

type Audited = Pick<ChainedRecord, 'resource' | 'entityId' | 'operation' | 'before' | 'after'>

/**
 * The states of the record of which something is known. The audit of a change holds only the members that changed, so the others are
 * taken from the record as it is now; nothing is known of one that is gone since.
 */
export async function findRecordStates(
  db: Kysely<Database>,
  { resource: plural, entityId, operation, before, after }: Audited,
): Promise<readonly ScopedRecord[]> {
  const audited = [before, after].flatMap((text) => (text === null ? [] : [JSON.parse(text) as ScopedRecord]))
  if (operation === 'create' || operation === 'delete') return audited
  const resource = resources.find((each) => each.plural === plural)
  const current = resource && ((await find({ db }, resource, entityId)) as ScopedRecord | undefined)
  return current ? [current, ...audited.map((changed) => ({ ...pickScoped(current), ...pickScoped(changed) }))] : []
}

function pickScoped({ roleAttributes, tags }: ScopedRecord): ScopedRecord {
  return { ...(roleAttributes ? { roleAttributes } : {}), ...(tags ? { tags } : {}) }
}
