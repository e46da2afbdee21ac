// Password: it was the right one. Wrong ones count towards locking the identity out.
import { AuthenticationError, type Step } from '../sign-in-attempt.ts'

export const verifyPassword: Step = ({ isPasswordRight }) => {
  if (!isPasswordRight) throw new AuthenticationError('WRONG_PASSWORD', 'the password is wrong')
}
