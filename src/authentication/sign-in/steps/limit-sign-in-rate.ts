// Every method: limits the sign-in rate of the identity from one source. Only sign-ins with a proven credential count, so that an
// attacker cannot use up the rate of an identity; nor can one elsewhere that knows the password.
import { sourceFromAddress } from '../../../storage/sources.ts'
import type { Step } from '../sign-in-attempt.ts'

/** @throws SERVER_TOO_MANY_REQUESTS if the identity signs in too often */
export const limitSignInRate: Step = ({ parts, context, identity }) => {
  const source = sourceFromAddress(context.origin.address ?? '')
  parts.auth.signIns.requireRate(identity.id, source, context.clock.now())
}
