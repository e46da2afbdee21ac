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

/** A field through which records of a resource name records of another one, whose plural name is `target`. */
export interface ReferenceField extends NamedField {
  readonly target: string
}

/** A field through which records of the resource `from` mention records of another resource. */
export interface Mention extends NamedField {
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

/** The fields of a resource that name records of other resources. */
export function listReferenceFields(resource: AnyResource): ReferenceField[] {
  return listFields(resource).flatMap(({ name, field }) =>
    field.kind.target ? [{ name, field, target: field.kind.target }] : [],
  )
}

/** The fields of all `resources` that mention records of `plural`. */
export function listMentions(plural: string, resources: readonly AnyResource[]): Mention[] {
  return resources.flatMap((from) =>
    listReferenceFields(from)
      .filter(({ target }) => target === plural)
      .map(({ name, field }) => ({ from, name, field })),
  )
}
