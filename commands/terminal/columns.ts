// Chooses the columns of a table: those of the resource, or those that the user names.

import { findNearest } from '../../src/foundation/nearest.ts'
import { makeUsageError } from '../foundation/exit-codes.ts'
import type { OutputRecord } from './cells.ts'

/** The columns of a table, the name first. The id comes last, if the table is wide or the records have no names. */
export function orderColumns(columns: readonly string[], isWide: boolean): string[] {
  const hasName = columns.includes('name')
  const others = columns.filter((column) => column !== 'id' && column !== 'name')
  const hasId = columns.includes('id') && (isWide || !hasName)
  return [...(hasName ? ['name'] : []), ...others, ...(hasId ? ['id'] : [])]
}

/**
 * The members that the user names, as they are spelled in the API: `role-attributes` and `ROLEATTRIBUTES` are `roleAttributes`.
 * @throws CommandError with exit code 2 if no record has such a member
 */
export function findColumns(
  names: readonly string[],
  columns: readonly string[],
  records: readonly OutputRecord[],
): string[] {
  const members = [...new Set([...columns, ...records.flatMap((record) => Object.keys(record))])]
  return names
    .flatMap((list) => list.split(','))
    .map((name) => {
      const plainName = toColumnName(name)
      const member = members.find((candidate) => toColumnName(candidate) === plainName)
      // Without a record it is unknown which members there are.
      if (member !== undefined || records.length === 0) return member ?? name.trim()
      const near = findNearest(name, members)
      throw makeUsageError(`--columns: there is no column "${name}"`, {
        field: 'columns',
        hint: (near.length > 0 ? near : members.filter((candidate) => candidate !== '_links')).join(', '),
      })
    })
}

function toColumnName(name: string): string {
  return name.trim().replace(/[-_ ]/g, '').toLowerCase()
}
