// The records that mention another one by their references, and the effect of its deletion on them.
import type { SqlBool } from 'kysely'
import { type Mention, type ReferenceField, readReference, toSetTableName } from '../../definitions/model/columns.ts'
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource } from '../../definitions/resources/define.ts'
import type { AnyField } from '../../definitions/schema/fields.ts'
import { type SqlText, sqlText } from '../lists/sql-text.ts'
import { getSqlDialect } from '../sql-dialect.ts'
import type { ReadContext } from '../transactions/context.ts'
import { isOneOf, untyped } from '../untyped.ts'
import { selectRows, withParent } from './subtypes.ts'

type Database = Pick<ReadContext, 'db'>

type DeletionRule = 'restrict' | 'cascade' | 'clear'

/** The effect of a record's deletion on a reference to it: it is refused, deletes the mentioning record, or clears the field. */
export function getDeletionRule({ field: { kind } }: Pick<ReferenceField, 'field'>): DeletionRule {
  return kind.roles ? 'clear' : (kind.reference?.onDelete ?? 'restrict')
}

/** The fields that mention records of a resource, and through which their deletion does the same. */
export function listMentionsByRule({ plural }: AnyResource, rule: DeletionRule): readonly Mention[] {
  return withParent(plural)
    .flatMap((each) => getCompiledResource(each).mentions)
    .filter((mention) => getDeletionRule(mention) === rule)
}

/** The ids in the value of a reference. */
export function collectTargetIds(field: AnyField, value: unknown): readonly string[] {
  if (field.kind.name !== 'set') return [value as string]
  const entries = value as readonly string[]
  if (!field.kind.roles) return entries
  return entries.flatMap((role) => (role.startsWith('@') ? [role.slice(1)] : []))
}

/** Whether a record mentions the record `id`. */
export function isMentioning(mention: ReferenceField, entity: Readonly<Record<string, unknown>>, id: string): boolean {
  return collectTargetIds(mention.field, readReference(mention, entity)).includes(id)
}

/** Ids of the records whose field mentions the record `id`. */
export async function findMentioningIds(
  { db }: Database,
  { from, name, column, path, field }: Mention,
  id: string,
  limit?: number,
): Promise<string[]> {
  const all = untyped(db).selectFrom(from.table).select('id').orderBy('id')
  const query = limit === undefined ? all : all.limit(limit)
  if (path.length > 0) {
    const rows = await query.where(mentionsInside(db, sqlText.ref(column), path, field, id)).execute()
    return rows.map((row) => row.id as string)
  }
  const isIndexed = field.kind.name === 'set' && field.options.filter
  const value = field.kind.roles ? `@${id}` : id
  const rows = await (isIndexed
    ? query.where('n', 'in', (eb) => eb.selectFrom(toSetTableName(from, name)).select('n').where('value', '=', value))
    : query.where(name, '=', value)
  ).execute()
  return rows.map((row) => row.id as string)
}

/** Whether a member of a structured column is `id`, or a set that contains it. No index helps: few resources have such members. */
function mentionsInside(
  db: Database['db'],
  column: SqlText,
  path: readonly string[],
  field: AnyField,
  id: string,
): SqlText<SqlBool> {
  const dialect = getSqlDialect(db)
  const member = dialect.member(column, path)
  if (field.kind.name !== 'set') return sqlText<SqlBool>`${member} = ${id}`
  return sqlText<SqlBool>`${id} in (select value from ${dialect.elements(member)})`
}

/** The names of records, or their ids if they have none. */
export async function readNames(
  { db }: Database,
  resource: AnyResource,
  ids: readonly string[],
): Promise<readonly string[]> {
  if (!('name' in resource.fields)) return ids
  const rows = await selectRows(db, resource)
    .select(['id', 'name'])
    .where(isOneOf(db, 'id', ids))
    .orderBy('name')
    .execute()
  return rows.map(({ name }) => String(name))
}
