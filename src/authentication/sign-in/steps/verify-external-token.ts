// External token: verifies the bearer tokens of the request, and finds the identity that one of them names.
import type { TokenCheck, TokenError, VerifiedToken } from '../../../storage/external-tokens.ts'
import { isSignerAllowed } from '../../auth-policies.ts'
import { findByExternalId, readAuthPolicyId } from '../../credentials/credentials.ts'
import {
  AuthenticationError,
  type AuthenticatorMatch,
  NO_CERTIFICATE,
  type SignInRefusalReason,
  toSignerAuthenticatorId,
} from '../authentication-methods.ts'
import type { SignInAttempt, Step } from '../sign-in-attempt.ts'

const REASONS: Readonly<Record<TokenCheck, SignInRefusalReason>> = {
  format: 'MALFORMED_TOKEN',
  kid: 'MALFORMED_TOKEN',
  issuer: 'UNKNOWN_SIGNER',
  'signer-enabled': 'SIGNER_DISABLED',
  key: 'UNKNOWN_KEY',
  signature: 'WRONG_SIGNATURE',
  audience: 'WRONG_AUDIENCE',
  'not-before': 'TOKEN_NOT_YET_VALID',
  expiration: 'EXPIRED_TOKEN',
  'identity-claim': 'MISSING_CLAIM',
}

/** An identity that a token names. */
interface TokenIdentity {
  readonly token: VerifiedToken
  readonly identityId: string
  readonly authPolicyId: string
}

/**
 * Of several tokens, the first counts that names an identity whose auth policy allows the signer; the others may be for second
 * factors. One that names an identity is refused later, if the policy does not allow its signer.
 */
export const verifyExternalToken: Step = async (attempt) => {
  const { parts, credentials } = attempt
  if (credentials.bearerTokens.length === 0)
    throw new AuthenticationError('NO_TOKEN', 'the request has no bearer token')
  const { verified, rejected } = await parts.auth.signers.verifier.verifyAll(parts.contexts, credentials.bearerTokens)
  const [error] = rejected
  if (verified.length === 0 && error) throw toAuthenticationError(error)
  attempt.externalTokens = verified
  const identities = await findIdentities(attempt)
  const isAllowed = ({ token, authPolicyId }: TokenIdentity) =>
    isSignerAllowed(parts.auth.policies.get(authPolicyId), token.signerId)
  const match = identities.find(isAllowed) ?? identities[0]
  if (!match) throw new AuthenticationError('UNKNOWN_CREDENTIAL', 'the token names no identity')
  attempt.primaryToken = match.token
  attempt.authenticator = toAuthenticatorMatch(match)
}

export function toAuthenticationError({ check, message }: TokenError): AuthenticationError {
  return new AuthenticationError(REASONS[check], message)
}

async function findIdentities({ context, externalTokens }: SignInAttempt): Promise<TokenIdentity[]> {
  const identities: TokenIdentity[] = []
  for (const token of externalTokens) {
    const find = token.isExternalId ? findByExternalId : readAuthPolicyId
    const [row] = await find(context.db, token.subject)
    if (row) identities.push({ token, identityId: row.id, authPolicyId: row.authPolicyId })
  }
  return identities
}

/** No record holds such an authenticator: the signer has the credential. */
function toAuthenticatorMatch({ token, identityId }: TokenIdentity): AuthenticatorMatch {
  return { ...NO_CERTIFICATE, id: toSignerAuthenticatorId(token.signerId), identityId, passwordHash: null }
}
