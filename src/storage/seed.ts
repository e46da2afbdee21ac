// The built-in records of a new database, as the resource definitions list them.
import type { Kysely } from 'kysely'
import { compiledResources } from '../definitions/model/index.ts'
import { applyFallbacks } from '../definitions/schema/bodies.ts'
import type { Instant } from '../foundation/clock.ts'
import { toRow } from './entities/rows.ts'
import type { UntypedDatabase } from './untyped.ts'

export async function seed(handle: Kysely<unknown>, now: Instant): Promise<void> {
  const db = handle as unknown as Kysely<UntypedDatabase>
  for (const { definition: resource, sets } of compiledResources) {
    for (const record of resource.builtIn) {
      const entity = { ...applyFallbacks(resource.fields, record), createdAt: now, updatedAt: now }
      const { n } = await db
        .insertInto(resource.table)
        .values(toRow(resource, entity))
        .returning('n')
        .executeTakeFirstOrThrow()
      for (const { field, table } of sets) {
        const rows = ((entity as Record<string, unknown>)[field] as string[]).map((value) => ({
          value,
          n: n as number,
        }))
        if (rows.length > 0) await db.insertInto(table).values(rows).execute()
      }
    }
  }
}
