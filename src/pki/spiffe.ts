// SPIFFE ids: the URIs by which routers recognize the API session of a certificate.
import type { X509Certificate } from 'node:crypto'
import { computeFingerprint256, type EncodedCertificate } from './certificates.ts'

// 128 bits tell networks apart.
const TRUST_DOMAIN_DIGITS = 32

/** Returns the trust domain of a network: the first 32 hex digits of the SHA-256 of its first root. */
export function deriveTrustDomain(firstRoot: EncodedCertificate): string {
  return computeFingerprint256(firstRoot).slice(0, TRUST_DOMAIN_DIGITS)
}

/** The ids in the SPIFFE id of a session certificate. */
export interface SessionCertificateIds {
  readonly identityId: string
  readonly apiSessionId: string
  readonly certificateId: string
}

/** Returns the SPIFFE id of a session certificate. Routers compare its path with the id of the API session. */
export function toSessionCertificateUri(trustDomain: string, ids: SessionCertificateIds): string {
  const { identityId, apiSessionId, certificateId } = ids
  return `spiffe://${trustDomain}/identity/${identityId}/apiSession/${apiSessionId}/apiSessionCertificate/${certificateId}`
}

const SESSION_CERTIFICATE_URI =
  /(?:^|, )URI:spiffe:\/\/[^/,]+\/identity\/([^/,]+)\/apiSession\/([^/,]+)\/apiSessionCertificate\//

/** Returns the identity and the API session that a certificate is issued for, by its SPIFFE id; undefined if it has none. */
export function readSessionCertificateIds({
  subjectAltName,
}: X509Certificate): Pick<SessionCertificateIds, 'identityId' | 'apiSessionId'> | undefined {
  const [, identityId, apiSessionId] = SESSION_CERTIFICATE_URI.exec(subjectAltName ?? '') ?? []
  return identityId === undefined || apiSessionId === undefined ? undefined : { identityId, apiSessionId }
}

/** Whether a certificate is issued for one API session, by its SPIFFE id. */
export function isSessionCertificate(certificate: X509Certificate): boolean {
  return readSessionCertificateIds(certificate) !== undefined
}
