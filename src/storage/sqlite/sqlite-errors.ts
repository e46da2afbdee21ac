// Converts SQLite's errors to those of the controller.
import { errors } from '../../foundation/errors.ts'
import { UniqueViolationError } from '../store.ts'
import { DatabaseFileLostError } from './database-files.ts'

function getCode(error: unknown): string {
  const code = error instanceof Error ? (error as Error & { code?: unknown }).code : undefined
  return typeof code === 'string' ? code : ''
}

export function isBusy(error: unknown): boolean {
  return getCode(error).startsWith('SQLITE_BUSY')
}

/** Whether a row contradicts the others. */
export function isConstraintViolation(error: unknown): boolean {
  return getCode(error).startsWith('SQLITE_CONSTRAINT')
}

/** Whether the content of a file is damaged. */
export function isDamaged(error: unknown): boolean {
  return /^SQLITE_(CORRUPT|NOTADB)/.test(getCode(error))
}

// Errors of the disk, the file or another process, not of the statement: SQLite's primary result codes.
const STORAGE_FAULTS: ReadonlySet<string> = new Set([
  'SQLITE_BUSY',
  'SQLITE_CANTOPEN',
  'SQLITE_CORRUPT',
  'SQLITE_FULL',
  'SQLITE_IOERR',
  'SQLITE_LOCKED',
  'SQLITE_NOMEM',
  'SQLITE_NOTADB',
  'SQLITE_PERM',
  'SQLITE_PROTOCOL',
  'SQLITE_READONLY',
])

/** Whether an error says that the storage fails: extended codes such as `SQLITE_IOERR_WRITE` included. */
function isStorageFault(error: unknown): boolean {
  if (error instanceof DatabaseFileLostError) return true
  return STORAGE_FAULTS.has(getCode(error).split('_').slice(0, 2).join('_'))
}

/** The same failure in terms that callers know: a unique index by its columns, a disk or file that fails as 503. */
export function translateSqliteError(error: unknown): unknown {
  const code = getCode(error)
  if (code === 'SQLITE_CONSTRAINT_UNIQUE' || code === 'SQLITE_CONSTRAINT_PRIMARYKEY')
    return toUniqueViolation(error as Error)
  if (isStorageFault(error)) return errors.STORAGE_UNAVAILABLE(undefined, { cause: error, retryAfterSeconds: 5 })
  return error
}

// The message reads "UNIQUE constraint failed: table.column, table.column".
function toUniqueViolation(error: Error): UniqueViolationError {
  const columns = (error.message.split(': ')[1] ?? '').split(', ').map((column) => column.split('.'))
  return new UniqueViolationError(
    columns[0]?.[0] ?? '',
    columns.map(([, column]) => column ?? ''),
    error,
  )
}
