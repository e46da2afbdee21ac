// Translates the references inside values: ids into names for the file, names into ids for the store.
import type { AnyField } from '../../definitions/schema/fields.ts'
import { toFileMembers } from './file-resources.ts'

/**
 * @param target the resource of the record, by its plural name
 * @param place the place of the reference inside the value of its member: `.2`
 */
export type TranslateReference = (target: string, reference: string, place?: string) => string

/**
 * Returns the value with each reference translated. What is not of the kind of the field is returned as it is, because it is
 * validated later.
 */
export function translateReferences(
  field: AnyField,
  value: unknown,
  translate: TranslateReference,
  place = '',
): unknown {
  const { members, keyTarget, target, reference, roles } = field.kind
  if (value === null || value === undefined || value === '') return value
  if (members) return isObject(value) ? translateMembers(field, value, translate, place) : value
  if (keyTarget !== undefined) {
    if (!isObject(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([key, entry]) => [translate(keyTarget, key, `${place}.${key}`), entry]),
    )
  }
  if (target === undefined || reference?.choices) return value
  const toReference = (entry: unknown, entryPlace: string) => {
    if (typeof entry !== 'string') return entry
    if (!roles) return translate(target, entry, entryPlace)
    return entry.startsWith('@') ? `@${translate(target, entry.slice(1), entryPlace)}` : entry
  }
  return Array.isArray(value)
    ? value.map((entry, at) => toReference(entry, `${place}.${at}`))
    : toReference(value, place)
}

function translateMembers(
  { kind }: AnyField,
  value: Readonly<Record<string, unknown>>,
  translate: TranslateReference,
  place: string,
): Record<string, unknown> {
  const translated: Record<string, unknown> = { ...value }
  for (const { name, fieldName, field } of toFileMembers(kind.members ?? {})) {
    if (Object.hasOwn(value, fieldName))
      translated[fieldName] = translateReferences(field, value[fieldName], translate, `${place}.${name}`)
  }
  return translated
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
