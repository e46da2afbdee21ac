// Whether the client of a connection holds a certificate that a token is bound to (RFC 8705, section 3).
import type { X509Certificate } from 'node:crypto'
import type { Instant } from '../../foundation/clock.ts'
import { isWithinDates } from '../../pki/certificates.ts'
import type { PeerCertificates } from '../../pki/peer-certificates.ts'
import { readSessionCertificateIds } from '../../pki/spiffe.ts'
import type { LiveApiSession } from '../api-sessions/live-api-sessions.ts'
import type { AuthPolicies } from '../auth-policies.ts'
import type { ClientTrustStore } from '../sign-in/client-trust.ts'

/** The auth policies, which decide whether a certificate may be expired, and the authority of session certificates. */
interface PossessionParts {
  readonly auth: { readonly clientTrust: ClientTrustStore; readonly policies: AuthPolicies }
}

/** Whether the client holds a certificate of a token. The handshake has proven its key, and a sign-in or the controller whose it is. */
export function provesPossession(
  { auth }: Pick<PossessionParts, 'auth'>,
  peer: PeerCertificates,
  { fingerprints }: BoundToken,
  { identity }: BoundSession,
  now: Instant,
): boolean {
  if (fingerprints.length === 0) return true
  const { ownPrint } = peer
  if (!ownPrint || !fingerprints.includes(ownPrint.fingerprint)) return false
  const isInForce = ownPrint.notBefore <= now && now <= ownPrint.notAfter
  return isInForce || auth.policies.get(identity.authPolicyId).primary.cert.allowExpiredCerts
}

/** The same, or it holds a certificate that was issued for the session since: for requests, not for the tokens themselves. */
export function provesSession(
  parts: PossessionParts,
  peer: PeerCertificates,
  token: BoundToken,
  session: BoundSession,
  now: Instant,
): boolean {
  if (provesPossession(parts, peer, token, session, now)) return true
  const certificate = peer.readOwn()
  if (!certificate || !isWithinDates(certificate, now)) return false
  return isCertificateOf(certificate, session) && parts.auth.clientTrust.isOwnClient(certificate, now)
}

interface BoundToken {
  readonly fingerprints: readonly string[]
}

type BoundSession = Pick<LiveApiSession, 'id' | 'identity'>

/** Whether a certificate names the session in its SPIFFE id. */
function isCertificateOf(certificate: X509Certificate, { id, identity }: BoundSession): boolean {
  const named = readSessionCertificateIds(certificate)
  return named?.apiSessionId === id && named.identityId === identity.id
}
