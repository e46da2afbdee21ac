// Password: hashes it again if the stored hash has a lower cost than new hashes.
import { ControllerError } from '../../../foundation/errors.ts'
import type { Step } from '../sign-in-attempt.ts'

export const rehashPassword: Step = async (attempt) => {
  const { parts, context, authenticator, credentials } = attempt
  const { passwordHasher } = parts.auth
  if (!authenticator?.passwordHash || !passwordHasher.needsRehash(authenticator.passwordHash)) return
  try {
    attempt.strongerHash = await passwordHasher.hash(credentials.password ?? '', context)
  } catch (error) {
    // If too many passwords wait, the next sign-in rehashes it.
    if (!(error instanceof ControllerError)) throw error
  }
}
