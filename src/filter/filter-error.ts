// What a filter can be refused for: always 400 INVALID_FILTER, always with the place.
import { type ControllerError, errors } from '../errors.ts'
import type { Position } from './tree.ts'

/** An `INVALID_FILTER` whose cause says what is wrong and where. */
export function filterError(what: string, at: Position): ControllerError {
  const message = `${what} at line ${at.line}, column ${at.column}`
  return errors.INVALID_FILTER({ code: 'INVALID_FILTER', message, data: at })
}
