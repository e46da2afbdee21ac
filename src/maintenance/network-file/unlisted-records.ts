// Records of the network that a file does not name: how many there are, and which ones.
import { setImmediate } from 'node:timers/promises'
import type { AnyRow } from '../../definitions/resources/define.ts'
import { entityFromRow } from '../../storage/entities/rows.ts'
import { resolveSubtype, selectRows } from '../../storage/entities/subtypes.ts'
import { getSqlDialect } from '../../storage/sql-dialect.ts'
import type { Store } from '../../storage/store.ts'
import { type Context, type ReadContext, toReader } from '../../storage/transactions/context.ts'
import { isOneOf } from '../../storage/untyped.ts'
import type { FileResource } from './file-resources.ts'
import { InitialValues, selectConfigured } from './initial-values.ts'
import type { PlannedValues } from './plan-step.ts'
import { loadNames } from './record-names.ts'

export interface UnlistedRecord {
  readonly id: string
  /** Its name, or the names that identify it. */
  readonly label: string
  readonly values: PlannedValues
}

const PAGE = 200

/** The records of a resource without those of the file, and without those that the controller made. */
export async function* listUnlisted(
  context: Pick<ReadContext, 'db'>,
  fileResource: FileResource,
  matchedIds: ReadonlySet<string>,
): AsyncGenerator<UnlistedRecord> {
  const { resource } = fileResource
  let last = 0
  for (;;) {
    const rows = (await selectRows(context.db, resource)
      .selectAll()
      .where('n', '>', last)
      .orderBy('n')
      .limit(PAGE)
      .execute()) as AnyRow[]
    const entities = rows
      .filter((row) => !matchedIds.has(row.id) && resolveSubtype(resource, row) === resource)
      .map((row) => entityFromRow(resource, row) as PlannedValues)
    const initialValues = await InitialValues.load(context, fileResource, entities)
    const unlisted = entities.filter((entity) => !initialValues.isMade(entity))
    const toName = await loadNames(context, fileResource, unlisted)
    for (const values of unlisted) {
      const names = fileResource.identifiedBy.map(({ field, fieldName }) => {
        const value = values[fieldName]
        return field.kind.target && typeof value === 'string' ? toName(field.kind.target, value) : value
      })
      yield { id: values.id, label: names.filter((name) => name !== null && name !== '').join(', '), values }
    }
    if (rows.length < PAGE) return
    last = rows.at(-1)?.n as number
    await setImmediate()
  }
}

/** How many records `listUnlisted` yields. Like expensive lists, it is counted in a thread if it takes long. */
export async function countUnlisted(
  store: Pick<Store, 'scan'>,
  { db, caller }: Pick<Context, 'db' | 'caller'>,
  { resource }: FileResource,
  matchedIds: ReadonlySet<string>,
): Promise<number> {
  const query = selectConfigured(db, resource)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where((eb) => eb.not(isOneOf(db, `${resource.table}.id`, [...matchedIds]) as never))
    .where(getSqlDialect(db).guard(1) as never)
  const [row] = await store.scan(query, toReader(caller))
  return Number(row?.count ?? 0)
}
