// The error of every rejected filter: 400 INVALID_FILTER with the position.
import { type ControllerError, errors } from '../../foundation/errors.ts'
import type { Position } from './tree.ts'

/** Returns an `INVALID_FILTER` whose cause says what is wrong, and at which line and column. */
export function filterError(what: string, at: Position): ControllerError {
  const message = `${what} at line ${at.line}, column ${at.column}`
  return errors.INVALID_FILTER({ code: 'INVALID_FILTER', message, data: at })
}
