// Finds the records that exist under the names of a network file.

import type { AnyRow } from '../../definitions/resources/define.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import { selectRows } from '../../storage/entities/subtypes.ts'
import type { ReadContext } from '../../storage/transactions/context.ts'
import { isOneOf, untyped } from '../../storage/untyped.ts'
import type { FileResource } from './file-resources.ts'
import type { PlannedValues } from './plan-step.ts'

type Body = Readonly<Record<string, unknown>>

/** For each body, in which references are ids, the record that exists. */
export async function findExisting(
  { db }: Pick<ReadContext, 'db'>,
  { resource, identifiedBy }: FileResource,
  bodies: readonly Body[],
): Promise<readonly (PlannedValues | undefined)[]> {
  const [first] = identifiedBy
  if (!first) return []
  const values = bodies.map((body) => body[first.name]).filter((value) => typeof value === 'string')
  // Names are unique in the table, also among the records of other resources that it holds.
  const all = 'name' in resource.fields ? untyped(db).selectFrom(resource.table) : selectRows(db, resource)
  const rows = (await all
    .selectAll()
    .where((eb) => {
      const isNamed = isOneOf(db, first.fieldName, values) as never
      return first.field.options.nullable ? eb.or([isNamed, eb(first.fieldName, 'is', null)]) : isNamed
    })
    .orderBy('n', 'desc')
    .execute()) as unknown as AnyRow[]
  const byKey = new Map<string, PlannedValues>()
  // The oldest of equal ones is the last.
  for (const row of rows) {
    const entity = entityFromRow(resource, row) as PlannedValues
    if (entity.isSystem === true && !('name' in resource.fields)) continue
    byKey.set(JSON.stringify(identifiedBy.map(({ fieldName }) => entity[fieldName])), entity)
  }
  return bodies.map((body) =>
    byKey.get(
      JSON.stringify(identifiedBy.map(({ name, field }) => body[name] ?? (field.options.nullable ? null : ''))),
    ),
  )
}
