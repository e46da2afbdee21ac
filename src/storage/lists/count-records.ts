// The number of records of a resource, for summaries and metrics.
import { sql } from 'kysely'
import type { AnyResource } from '../../definitions/resources/define.ts'
import { resources } from '../../definitions/resources/index.ts'
import { selectRows } from '../entities/subtypes.ts'
import type { Store } from '../store.ts'
import type { Context } from '../transactions/context.ts'

/** The number of records of a resource; cached until a commit changes it. */
export async function countRecords(store: Store, { db }: Context, plural: string): Promise<number> {
  const resource = (resources as readonly AnyResource[]).find((each) => each.plural === plural)
  if (!resource) return 0
  const query = selectRows(db, resource).select(sql<number>`count(*)`.as('n'))
  return store.count(query, [resource.table])
}
