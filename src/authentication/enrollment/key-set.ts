// The keys that sign enrollment JWTs, and a challenge to prove one: by them a client checks a controller before it trusts it.
import { createPublicKey, sign } from 'node:crypto'
import type { JWK } from 'jose'
import { invalidError } from '../../foundation/errors.ts'
import { toJwtAlgorithm } from '../../pki/algorithms.ts'
import type { Authority } from '../../pki/authority.ts'
import { computeFingerprint } from '../../pki/certificates.ts'

/**
 * The public key under each id by which the header of a JWT names it: the key outlives its certificates, and JWTs that were
 * signed under an earlier one may be outstanding.
 */
export function toKeySet(authority: Authority): { keys: JWK[] } {
  const { key } = authority.server
  const jwk = createPublicKey(key).export({ format: 'jwk' })
  const keys = authority.serverCertificates.map((certificate) => {
    const x5c = authority.listChain(certificate).map(({ raw }) => raw.toString('base64'))
    const sha256 = Buffer.from(certificate.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url')
    const kid = computeFingerprint(certificate)
    return { ...jwk, use: 'sig', alg: toJwtAlgorithm(key), kid, x5c, 'x5t#S256': sha256 } as JWK
  })
  return { keys }
}

export interface ChallengeResponse {
  /** Of the nonce as it was sent, base64url, in the form that JWTs have it. */
  readonly signature: string
  readonly algorithm: string
  readonly kid: string
  /** PEM of the authorities by which clients trust this controller. */
  readonly caPool: string
}

/** Proves that the controller holds a key of the set. @throws COULD_NOT_VALIDATE for a key that is not in it */
export function answerChallenge(
  { server, serverCertificates, bundlePem }: Authority,
  keyId: string,
  nonce: string,
): ChallengeResponse {
  const kid = serverCertificates.map(computeFingerprint).find((id) => id === keyId)
  if (kid === undefined) throw invalidError('keyId', 'names no key of this controller', keyId)
  const algorithm = toJwtAlgorithm(server.key)
  // RFC 7518 §3.4: signatures of curves are the two numbers side by side, not DER.
  const signature = sign(`sha${algorithm.slice(2)}`, Buffer.from(nonce), { key: server.key, dsaEncoding: 'ieee-p1363' })
  return { signature: signature.toString('base64url'), algorithm, kid, caPool: bundlePem }
}
