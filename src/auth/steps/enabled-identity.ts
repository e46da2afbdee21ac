// Every method: the identity exists and is enabled.
import { identities } from '../../resources/identities.ts'
import { find } from '../../store/entities.ts'
import { Refusal, type Step } from '../attempt.ts'
import { isDisabled } from '../disabling.ts'

export const enabledIdentity: Step = async (attempt) => {
  const { context, authenticator } = attempt
  if (!authenticator) throw new Refusal('UNKNOWN_CREDENTIAL', 'nobody is known by these credentials')
  const identity = await find(context, identities, authenticator.identityId)
  if (!identity) throw new Refusal('UNKNOWN_CREDENTIAL', `identity ${authenticator.identityId} is gone`)
  if (isDisabled(identity, context.clock.now()))
    throw new Refusal('IDENTITY_DISABLED', `identity ${identity.id} is disabled`)
  attempt.identity = identity
}
