// The certificate by which the holder of an authority's key proves that: issued by the authority to a verification token.
import { generateKeyPairSync, type KeyObject, type X509Certificate } from 'node:crypto'
import type { Instant } from '../foundation/clock.ts'
import { issueCertificate, readNotBefore, toCertificatePem } from './certificates.ts'
import { encodeDistinguishedName } from './names.ts'

// It is used once, right after it is made.
const VERIFICATION_LIFETIME_MS = 60 * 60 * 1000
// The clock of the controller may be a little behind.
const BACKDATE_MS = 5 * 60 * 1000

/** Returns the certificate as PEM. @param key the private key of `authority` */
export function makeVerificationCertificate(
  authority: X509Certificate,
  key: KeyObject,
  verificationToken: string,
  now: Instant,
): string {
  const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' })
  const certificate = issueCertificate(
    {
      purpose: 'client',
      subject: encodeDistinguishedName('Verification', verificationToken),
      publicKeyInfo: publicKey.export({ type: 'spki', format: 'der' }),
      notBefore: Math.max(now - BACKDATE_MS, readNotBefore(authority)),
      notAfter: now + VERIFICATION_LIFETIME_MS,
    },
    { certificate: authority, key },
  )
  return toCertificatePem(certificate)
}
