// The built-in records of a new database, as the resource definitions list them.
import type { Kysely } from 'kysely'
import type { Instant } from '../clock.ts'
import type { AnyResource } from '../resources/define.ts'
import { resources } from '../resources/index.ts'
import { withFallbacks } from '../schema/bodies.ts'
import { indexedSets, rowValues, setTableName } from './rows.ts'
import type { UntypedDatabase } from './untyped.ts'

export async function seed(handle: Kysely<unknown>, now: Instant): Promise<void> {
  const db = handle as unknown as Kysely<UntypedDatabase>
  for (const resource of resources as readonly AnyResource[]) {
    for (const record of resource.builtIn) {
      const entity = { ...withFallbacks(resource.fields, record), createdAt: now, updatedAt: now }
      const { n } = await db
        .insertInto(resource.table)
        .values(rowValues(resource, entity))
        .returning('n')
        .executeTakeFirstOrThrow()
      for (const field of indexedSets(resource)) {
        const rows = ((entity as Record<string, unknown>)[field] as string[]).map((value) => ({
          value,
          n: n as number,
        }))
        if (rows.length > 0) await db.insertInto(setTableName(resource, field)).values(rows).execute()
      }
    }
  }
}
