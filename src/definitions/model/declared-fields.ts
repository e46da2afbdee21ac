// Finds the members of values that no field of a resource takes: at any depth of its structured fields, and by its variants.
import type { AnyResource } from '../resources/define.ts'
import type { Fields } from '../schema/fields.ts'

/** Returns the path of the first member that no field takes, such as `secondary.requireTotp`, or undefined. */
export type UndeclaredSearch = (values: Readonly<Record<string, unknown>>) => string | undefined

/** Compiles the search of a resource's records. The members of `details` are known if the record's `typeId` is among the values. */
export function compileUndeclaredSearch({ fields, variants }: AnyResource): UndeclaredSearch {
  const findOwn = searchFields(fields)
  if (!variants) return findOwn
  const byType = new Map(Object.entries(variants).map(([typeId, details]) => [typeId, searchFields(details)]))
  return (values) => findOwn(values) ?? findInside('details', values.details, byType.get(values.typeId as string))
}

function searchFields(fields: Fields): UndeclaredSearch {
  const names = new Set(Object.keys(fields))
  const structured = Object.entries(fields).flatMap(([name, { kind }]) =>
    kind.members ? [{ name, find: searchFields(kind.members) }] : [],
  )
  return (values) => {
    for (const name of Object.keys(values)) if (!names.has(name)) return name
    for (const { name, find } of structured) {
      const path = findInside(name, values[name], find)
      if (path !== undefined) return path
    }
    return undefined
  }
}

function findInside(name: string, value: unknown, find: UndeclaredSearch | undefined): string | undefined {
  if (!find || typeof value !== 'object' || value === null) return undefined
  const path = find(value as Readonly<Record<string, unknown>>)
  return path === undefined ? undefined : `${name}.${path}`
}
