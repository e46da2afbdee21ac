// Password: it was the right one. Wrong ones count towards locking the identity out.
import { Refusal, type Step } from '../attempt.ts'

export const rightPassword: Step = ({ isPasswordRight }) => {
  if (!isPasswordRight) throw new Refusal('WRONG_PASSWORD', 'the password is wrong')
}
