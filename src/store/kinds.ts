// Resources whose records are records of another resource too: one table, told apart by a mark.
import { type Expression, type Kysely, type SqlBool, sql } from 'kysely'
import type { AnyResource } from '../resources/define.ts'
import { resourceOf, resources } from '../resources/index.ts'
import type { Database } from './database.ts'
import { untyped } from './untyped.ts'

/** What holds of the rows of a resource, and of no others in its table. */
export function isOfKind({ table, kindOf }: AnyResource): Expression<SqlBool>[] {
  return kindOf ? [sql<SqlBool>`${sql.ref(`${table}.${kindOf.mark}`)} = 1`] : []
}

/** The rows of a resource, to select from. */
export function rowsOf(db: Kysely<Database>, resource: AnyResource) {
  const rows = untyped(db).selectFrom(resource.table)
  return isOfKind(resource).reduce((marked, condition) => marked.where(condition), rows)
}

const kinds = new Map<string, readonly AnyResource[]>()

/** The narrowest resource that a record of `resource` belongs to: its rules hold, and its name stands in events and audit. */
export function kindOf(resource: AnyResource, record: Readonly<Record<string, unknown>>): AnyResource {
  let narrower = kinds.get(resource.plural)
  if (!narrower) {
    narrower = (resources as readonly AnyResource[]).filter((other) => other.kindOf?.resource === resource.plural)
    kinds.set(resource.plural, narrower)
  }
  return narrower.find((kind) => kind.kindOf && Boolean(record[kind.kindOf.mark])) ?? resource
}

/** A resource, and the one that its records belong to as well. */
export function lineage(plural: string): readonly string[] {
  const { kindOf } = resourceOf(plural)
  return kindOf ? [plural, kindOf.resource] : [plural]
}
