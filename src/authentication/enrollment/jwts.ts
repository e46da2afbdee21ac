// The JWTs that bring clients here: where to enroll, with which token, and by which key to recognise the controller.
import type { JWTPayload } from 'jose'
import type { Instant } from '../../foundation/clock.ts'
import { newToken } from '../../foundation/ids.ts'
import { toJwtAlgorithm } from '../../pki/algorithms.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint } from '../../pki/certificates.ts'
import { getAdvertisedAddress } from '../../settings/addresses.ts'
import type { Config } from '../../settings/settings.ts'

/** The key that signs, and the settings that are advertised. */
export interface EnrollmentSigner {
  readonly config: Config
  readonly authority: Authority
}

export interface EnrollmentClaims {
  readonly method: string
  /** The id of the identity or router that the enrollment is for. */
  readonly subject: string
  readonly token: string
  readonly expiresAt: Instant
  /** The addresses at which routers reach the controllers, or the one at which they find the network. */
  readonly controlAddresses: readonly string[]
}

/** The audience is one empty string and `iss` has no slash at its end: that is how clients know these tokens. */
export function signEnrollmentJwt(
  signer: EnrollmentSigner,
  { method, subject, token, expiresAt, controlAddresses }: EnrollmentClaims,
): Promise<string> {
  return signClaims(signer, {
    em: method,
    ctrls: controlAddresses,
    iss: `https://${getAdvertisedAddress(signer.config)}`,
    sub: subject,
    aud: [''],
    exp: Math.floor(expiresAt / 1000),
    jti: token,
  })
}

/** The JWT of the network: it does not belong to an identity and does not expire. Its `iss` ends with a slash. */
export function signNetworkJwt(signer: EnrollmentSigner, audience: string): Promise<string> {
  const iss = `https://${getAdvertisedAddress(signer.config)}/`
  return signClaims(signer, { em: 'network', ctrls: null, iss, sub: iss, aud: [audience], jti: newToken() })
}

/** The JWT of a certificate authority, whose id is its subject: it does not expire. Its `iss` ends with a slash. */
export function signAuthorityJwt(signer: EnrollmentSigner, caId: string, audience: string): Promise<string> {
  const iss = `https://${getAdvertisedAddress(signer.config)}/`
  return signClaims(signer, { em: 'ca', ctrls: null, iss, sub: caId, aud: [audience], jti: caId })
}

/** With the key of the server certificate, because clients check it against the certificate that `iss` serves. */
async function signClaims({ authority }: EnrollmentSigner, claims: JWTPayload): Promise<string> {
  const { SignJWT } = await import('jose')
  const { key, certificate } = authority.server
  return new SignJWT(claims)
    .setProtectedHeader({ alg: toJwtAlgorithm(key), kid: computeFingerprint(certificate), typ: 'JWT' })
    .sign(key)
}
