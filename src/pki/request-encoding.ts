// The client's side of issuing a certificate: its key, its signing request (RFC 2986), and the check of what it receives.
import { createPublicKey, generateKeyPairSync, type KeyObject, sign, X509Certificate } from 'node:crypto'
import { toSigningAlgorithm } from './algorithms.ts'
import { der } from './der.ts'
import { encodeDistinguishedName } from './names.ts'
import { toPem } from './pem.ts'

const ORGANIZATION = 'Edge Controller'

/** A new private key on the curve P-256. */
export function generateClientKey(): KeyObject {
  return generateKeyPairSync('ec', { namedCurve: 'prime256v1' }).privateKey
}

/** A request for a certificate of this key, as PEM. */
export function encodeSigningRequest(commonName: string, key: KeyObject): string {
  const { digest, identifier } = toSigningAlgorithm(key)
  const info = der.sequence(
    der.integer(0), // version 1
    encodeDistinguishedName(ORGANIZATION, commonName),
    createPublicKey(key).export({ type: 'spki', format: 'der' }),
    der.explicit(0), // no attributes
  )
  return toPem('CERTIFICATE REQUEST', der.sequence(info, identifier, der.bitString(sign(digest, info, key))))
}

/** Whether the text begins with a certificate of this key, as PEM. */
export function isCertificateOf(key: KeyObject, pem: string): boolean {
  try {
    return new X509Certificate(pem).checkPrivateKey(key)
  } catch {
    return false
  }
}
