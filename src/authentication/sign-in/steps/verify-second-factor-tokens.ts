// Password, certificate: verifies the bearer tokens of the request, if the auth policy requires one as a second factor.
import type { Step } from '../sign-in-attempt.ts'

/** A token that is rejected does not prevent the sign-in: the session then still owes the factor. */
export const verifySecondFactorTokens: Step = async (attempt) => {
  const { parts, credentials, policy } = attempt
  if (policy.secondary.requireExtJwtSigner === null || credentials.bearerTokens.length === 0) return
  const { verified } = await parts.auth.signers.verifier.verifyAll(parts.contexts, credentials.bearerTokens)
  attempt.externalTokens = verified
}
