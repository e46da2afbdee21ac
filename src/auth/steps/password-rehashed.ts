// Password: hashed anew where its hash was made at a lower cost than is asked today.
import { ControllerError } from '../../errors.ts'
import type { Step } from '../attempt.ts'

export const passwordRehashed: Step = async (attempt) => {
  const { context, authenticator, presented } = attempt
  const { passwords } = context.controller
  if (!authenticator?.passwordHash || !passwords.isCheap(authenticator.passwordHash)) return
  try {
    attempt.strongerHash = await passwords.hash(presented.password ?? '', context)
  } catch (error) {
    // Where too many passwords wait, the next sign-in will do.
    if (!(error instanceof ControllerError)) throw error
  }
}
