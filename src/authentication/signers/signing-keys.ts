// The public keys that tokens are verified by: read from key sets (RFC 7517) and certificates, each with its algorithms.
import { createHash, createPublicKey, type JsonWebKey, type KeyObject, X509Certificate } from 'node:crypto'
import type { PublicJwk } from '../../definitions/resources/external-jwt-signers.ts'
import { readPublicKey } from '../../pki/certificates.ts'

/** A key with the algorithms that a token may name for it. The key decides them, and never the token. */
export interface SigningKey {
  readonly kid: string
  readonly key: KeyObject
  readonly algorithms: readonly string[]
  /** SHA-256 of the key. Two keys with one id are told apart by it. */
  readonly fingerprint: string
}

/** More keys than any issuer uses at a time. */
const MAX_KEYS = 100
const MAX_KID_LENGTH = 1_000
// Below it, RFC 7518 §3.3 allows no signature; above it, one verification takes as long as ten of usual keys.
const RSA_BITS = { min: 2048, max: 8192 } as const

/** RFC 7518 §3.1, by OpenSSL's name of the curve. */
const CURVE_ALGORITHMS: Readonly<Record<string, string>> = {
  prime256v1: 'ES256',
  secp384r1: 'ES384',
  secp521r1: 'ES512',
}
const RSA_ALGORITHMS: readonly string[] = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512']
/** RFC 8037, and RFC 9864 under its newer name. */
const ED25519_ALGORITHMS: readonly string[] = ['EdDSA', 'Ed25519']

/** The members of a key that are stored. Everything else is dropped, above all private members. */
const PUBLIC_MEMBERS = ['kid', 'kty', 'alg', 'crv', 'n', 'e', 'x', 'y'] as const

/**
 * Returns the algorithms of a public key; empty if tokens cannot be verified by it.
 * @param only the one algorithm that the key is meant for, if its key set names one
 */
export function listAlgorithms(key: KeyObject, only?: string): readonly string[] {
  const possible = listPossibleAlgorithms(key)
  return only === undefined ? possible : possible.filter((algorithm) => algorithm === only)
}

function listPossibleAlgorithms({ type, asymmetricKeyType, asymmetricKeyDetails }: KeyObject): readonly string[] {
  if (type !== 'public') return []
  switch (asymmetricKeyType) {
    case 'rsa': {
      const bits = asymmetricKeyDetails?.modulusLength ?? 0
      return bits >= RSA_BITS.min && bits <= RSA_BITS.max ? RSA_ALGORITHMS : []
    }
    case 'ec': {
      const algorithm = CURVE_ALGORITHMS[asymmetricKeyDetails?.namedCurve ?? '']
      return algorithm ? [algorithm] : []
    }
    case 'ed25519':
      return ED25519_ALGORITHMS
    default:
      return []
  }
}

/**
 * Picks from the response of an endpoint the public keys that can verify signatures: with an id, not meant for encryption,
 * asymmetric, of a usable size. The first key of an id counts.
 * @returns undefined if the response is not a key set
 */
export function pickPublicKeys(keySet: unknown): PublicJwk[] | undefined {
  const { keys } = (keySet ?? {}) as { readonly keys?: unknown }
  if (!Array.isArray(keys)) return undefined
  const byKid = new Map<string, PublicJwk>()
  for (const candidate of keys.slice(0, MAX_KEYS) as unknown[]) {
    const jwk = toPublicJwk(candidate)
    if (jwk && !byKid.has(jwk.kid) && toSigningKey(jwk)) byKid.set(jwk.kid, jwk)
  }
  return [...byKid.values()]
}

function toPublicJwk(candidate: unknown): PublicJwk | undefined {
  if (typeof candidate !== 'object' || candidate === null) return undefined
  const members = candidate as Readonly<Record<string, unknown>>
  const { kid, use, key_ops: operations } = members
  if (typeof kid !== 'string' || kid === '' || kid.length > MAX_KID_LENGTH) return undefined
  if (use !== undefined && use !== 'sig') return undefined
  if (Array.isArray(operations) && !operations.includes('verify')) return undefined
  const hasKey = members.n !== undefined || members.x !== undefined
  const pickedMembers = PUBLIC_MEMBERS.flatMap((name) => {
    const value = members[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return { ...(hasKey ? {} : readCertifiedKey(members.x5c)), ...Object.fromEntries(pickedMembers) } as PublicJwk
}

/** RFC 7517 §4.7: the first certificate is that of the key. Returns its key as members of a JWK; none if there is none. */
function readCertifiedKey(chain: unknown): JsonWebKey {
  const [first] = Array.isArray(chain) ? (chain as unknown[]) : []
  if (typeof first !== 'string') return {}
  try {
    return readPublicKey(new X509Certificate(Buffer.from(first, 'base64')))?.export({ format: 'jwk' }) ?? {}
  } catch {
    // Not a certificate, or a key that JWKs do not have.
    return {}
  }
}

/** Returns the key of a stored key set; undefined if tokens cannot be verified by it. */
export function toSigningKey({ kid, ...jwk }: PublicJwk): SigningKey | undefined {
  try {
    return describeKey(kid, createPublicKey({ key: { ...jwk }, format: 'jwk' }), jwk.alg)
  } catch {
    // Not a key that OpenSSL knows, or a symmetric one.
    return undefined
  }
}

/** Returns a public key under its id; undefined if tokens cannot be verified by it. */
export function describeKey(kid: string, key: KeyObject, onlyAlgorithm?: string): SigningKey | undefined {
  const algorithms = listAlgorithms(key, onlyAlgorithm)
  if (algorithms.length === 0) return undefined
  const fingerprint = createHash('sha256')
    .update(key.export({ type: 'spki', format: 'der' }))
    .digest('hex')
  return { kid, key, algorithms, fingerprint }
}
