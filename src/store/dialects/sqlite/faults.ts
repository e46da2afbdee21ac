// What SQLite's errors mean to the rest of the controller.
import { errors } from '../../../errors.ts'
import { NotUnique } from '../../store.ts'

function codeOf(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : ''
}

export function isBusy(error: unknown): boolean {
  return codeOf(error).startsWith('SQLITE_BUSY')
}

/** The same failure in terms that callers know: a unique index by its columns, a full or broken disk as 503. */
export function translate(error: unknown): unknown {
  const code = codeOf(error)
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY') return notUnique(error as Error)
  if (code === 'SQLITE_FULL' || code.startsWith('SQLITE_IOERR') || code === 'SQLITE_READONLY' || isBusy(error)) {
    return errors.STORAGE_UNAVAILABLE(undefined, { cause: error, retryAfterSeconds: 5 })
  }
  return error
}

// The message reads "UNIQUE constraint failed: table.column, table.column".
function notUnique(error: Error): NotUnique {
  const named = (error.message.split(': ')[1] ?? '').split(', ').map((column) => column.split('.'))
  return new NotUnique(
    named[0]?.[0] ?? '',
    named.map(([, column]) => column ?? ''),
    error,
  )
}
