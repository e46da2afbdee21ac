// Every method: requires that the second factors of the auth policy can be satisfied at all.
import { AuthenticationError } from '../authentication-methods.ts'
import type { Step } from '../sign-in-attempt.ts'

/**
 * A policy that requires tokens of an external signer admits no identity, because signers come with a later release. One that
 * requires TOTP admits to a partial session, in which TOTP is enrolled; that comes with a later release too.
 */
export const requirePossibleSecondFactors: Step = ({ parts, identity, policy }) => {
  const { requireExtJwtSigner: signer, requireTotp } = policy.secondary
  if (signer !== null) {
    throw new AuthenticationError(
      'UNSATISFIABLE_POLICY',
      `auth policy ${policy.id} demands tokens of the external signer ${signer}, and there are none`,
    )
  }
  if (requireTotp) {
    const fields = { identity: identity.id, authPolicy: policy.id }
    parts.log.info(fields, 'signed in partially: the auth policy demands TOTP, which cannot be enrolled yet')
  }
}
