// Every method: what the auth policy demands beyond it can be met at all.
import { AuthenticationError, type Step } from '../sign-in-attempt.ts'

/**
 * A policy that demands tokens of an external signer lets nobody in, because there are no signers yet. One that demands
 * TOTP lets into a partial session, in which it is to be enrolled; that, too, comes with a later release.
 */
export const requirePossibleSecondFactors: Step = ({ context, identity, policy }) => {
  const { requireExtJwtSigner: signer, requireTotp } = policy.secondary
  if (signer !== null) {
    throw new AuthenticationError(
      'UNSATISFIABLE_POLICY',
      `auth policy ${policy.id} demands tokens of the external signer ${signer}, and there are none`,
    )
  }
  if (requireTotp) {
    const fields = { identity: identity.id, authPolicy: policy.id }
    context.controller.log.info(
      fields,
      'signed in partially: the auth policy demands TOTP, which cannot be enrolled yet',
    )
  }
}
