// Every method: limits the sign-in rate of the identity. Only sign-ins with a proven credential count, so that an attacker
// cannot use up the rate of an identity.
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS if the identity signs in too often */
export const limitSignInRate: Step = ({ parts, context, identity }) => {
  parts.auth.signIns.requireRate(identity.id, context.clock.now())
}
