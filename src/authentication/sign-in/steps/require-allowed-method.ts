// Every method: requires that the auth policy of the identity allows the method, and the signer of an external token.
import { type AuthPolicy, isMethodAllowed, isSignerAllowed } from '../../auth-policies.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { SignInAttempt, Step } from '../sign-in-attempt.ts'

export const requireAllowedMethod: Step = ({ method, policy, primaryToken }) =>
  requireMethodAllowedBy(policy, { method, primaryToken })

/** @throws AuthenticationError if the policy does not allow the method, or the signer of the token */
export function requireMethodAllowedBy(
  policy: AuthPolicy,
  { method, primaryToken }: Pick<SignInAttempt, 'method' | 'primaryToken'>,
): void {
  if (!isMethodAllowed(policy, method))
    throw new AuthenticationError('METHOD_NOT_ALLOWED', `auth policy ${policy.id} does not allow this method`)
  if (primaryToken && !isSignerAllowed(policy, primaryToken.signerId)) {
    const message = `auth policy ${policy.id} does not allow the signer ${primaryToken.signerId}`
    throw new AuthenticationError('SIGNER_NOT_ALLOWED', message)
  }
}
