// The keys and signature algorithms that the controller accepts and uses, by their object identifiers.
import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { DerReader, der } from './der.ts'

interface SignatureAlgorithm {
  readonly keyType: 'ec' | 'rsa' | 'ed25519'
  /** The digest, as node:crypto names it; Ed25519 has its own. */
  readonly digest: string | null
}

// RFC 5758, RFC 4055, RFC 8410. SHA-1 is not among them.
const SIGNATURES: Readonly<Record<string, SignatureAlgorithm>> = {
  '1.2.840.10045.4.3.2': { keyType: 'ec', digest: 'sha256' },
  '1.2.840.10045.4.3.3': { keyType: 'ec', digest: 'sha384' },
  '1.2.840.10045.4.3.4': { keyType: 'ec', digest: 'sha512' },
  '1.2.840.113549.1.1.11': { keyType: 'rsa', digest: 'sha256' },
  '1.2.840.113549.1.1.12': { keyType: 'rsa', digest: 'sha384' },
  '1.2.840.113549.1.1.13': { keyType: 'rsa', digest: 'sha512' },
  '1.3.101.112': { keyType: 'ed25519', digest: null },
}

const CURVES: readonly string[] = ['prime256v1', 'secp384r1', 'secp521r1']
const MIN_RSA_BITS = 2048
// A signature check grows with the square of the modulus, and linearly with the exponent.
const MAX_RSA_BITS = 4096
// FIPS 186-5, A.1.1. With a small one, a verifier that is careless about padding accepts signatures that anyone can compute.
const MIN_RSA_EXPONENT = 65537n
const MAX_RSA_EXPONENT = 2n ** 32n

/**
 * Returns why a public key is not accepted, or undefined.
 * @param key undefined if it cannot be decoded
 * @param maxRsaBits the largest modulus of an RSA key
 */
export function findKeyObjection(key: KeyObject | undefined, maxRsaBits = MAX_RSA_BITS): string | undefined {
  const details = key?.asymmetricKeyDetails
  switch (key?.asymmetricKeyType) {
    case undefined:
      return 'the key cannot be decoded'
    case 'rsa': {
      const { modulusLength = 0, publicExponent = 0n } = details ?? {}
      if (modulusLength < MIN_RSA_BITS) return `an RSA key needs ${MIN_RSA_BITS} bits or more`
      if (modulusLength > maxRsaBits) return `an RSA key may have at most ${maxRsaBits} bits`
      if (publicExponent < MIN_RSA_EXPONENT)
        return `the public exponent of an RSA key must be ${MIN_RSA_EXPONENT} or more`
      return publicExponent <= MAX_RSA_EXPONENT ? undefined : 'the public exponent of the RSA key is too large'
    }
    case 'ec':
      return CURVES.includes(details?.namedCurve ?? '')
        ? undefined
        : 'the curve of the key is not one of P-256, P-384, P-521'
    case 'ed25519':
      return undefined
    default:
      return 'the key is neither RSA, nor EC, nor Ed25519'
  }
}

// RFC 5480 §2: the bytes before the two coordinates of an uncompressed P-256 key.
const P256_BEGIN = Buffer.from('3059301306072a8648ce3d020106082a8648ce3d03010703420004', 'hex')
const P256_COORDINATE = 32

/** Parses a SubjectPublicKeyInfo. @throws if it is not one, or if its point is not on its curve */
export function publicKeyFromSpki(spki: Buffer): KeyObject {
  // Most clients use P-256. Importing its coordinates takes half as long as parsing DER.
  const isP256 =
    spki.length === P256_BEGIN.length + 2 * P256_COORDINATE && spki.subarray(0, P256_BEGIN.length).equals(P256_BEGIN)
  if (!isP256) return createPublicKey({ key: spki, format: 'der', type: 'spki' })
  const coordinate = (at: number) => spki.subarray(at, at + P256_COORDINATE).toString('base64url')
  const [x, y] = [coordinate(P256_BEGIN.length), coordinate(P256_BEGIN.length + P256_COORDINATE)]
  return createPublicKey({ key: { kty: 'EC', crv: 'P-256', x, y }, format: 'jwk' })
}

// RFC 4055 §3.1: RSASSA-PSS, whose parameters name the digest (RFC 5754: SHA-256, SHA-384, SHA-512).
const RSA_PSS = '1.2.840.113549.1.1.10'
const PSS_DIGESTS: readonly string[] = ['2.16.840.1.101.3.4.2.1', '2.16.840.1.101.3.4.2.2', '2.16.840.1.101.3.4.2.3']
const PSS_DIGEST_TAG = 0xa0

/**
 * Whether the signature of a certificate is accepted by its algorithm. SHA-1 and older digests are not.
 * @param identifier DER of the AlgorithmIdentifier
 * @throws DerError
 */
export function isAcceptedSignatureAlgorithm(identifier: Buffer): boolean {
  const members = new DerReader(identifier).sequence()
  const oid = members.oid()
  if (oid !== RSA_PSS) return Object.hasOwn(SIGNATURES, oid)
  const parameters = members.sequence()
  // The default digest is SHA-1.
  if (parameters.peekTag() !== PSS_DIGEST_TAG) return false
  return PSS_DIGESTS.includes(new DerReader(parameters.next().content).sequence().oid())
}

/** Whether `signature` is valid for `data`, with this key and algorithm. */
export function isSignedBy(oid: string, key: KeyObject, data: Buffer, signature: Buffer): boolean {
  const algorithm = SIGNATURES[oid]
  if (!algorithm || algorithm.keyType !== key.asymmetricKeyType) return false
  return verify(algorithm.digest, data, key, signature)
}

/** Returns how a key signs certificates: the digest, and the DER of the algorithm identifier. */
export function toSigningAlgorithm(key: KeyObject): { digest: string | null; identifier: Buffer } {
  const identify = (oid: string, ...parameters: Buffer[]) => der.sequence(der.oid(oid), ...parameters)
  switch (key.asymmetricKeyType) {
    case 'ec': {
      const curve = key.asymmetricKeyDetails?.namedCurve
      if (curve === 'secp384r1') return { digest: 'sha384', identifier: identify('1.2.840.10045.4.3.3') }
      if (curve === 'secp521r1') return { digest: 'sha512', identifier: identify('1.2.840.10045.4.3.4') }
      return { digest: 'sha256', identifier: identify('1.2.840.10045.4.3.2') }
    }
    case 'rsa':
      return { digest: 'sha256', identifier: identify('1.2.840.113549.1.1.11', der.nothing()) }
    case 'ed25519':
      return { digest: null, identifier: identify('1.3.101.112') }
    default:
      throw new Error(`a ${key.asymmetricKeyType} key cannot sign certificates`)
  }
}

/** Returns the algorithm of JWTs that a key signs (RFC 7518 §3.1): by the type of key and, for curves, its size. */
export function toJwtAlgorithm(key: KeyObject): string {
  if (key.asymmetricKeyType === 'rsa') return 'RS256'
  const curve = key.asymmetricKeyDetails?.namedCurve
  return { prime256v1: 'ES256', secp384r1: 'ES384', secp521r1: 'ES512' }[curve ?? ''] ?? 'ES256'
}
