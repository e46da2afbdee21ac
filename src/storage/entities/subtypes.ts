// Resources whose records are records of another resource, too: one table, with a discriminator.
import type { Kysely, SqlBool } from 'kysely'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import type { Database } from '../database.ts'
import { type SqlText, sqlText } from '../lists/sql-text.ts'
import { untyped } from '../untyped.ts'

/** The conditions that only the rows of a resource meet in its table. */
export function subtypeConditions({ table, subtypeOf }: AnyResource): SqlText<SqlBool>[] {
  return subtypeOf ? [sqlText<SqlBool>`${sqlText.ref(`${table}.${subtypeOf.discriminator}`)} = 1`] : []
}

/** The rows of a resource, to select from. */
export function selectRows(db: Kysely<Database>, resource: AnyResource) {
  const rows = untyped(db).selectFrom(resource.table)
  return subtypeConditions(resource).reduce((marked, condition) => marked.where(condition), rows)
}

/** The narrowest resource that a record of `resource` belongs to: its rules hold, and its name stands in events and audit. */
export function resolveSubtype(resource: AnyResource, record: Readonly<Record<string, unknown>>): AnyResource {
  const { subtypes } = getCompiledResource(resource.plural)
  return subtypes.find(({ subtypeOf }) => subtypeOf && Boolean(record[subtypeOf.discriminator])) ?? resource
}

/** The plural names of a resource, and of the one that its records belong to as well. */
export function withParent(plural: string): readonly string[] {
  return getCompiledResource(plural).withParent
}
