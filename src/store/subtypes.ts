// Resources whose records are records of another resource too: one table, told apart by a mark.
import { type Expression, type Kysely, type SqlBool, sql } from 'kysely'
import type { AnyResource } from '../resources/define.ts'
import { getResource, resources } from '../resources/index.ts'
import type { Database } from './database.ts'
import { untyped } from './untyped.ts'

/** What holds of the rows of a resource, and of no others in its table. */
export function subtypeConditions({ table, subtypeOf: kindOf }: AnyResource): Expression<SqlBool>[] {
  return kindOf ? [sql<SqlBool>`${sql.ref(`${table}.${kindOf.discriminator}`)} = 1`] : []
}

/** The rows of a resource, to select from. */
export function selectRows(db: Kysely<Database>, resource: AnyResource) {
  const rows = untyped(db).selectFrom(resource.table)
  return subtypeConditions(resource).reduce((marked, condition) => marked.where(condition), rows)
}

const kinds = new Map<string, readonly AnyResource[]>()

/** The narrowest resource that a record of `resource` belongs to: its rules hold, and its name stands in events and audit. */
export function resolveSubtype(resource: AnyResource, record: Readonly<Record<string, unknown>>): AnyResource {
  let narrower = kinds.get(resource.plural)
  if (!narrower) {
    narrower = (resources as readonly AnyResource[]).filter((other) => other.subtypeOf?.resource === resource.plural)
    kinds.set(resource.plural, narrower)
  }
  return narrower.find((kind) => kind.subtypeOf && Boolean(record[kind.subtypeOf.discriminator])) ?? resource
}

/** A resource, and the one that its records belong to as well. */
export function withParent(plural: string): readonly string[] {
  const { subtypeOf: kindOf } = getResource(plural)
  return kindOf ? [plural, kindOf.resource] : [plural]
}
