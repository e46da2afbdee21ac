// The certificate that a client requests with its sign-in, and to which its tokens are bound then.
import type { apiSessions } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import { ControllerError } from '../../foundation/errors.ts'
import { encodeCommonName } from '../../pki/names.ts'
import { readSigningRequest, type SigningRequest } from '../../pki/requests.ts'
import type { Context } from '../../storage/transactions/context.ts'
import { issueSessionCertificate } from '../api-sessions/session-certificates.ts'
import { OAuthError } from './oauth-error.ts'
import type { OpenIdParts } from './open-id-parts.ts'

// It is of no use without the session, which ends before.
const LIFETIME_MS = 365 * 24 * 60 * 60_000

/** @throws OAuthError if the request cannot be read, or its signature is wrong */
export function readLoginRequest(csr: string): SigningRequest {
  try {
    return readSigningRequest(csr)
  } catch (error) {
    if (error instanceof ControllerError && error.status === 400)
      throw new OAuthError('invalid_request', 'invalid CSR: it cannot be read, or its signature is wrong')
    throw error
  }
}

/** Issues the certificate in the context of its session. */
export async function issueLoginCertificate(
  parts: OpenIdParts,
  context: Context,
  { id: apiSessionId, identityId, certFingerprint }: Entity<typeof apiSessions>,
  request: SigningRequest,
): Promise<{ readonly pem: string; readonly fingerprints: readonly string[] }> {
  const holder = { apiSessionId, identityId }
  // Only the key of the request is proven.
  const named = { ...request, subject: encodeCommonName(identityId) }
  const { issued } = await issueSessionCertificate(parts, context, holder, named, LIFETIME_MS)
  const ofLogin = certFingerprint === null ? [] : [certFingerprint]
  return { pem: issued.certificate, fingerprints: [...ofLogin, issued.fingerprint] }
}
