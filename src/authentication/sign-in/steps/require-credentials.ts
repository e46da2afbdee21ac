// Password: requires username and password.
import { errors } from '../../../foundation/errors.ts'
import type { Step } from '../sign-in-attempt.ts'

/** @throws COULD_NOT_VALIDATE if one of them is missing */
export const requireCredentials: Step = ({ credentials: { username, password } }) => {
  const missingField = username ? 'password' : 'username'
  if (!username || !password) throw errors.COULD_NOT_VALIDATE({ field: missingField, reason: 'is required' })
}
