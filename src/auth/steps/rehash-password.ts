// Password: hashed anew where its hash was made at a lower cost than is asked today.
import { ControllerError } from '../../errors.ts'
import type { Step } from '../sign-in-attempt.ts'

export const rehashPassword: Step = async (attempt) => {
  const { context, authenticator, credentials: presented } = attempt
  const { passwordHasher } = context.controller
  if (!authenticator?.passwordHash || !passwordHasher.needsRehash(authenticator.passwordHash)) return
  try {
    attempt.strongerHash = await passwordHasher.hash(presented.password ?? '', context)
  } catch (error) {
    // Where too many passwordHasher wait, the next sign-in will do.
    if (!(error instanceof ControllerError)) throw error
  }
}
