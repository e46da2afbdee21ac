// Changes rows as a commit changed them elsewhere.
import type { RowChange, RowValues } from '../transactions/row-changes.ts'
import type { SqliteDatabase } from './connection.ts'
import { isConstraintViolation } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'
import { quoteName } from './table-columns.ts'

/** The rows of this file are not those that the commit was made on. */
export class RowsDifferError extends Error {
  override readonly name = 'RowsDifferError'
}

/**
 * Applies changes in a transaction of the caller. References are checked at its end, because nothing else tells in which order one
 * statement changed its rows.
 * @throws RowsDifferError if a row that changes is not there, or one that is added is
 */
export function applyRowChanges(
  connection: SqliteDatabase,
  statements: PreparedStatements,
  changes: readonly RowChange[],
): void {
  if (changes.length === 0) return
  connection.pragma('defer_foreign_keys = on')
  for (const change of changes) {
    const { text, parameters } = toStatement(change)
    if (runStatement(statements, change, text, parameters) !== 1)
      throw new RowsDifferError(`${change.table} has no row to ${change.operation}: ${describeKey(change)}`)
  }
}

function runStatement(
  statements: PreparedStatements,
  change: RowChange,
  text: string,
  parameters: readonly unknown[],
): number {
  try {
    return statements.get(text).run(parameters).changes
  } catch (cause) {
    if (!isConstraintViolation(cause)) throw cause
    const message = `${change.table} cannot ${change.operation} a row: ${describeKey(change)}`
    throw new RowsDifferError(message, { cause })
  }
}

/** The primary key, or of a new row its first columns: never other values, which may be secrets. */
function describeKey(change: RowChange): string {
  const { n, id } = change.operation === 'insert' ? change.row : change.key
  return JSON.stringify({ n, id })
}

function toStatement(change: RowChange): { readonly text: string; readonly parameters: readonly unknown[] } {
  const table = quoteName(change.table)
  switch (change.operation) {
    case 'insert': {
      const names = Object.keys(change.row)
      const text = `insert into ${table} (${names.map(quoteName).join()}) values (${names.map(() => '?').join()})`
      return { text, parameters: Object.values(change.row) }
    }
    case 'update': {
      const set = Object.keys(change.row).map((name) => `${quoteName(name)} = ?`)
      const text = `update ${table} set ${set.join()} where ${composeKey(change.key)}`
      return { text, parameters: [...Object.values(change.row), ...Object.values(change.key)] }
    }
    case 'delete':
      return { text: `delete from ${table} where ${composeKey(change.key)}`, parameters: Object.values(change.key) }
  }
}

function composeKey(key: RowValues): string {
  return Object.keys(key)
    .map((name) => `${quoteName(name)} = ?`)
    .join(' and ')
}
