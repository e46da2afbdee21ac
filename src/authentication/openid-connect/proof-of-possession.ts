// Whether the client of a connection holds a certificate that a token is bound to (RFC 8705, section 3).
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../../foundation/clock.ts'
import { computeFingerprint, isWithinDates } from '../../pki/certificates.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import { readSessionCertificateIds } from '../../pki/spiffe.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'

/** The auth policies, which decide whether a certificate may be expired, and the authority of session certificates. */
interface PossessionParts {
  readonly auth: { readonly clientTrust: ClientTrustStore; readonly policies: AuthPolicies }
}

/** The handshake has proven the key of the certificate, and a sign-in or the controller itself that it is the session's. */
export function provesPossession(
  parts: PossessionParts,
  peer: PeerCertificates,
  { fingerprints }: { readonly fingerprints: readonly string[] },
  session: Pick<LiveApiSession, 'id' | 'identity'>,
  now: Instant,
): boolean {
  if (fingerprints.length === 0) return true
  const certificate = peer.readOwn()
  if (!certificate) return false
  const { auth } = parts
  const isWithin = isWithinDates(certificate, now)
  if (fingerprints.includes(computeFingerprint(certificate)))
    return isWithin || auth.policies.get(session.identity.authPolicyId).primary.cert.allowExpiredCerts
  return isWithin && isCertificateOf(certificate, session) && auth.clientTrust.isOwnClient(certificate, now)
}

/** Whether a certificate names the session in its SPIFFE id. */
function isCertificateOf(
  certificate: X509Certificate,
  { id, identity }: Pick<LiveApiSession, 'id' | 'identity'>,
): boolean {
  const named = readSessionCertificateIds(certificate)
  return named?.apiSessionId === id && named.identityId === identity.id
}
