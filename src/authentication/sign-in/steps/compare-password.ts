// Password: compares it with the stored hash, or with a decoy. A later step acts on the result.
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS if too many passwords wait to be compared */
export const comparePassword: Step = async (attempt) => {
  const { parts, context, authenticator, credentials } = attempt
  const hash = authenticator?.passwordHash ?? undefined
  attempt.isPasswordCorrect = await parts.auth.passwordHasher.verify(hash, credentials.password ?? '', context)
}
