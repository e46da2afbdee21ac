// Password: both halves were sent.
import { errors } from '../../errors.ts'
import type { Step } from '../sign-in-attempt.ts'

/** @throws COULD_NOT_VALIDATE: this much a caller is told */
export const requireCredentials: Step = ({ credentials: { username, password } }) => {
  const missing = username ? 'password' : 'username'
  if (!username || !password) throw errors.COULD_NOT_VALIDATE({ field: missing, reason: 'is required' })
}
