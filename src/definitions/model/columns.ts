// The tables and columns that follow from the fields of a resource.
import type { AnyResource } from '../resources/define.ts'
import type { AnyField } from '../schema/fields.ts'

/** A field with its name. */
export interface NamedField {
  readonly name: string
  readonly field: AnyField
}

/** A set field with a table of its own. */
export interface SetTableInfo {
  readonly field: string
  readonly table: string
}

/**
 * A field, or a member at any depth of a structured field, through which records of a resource name records of another one,
 * whose plural name is `target`.
 */
export interface ReferenceField extends NamedField {
  /** The column that holds it. */
  readonly column: string
  /** Its path inside the value of the column; empty unless the column is structured. */
  readonly path: readonly string[]
  readonly target: string
}

/** A field through which records of the resource `from` mention records of another resource. */
export interface Mention extends ReferenceField {
  readonly from: AnyResource
}

/** The fields of a resource in the order of its definition. */
export function listFields({ fields }: AnyResource): NamedField[] {
  return Object.entries(fields).map(([name, field]) => ({ name, field }))
}

/** The table that holds the members of a set field. */
export function toSetTableName({ table }: Pick<AnyResource, 'table'>, field: string): string {
  return `${table}_${field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
}

/** The set fields of a resource that have tables of their own. */
export function listSetTables(resource: AnyResource): SetTableInfo[] {
  return listFields(resource)
    .filter(({ field }) => field.kind.name === 'set' && field.options.filter)
    .map(({ name }) => ({ field: name, table: toSetTableName(resource, name) }))
}

/** The fields of a resource that name records of other resources, and the members that do. */
export function listReferenceFields({ fields }: Pick<AnyResource, 'fields'>): ReferenceField[] {
  return Object.entries(fields).flatMap(([column, field]) => listReferencesIn(column, [], field))
}

/** The references of one field; the name of a member is its path in a request body. */
function listReferencesIn(column: string, path: readonly string[], field: AnyField): ReferenceField[] {
  const { target, members, reference } = field.kind
  if (target && path.length > 0 && (reference?.onDelete ?? 'restrict') !== 'restrict') {
    throw new Error(
      `${column}.${path.join('.')} is inside of a structured field: only fields can be cleared, or cascade`,
    )
  }
  if (target) return [{ name: [column, ...path].join('.'), column, path, field, target }]
  return Object.entries(members ?? {}).flatMap(([member, inner]) => listReferencesIn(column, [...path, member], inner))
}

/** The value of a reference in a record. */
export function readReference(
  { column, path }: Pick<ReferenceField, 'column' | 'path'>,
  entity: Readonly<Record<string, unknown>>,
): unknown {
  return path.reduce<unknown>((value, member) => (value as Record<string, unknown>)[member], entity[column])
}

/** The references of all `resources`, each with the resource that has it. */
export function listMentions(resources: readonly AnyResource[]): Mention[] {
  return resources.flatMap((from) => listReferenceFields(from).map((reference) => ({ from, ...reference })))
}
