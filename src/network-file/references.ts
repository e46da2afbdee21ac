// Translates the references inside values: ids into names for the file, names into ids for the store.
import type { AnyField } from '../schema/fields.ts'
import { toFileMembers } from './file-resources.ts'

/** @param target the resource of the record, by its plural name */
export type TranslateReference = (target: string, reference: string) => string

/**
 * Returns the value with each reference translated. What is not of the kind of the field is returned as it is, because it is
 * validated later.
 */
export function translateReferences(field: AnyField, value: unknown, translate: TranslateReference): unknown {
  const { members, keyTarget, target, reference, roles } = field.kind
  if (value === null || value === undefined || value === '') return value
  if (members) return isObject(value) ? translateMembers(field, value, translate) : value
  if (keyTarget !== undefined) {
    if (!isObject(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, entry]) => [translate(keyTarget, key), entry]))
  }
  if (target === undefined || reference?.choices) return value
  const toReference = (entry: unknown) => {
    if (typeof entry !== 'string') return entry
    if (!roles) return translate(target, entry)
    return entry.startsWith('@') ? `@${translate(target, entry.slice(1))}` : entry
  }
  return Array.isArray(value) ? value.map(toReference) : toReference(value)
}

function translateMembers(
  { kind }: AnyField,
  value: Readonly<Record<string, unknown>>,
  translate: TranslateReference,
): Record<string, unknown> {
  const translated: Record<string, unknown> = { ...value }
  for (const { fieldName, field } of toFileMembers(kind.members ?? {})) {
    if (Object.hasOwn(value, fieldName)) translated[fieldName] = translateReferences(field, value[fieldName], translate)
  }
  return translated
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
