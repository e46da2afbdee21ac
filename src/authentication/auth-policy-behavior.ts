// The rules of auth policies; the policy of identities that name none cannot be deleted.

import { type authPolicies, DEFAULT_POLICY } from '../definitions/resources/auth-policies.ts'
import { passwordLength } from '../definitions/resources/authenticators.ts'
import { errors } from '../foundation/errors.ts'
import type { Behavior } from '../storage/behavior.ts'
import type { WriteContext } from '../storage/transactions/context.ts'
import type { AuthPolicy } from './auth-policies.ts'

export class AuthPolicyBehavior implements Behavior<typeof authPolicies> {
  async check(_tx: WriteContext, next: AuthPolicy): Promise<void> {
    const { updb } = next.primary
    updb.minPasswordLength = Math.max(updb.minPasswordLength, passwordLength.minLength)
    updb.maxAttempts = Math.max(updb.maxAttempts, 0)
    updb.lockoutDurationMinutes = Math.max(updb.lockoutDurationMinutes, 0)
  }

  /** Refuses it even if no identity has the policy now, because new identities will. */
  async deleted(_tx: WriteContext, { id }: AuthPolicy): Promise<void> {
    if (id !== DEFAULT_POLICY) return
    throw errors.CAN_NOT_DELETE_REFERENCED_ENTITY({ message: 'identities that name no auth policy have this one' })
  }
}
