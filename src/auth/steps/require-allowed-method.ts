// Every method: requires that the auth policy of the identity allows the method.
import type { AuthPolicy } from '../auth-policies.ts'
import { AuthenticationError, type Method } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/** The part of a policy for each method. */
const parts: Readonly<Record<Method, keyof AuthPolicy['primary']>> = {
  password: 'updb',
  cert: 'cert',
  'ext-jwt': 'extJwt',
}

export const requireAllowedMethod: Step = ({ method, policy }) => {
  if (!policy.primary[parts[method]].allowed)
    throw new AuthenticationError('METHOD_NOT_ALLOWED', `auth policy ${policy.id} does not allow this method`)
}
