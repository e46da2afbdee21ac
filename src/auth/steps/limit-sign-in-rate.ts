// Every method: the identity does not sign in too often. Only sign-ins that would succeed count, so that nobody can use up
// the rate of another identity.
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS */
export const limitSignInRate: Step = ({ context, identity }) => {
  context.controller.signIns.requireRate(identity.id, context.clock.now())
}
