// What an identity lacks to present the second factors of an auth policy.
import type { AuthPolicy } from '../../auth/auth-policies.ts'
import type { AdviceQuestion } from './subject.ts'

/** Returns why the identity cannot present a second factor that the policy requires, as the end of a sentence; else undefined. */
export function findSecondFactorGap(question: AdviceQuestion, { secondary }: AuthPolicy): string | undefined {
  const { verifiedMfa, identity } = question
  if (secondary.requireTotp && !verifiedMfa.has(identity.id)) {
    return `one-time passwords, and ${identity.name} has set up none`
  }
  return secondary.requireExtJwtSigner === null ? undefined : findSignerGap(question, secondary.requireExtJwtSigner)
}

function findSignerGap({ signers, identity }: AdviceQuestion, signerId: string): string | undefined {
  const signer = signers.get(signerId)
  // An auth policy keeps its signers from being deleted.
  if (!signer) return 'tokens of a signer that does not exist'
  const { name, enabled, audience, keys, useExternalId } = signer
  const factor = `tokens of ${name} with every request`
  if (!enabled) return `${factor}, and ${name} is disabled`
  if (audience === null) return `${factor}, and ${name} accepts none without an audience`
  if (keys.size === 0) return `${factor}, and no key of ${name} is known`
  if (useExternalId && identity.externalId === null) {
    return `${factor}, which name an external id, and ${identity.name} has none`
  }
  return undefined
}
