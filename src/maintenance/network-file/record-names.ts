// The names of records that others refer to, read for some records at a time.

import { getResource } from '../../definitions/resources/index.ts'
import { SetMap } from '../../policy/set-map.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf, untyped } from '../../storage/untyped.ts'
import { flattenVariant } from './file-records.ts'
import { type FileResource, listMembers } from './file-resources.ts'
import { type TranslateReference, translateReferences } from './references.ts'

type Values = Readonly<Record<string, unknown>>

/**
 * Reads the names of all records that some records refer to. Returns what translates an id into a name; an id without a record
 * stays as it is.
 */
export async function loadNames(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
  entities: readonly Values[],
): Promise<TranslateReference> {
  const ids = new SetMap()
  const collect: TranslateReference = (target, id) => {
    ids.add(target, id)
    return id
  }
  for (const entity of entities) {
    const values = flattenVariant(fileResource, entity)
    for (const { fieldName, field } of listMembers(fileResource, entity.typeId))
      translateReferences(field, values[fieldName], collect)
  }
  const names = new Map<string, string>()
  for (const [target, ofTarget] of ids) {
    const rows = await untyped(context.db)
      .selectFrom(getResource(target).table)
      .select(['id', 'name'])
      .where(isOneOf(context.db, 'id', [...ofTarget]))
      .execute()
    for (const { id, name } of rows) names.set(`${target} ${id}`, String(name))
  }
  return (target, id) => names.get(`${target} ${id}`) ?? id
}
