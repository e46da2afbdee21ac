// Between records as the code sees them and rows as tables hold them.
import type { AnyResource, AnyRow } from '../resources/define.ts'
import type { AnyField } from '../schema/fields.ts'
import type { UntypedRow } from './untyped.ts'

type AnyEntity = Readonly<Record<string, unknown>>

const entries = new WeakMap<AnyResource, readonly (readonly [name: string, field: AnyField])[]>()

function fieldsOf(resource: AnyResource): readonly (readonly [name: string, field: AnyField])[] {
  let found = entries.get(resource)
  if (!found) {
    found = Object.entries(resource.fields)
    entries.set(resource, found)
  }
  return found
}

function encode(field: AnyField, value: unknown): string | number | null {
  return value === null || value === undefined ? null : field.kind.encode(value)
}

/** The columns of a record, without `n`. */
export function toRow(resource: AnyResource, entity: AnyEntity): UntypedRow {
  const row: UntypedRow = {}
  for (const [name, field] of fieldsOf(resource)) row[name] = encode(field, entity[name])
  return row
}

/**
 * The columns whose values are others than before, and the time, which may be the same. Unchanged values are the very same
 * object and cost nothing.
 */
export function toChangedColumns(resource: AnyResource, previous: AnyEntity, next: AnyEntity): UntypedRow {
  const row: UntypedRow = { updatedAt: next.updatedAt as number }
  for (const [name, field] of fieldsOf(resource)) {
    if (next[name] !== previous[name]) row[name] = encode(field, next[name])
  }
  return row
}

/** A record from its row. */
export function entityFromRow(resource: AnyResource, row: AnyRow): Record<string, unknown> {
  const entity: Record<string, unknown> = {}
  for (const [name, field] of fieldsOf(resource)) {
    const stored = row[name]
    entity[name] = stored === null || stored === undefined ? null : field.kind.decode(stored)
  }
  return entity
}

/** The table that holds the members of a set field. */
export function toSetTableName(resource: AnyResource, field: string): string {
  return `${resource.table}_${field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`
}

/** The set fields of a resource that have tables of their own. */
export function listIndexedSets(resource: AnyResource): string[] {
  return Object.entries(resource.fields)
    .filter(([, field]) => field.kind.name === 'set' && field.options.filter)
    .map(([name]) => name)
}
