// Finds which second factors of an auth policy an identity cannot present yet.
import type { AuthPolicy } from '../../authentication/auth-policies.ts'
import type { AdviceQuestion } from './subject.ts'

/** A second factor that an identity cannot present. */
interface SecondFactorGap {
  /** The factor and the reason, as the end of a sentence that begins with the requirement. */
  readonly words: string
  /** Only the owner of the identity can close it. */
  readonly isOwnersTask: boolean
}

/** Returns the first second factor of the policy that the identity cannot present; undefined if it can present all. */
export function findSecondFactorGap(question: AdviceQuestion, { secondary }: AuthPolicy): SecondFactorGap | undefined {
  const { verifiedMfa, identity } = question
  if (secondary.requireTotp && !verifiedMfa.has(identity.id)) {
    return {
      words: `one-time passwords, and ${identity.name} has set up none (controller mfa enroll)`,
      isOwnersTask: true,
    }
  }
  const { requireExtJwtSigner } = secondary
  const words = requireExtJwtSigner === null ? undefined : describeSignerGap(question, requireExtJwtSigner)
  return words === undefined ? undefined : { words, isOwnersTask: false }
}

function describeSignerGap({ signers, identity }: AdviceQuestion, signerId: string): string | undefined {
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
