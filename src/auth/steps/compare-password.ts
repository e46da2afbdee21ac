// Password: compared with the stored hash, or with one that belongs to nobody. What comes of it is judged later.
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS */
export const comparePassword: Step = async (attempt) => {
  const { context, authenticator, credentials: presented } = attempt
  const hash = authenticator?.passwordHash ?? undefined
  attempt.isPasswordRight = await context.controller.passwordHasher.verify(hash, presented.password ?? '', context)
}
