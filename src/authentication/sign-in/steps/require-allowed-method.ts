// Every method: requires that the auth policy of the identity allows the method, and the signer of an external token.
import type { AuthPolicy } from '../../auth-policies.ts'
import { AuthenticationError, type Method } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/** The part of a policy for each method. */
const parts: Readonly<Record<Method, keyof AuthPolicy['primary']>> = {
  password: 'updb',
  cert: 'cert',
  'ext-jwt': 'extJwt',
}

/** Whether tokens of the signer are accepted as a primary factor; an empty list of the policy allows every signer. */
export function isSignerAllowed({ primary }: AuthPolicy, signerId: string): boolean {
  const { allowed, allowedSigners } = primary.extJwt
  return allowed && (allowedSigners.length === 0 || allowedSigners.includes(signerId))
}

export const requireAllowedMethod: Step = ({ method, policy, primaryToken }) => {
  if (!policy.primary[parts[method]].allowed)
    throw new AuthenticationError('METHOD_NOT_ALLOWED', `auth policy ${policy.id} does not allow this method`)
  if (primaryToken && !isSignerAllowed(policy, primaryToken.signerId)) {
    const message = `auth policy ${policy.id} does not allow the signer ${primaryToken.signerId}`
    throw new AuthenticationError('SIGNER_NOT_ALLOWED', message)
  }
}
