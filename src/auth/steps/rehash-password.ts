// Password: hashed anew where its hash was made at a lower cost than is asked today.
import { ControllerError } from '../../errors.ts'
import type { Step } from '../sign-in-attempt.ts'

export const rehashPassword: Step = async (attempt) => {
  const { context, authenticator, credentials: presented } = attempt
  const { passwords } = context.controller
  if (!authenticator?.passwordHash || !passwords.needsRehash(authenticator.passwordHash)) return
  try {
    attempt.strongerHash = await passwords.hash(presented.password ?? '', context)
  } catch (error) {
    // Where too many passwords wait, the next sign-in will do.
    if (!(error instanceof ControllerError)) throw error
  }
}
