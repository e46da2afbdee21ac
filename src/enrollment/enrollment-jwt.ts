// The JWT that tells a client where to enroll, with which token, and by which key to recognise the controller.
import type { KeyObject } from 'node:crypto'
import type { Instant } from '../clock.ts'
import { advertisedAddress, type Config } from '../config.ts'
import type { Authority } from '../pki/authority.ts'
import { fingerprint } from '../pki/certificates.ts'

export interface EnrollmentClaims {
  readonly method: string
  /** Whom the enrollment is for. */
  readonly subject: string
  readonly token: string
  readonly expiresAt: Instant
}

/**
 * Signed with the key of the server certificate, because clients check it against the certificate that `iss` serves.
 * The audience is one empty string and `iss` has no slash at its end: that is how clients know these tokens.
 */
export async function enrollmentJwt(
  { config, authority }: { readonly config: Config; readonly authority: Authority },
  { method, subject, token, expiresAt }: EnrollmentClaims,
): Promise<string> {
  const { SignJWT } = await import('jose')
  const address = advertisedAddress(config)
  return new SignJWT({ em: method, ctrls: [`tls:${address}`] })
    .setProtectedHeader({
      alg: jwtAlgorithm(authority.server.key),
      kid: fingerprint(authority.server.certificate),
      typ: 'JWT',
    })
    .setIssuer(`https://${address}`)
    .setSubject(subject)
    .setAudience([''])
    .setExpirationTime(Math.floor(expiresAt / 1000))
    .setJti(token)
    .sign(authority.server.key)
}

/** RFC 7518 §3.1, by the kind of key and, for curves, its size. */
function jwtAlgorithm(key: KeyObject): string {
  if (key.asymmetricKeyType === 'rsa') return 'RS256'
  const curve = key.asymmetricKeyDetails?.namedCurve
  return { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }[curve ?? ''] ?? 'ES256'
}
