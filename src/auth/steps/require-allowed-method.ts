// Every method: the auth policy of the identity is open to it.

import type { AuthPolicy } from '../auth-policies.ts'
import { AuthenticationError, type Method, type Step } from '../sign-in-attempt.ts'

/** The part of a policy that speaks of each method. */
const parts: Readonly<Record<Method, keyof AuthPolicy['primary']>> = {
  password: 'updb',
  cert: 'cert',
  'ext-jwt': 'extJwt',
}

export const requireAllowedMethod: Step = ({ method, policy }) => {
  if (!policy.primary[parts[method]].allowed)
    throw new AuthenticationError('METHOD_NOT_ALLOWED', `auth policy ${policy.id} is closed to this method`)
}
