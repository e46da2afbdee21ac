// Writes records as the network file shows them: members by name, in the order of the definition, references by name.
import { type AnyField, toSortedSet } from '../../definitions/schema/fields.ts'
import { type FileMember, type FileResource, listMembers, toFileMembers } from './file-resources.ts'
import { isObject, type TranslateReference, translateReferences } from './references.ts'

type Values = Readonly<Record<string, unknown>>

/** A record as the file shows it. @param translate returns the name of a record by its id */
export function toFileRecord(
  fileResource: FileResource,
  entity: Values,
  translate: TranslateReference,
): Record<string, unknown> {
  return writeMembers(listMembers(fileResource, entity.typeId), flattenVariant(fileResource, entity), translate)
}

/** The values of a record, with those of its variant besides the others. */
export function flattenVariant({ variants }: FileResource, entity: Values): Values {
  return variants.size > 0 ? { ...entity, ...(entity.details as Values) } : entity
}

function writeMembers(
  members: readonly FileMember[],
  values: Values,
  translate: TranslateReference,
): Record<string, unknown> {
  const written: Record<string, unknown> = {}
  for (const { name, fieldName, field } of members) {
    const value = values[fieldName] ?? null
    if (value === null && !acceptsNull(field)) continue
    written[name] = writeValue(field, value, translate)
  }
  return written
}

function writeValue(field: AnyField, value: unknown, translate: TranslateReference): unknown {
  const { members, name, keyTarget, filterType } = field.kind
  if (members && isObject(value)) return writeMembers(toFileMembers(members), value, translate)
  const translated = translateReferences(field, value, translate)
  if (name === 'set' && Array.isArray(translated)) return toSortedSet(translated as string[])
  // Maps, whose order means nothing.
  if ((keyTarget !== undefined || filterType === 'tags') && isObject(translated)) return sortKeys(translated)
  return translated
}

/** Whether a body can hold null for the field, so that the file can say that it has no value. */
function acceptsNull({ kind, options }: AnyField): boolean {
  return options.acceptsNull === true || kind.acceptsNull === true || options.access === 'create'
}

function sortKeys(value: Values): Record<string, unknown> {
  return Object.fromEntries(toSortedSet(Object.keys(value)).map((key) => [key, value[key]]))
}
