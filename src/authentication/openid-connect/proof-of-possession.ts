// Whether the client of a connection holds a certificate that a token is bound to (RFC 8705, section 3).
import type { Instant } from '../../foundation/clock.ts'
import { computeFingerprint, isWithinDates } from '../../pki/certificates.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { AuthPolicies } from '../auth-policies.ts'

/** The auth policies, which decide whether a certificate may be expired. */
interface PolicyParts {
  readonly auth: { readonly policies: AuthPolicies }
}

/** The handshake has proven the key of the certificate, and a sign-in or the controller itself that it is the session's. */
export function provesPossession(
  { auth }: PolicyParts,
  peer: PeerCertificates,
  { fingerprints }: { readonly fingerprints: readonly string[] },
  { identity }: Pick<LiveApiSession, 'identity'>,
  now: Instant,
): boolean {
  if (fingerprints.length === 0) return true
  const certificate = peer.readOwn()
  if (!certificate || !fingerprints.includes(computeFingerprint(certificate))) return false
  return auth.policies.get(identity.authPolicyId).primary.cert.allowExpiredCerts || isWithinDates(certificate, now)
}
