// Converts between records, as the code sees them, and rows of tables.
import { getCompiledResource } from '../../definitions/model/index.ts'
import type { AnyResource, AnyRow } from '../../definitions/resources/define.ts'
import type { AnyField } from '../../definitions/schema/fields.ts'
import type { UntypedRow } from '../untyped.ts'

type AnyEntity = Readonly<Record<string, unknown>>

function encode(field: AnyField, value: unknown): string | number | null {
  return value === null || value === undefined ? null : field.kind.encode(value)
}

/** The columns of a record, without `n`. */
export function toRow({ plural }: AnyResource, entity: AnyEntity): UntypedRow {
  const row: UntypedRow = {}
  for (const { name, field } of getCompiledResource(plural).fields) row[name] = encode(field, entity[name])
  return row
}

/**
 * The columns whose values have changed, and the time, which may be the same. Unchanged values are the same object, which
 * costs nothing to compare.
 */
export function toChangedColumns({ plural }: AnyResource, previous: AnyEntity, next: AnyEntity): UntypedRow {
  const row: UntypedRow = { updatedAt: next.updatedAt as number }
  for (const { name, field } of getCompiledResource(plural).fields) {
    if (next[name] !== previous[name]) row[name] = encode(field, next[name])
  }
  return row
}

/** A record from its row. */
export function entityFromRow({ plural }: AnyResource, row: AnyRow): Record<string, unknown> {
  const { fields, emptyEntity } = getCompiledResource(plural)
  // A copy, so that all records of a resource have one shape: members that are added one by one take several times as long.
  const entity: Record<string, unknown> = { ...emptyEntity }
  for (const { name, field } of fields) {
    const value = row[name]
    entity[name] = value === null || value === undefined ? null : field.kind.decode(value)
  }
  return entity
}
