// The errors for a caller whose API session, second factor or right is missing.
import { type ControllerError, errors } from '../../foundation/errors.ts'

export function apiSessionUnknownError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SESSION_UNKNOWN', message: 'the session is unknown, or has ended' })
}

export function secondFactorRequiredError(): ControllerError {
  return errors.UNAUTHORIZED({ code: 'SECOND_FACTOR_REQUIRED', message: 'the session owes a second factor' })
}

export function permissionDeniedError(message: string): ControllerError {
  return errors.UNAUTHORIZED({ code: 'PERMISSION_DENIED', message })
}
