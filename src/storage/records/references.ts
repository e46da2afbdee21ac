// How one record shows another: {_links, entity, id, name}.
import type { Kysely } from 'kysely'
import { getCompiledResource } from '../../definitions/model/index.ts'
import { listLinkColumns, toLinkedPlural } from '../../definitions/model/links.ts'
import type { Reference } from '../../definitions/model/record-plan.ts'
import type { AnyResource, AnyRow, ComputedInput } from '../../definitions/resources/define.ts'
import { resources } from '../../definitions/resources/index.ts'
import type { Database } from '../database.ts'
import { prepareQueryAmong } from '../prepared-queries.ts'
import { untyped } from '../untyped.ts'

/** By resource: the statement that finds rows by their ids, with the columns that references show. */
const queries = new Map(
  (resources as readonly AnyResource[]).map((resource) => [resource.plural, { resource, find: prepareFind(resource) }]),
)

function prepareFind(resource: AnyResource) {
  const columns = new Set([...listLinkColumns(resource), ...('name' in resource.fields ? ['name'] : [])])
  return prepareQueryAmong<string, AnyRow>(
    (db, isAmong) =>
      untyped(db)
        .selectFrom(resource.table)
        .select([...columns])
        .where(isAmong('id')) as never,
  )
}

/** References to the records of `plural` with these ids; ids without a record are absent in the result. */
export async function findReferences(
  db: Kysely<Database>,
  plural: string,
  ids: Iterable<string>,
): Promise<ReadonlyMap<string, Reference>> {
  const query = queries.get(plural)
  const uniqueIds = [...new Set(ids)]
  if (!query || uniqueIds.length === 0) return new Map()
  const rows = await query.find(db, uniqueIds)
  return new Map(rows.map((row) => [row.id, renderReference(query.resource, row)]))
}

/** The reference to a record, from the columns that references show: those of its links, and its name. */
export function renderReference(resource: AnyResource, row: ComputedInput): Reference {
  const { links } = getCompiledResource(resource.plural).recordPlan
  const name = (row.name as string | undefined) ?? ''
  return { name, text: `{"_links":${links(row as AnyRow)}${renderReferenceMembers(resource, row.id, name)}` }
}

/** The members of a reference after its links. */
export function renderReferenceMembers(resource: AnyResource, id: string, name: string): string {
  return `,"entity":"${toLinkedPlural(resource)}","id":"${id}","name":${JSON.stringify(name)}}`
}
