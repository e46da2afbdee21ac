// Every method: notes that the auth policy requires a second factor that cannot be enrolled yet.
import type { Step } from '../sign-in-attempt.ts'

/** A policy that requires TOTP admits to a partial session, in which TOTP is enrolled; that comes with a later release. */
export const requirePossibleSecondFactors: Step = ({ parts, identity, policy }) => {
  if (policy.secondary.requireTotp) {
    const fields = { identity: identity.id, authPolicy: policy.id }
    parts.log.info(fields, 'signed in partially: the auth policy demands TOTP, which cannot be enrolled yet')
  }
}
