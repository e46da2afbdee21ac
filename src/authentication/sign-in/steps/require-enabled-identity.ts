// Every method: requires that the identity exists and is enabled.

import { findSignInIdentity } from '../../credentials/credentials.ts'
import { isDisabled } from '../../disabling.ts'
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

export const requireEnabledIdentity: Step = async (attempt) => {
  const { context, authenticator } = attempt
  if (!authenticator) throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'no authenticator matches these credentials')
  const identity = await findSignInIdentity(context.db, authenticator.identityId)
  if (!identity) throw new AuthenticationError('UNKNOWN_CREDENTIAL', `identity ${authenticator.identityId} is gone`)
  if (isDisabled(identity, context.clock.now()))
    throw new AuthenticationError('IDENTITY_DISABLED', `identity ${identity.id} is disabled`)
  attempt.identity = identity
}
