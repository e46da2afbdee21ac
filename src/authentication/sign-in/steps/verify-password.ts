// Password: refuses a wrong one, which counts towards a lockout.
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const verifyPassword: Step = ({ isPasswordCorrect }) => {
  if (!isPasswordCorrect) throw new AuthenticationError('WRONG_PASSWORD', 'the password is wrong')
}
