// Parses the certificates that clients present, once each: parsing costs more than a signature check.
import { hash, X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'

// Some 2,500 certificates with P-256 keys.
const MAX_CACHE_BYTES = 16 * 1024 * 1024

// OpenSSL keeps the DER besides its own form, which takes some kilobytes: 6,300 bytes for a certificate of 500.
const PARSED_BYTES = 5_000
const BYTES_PER_DER_BYTE = 3

/** By the SHA-256 of the DER. Signature checks are cached with the parsed certificates, because `chains.ts` stores them by object. */
const certificates = new LRUCache<string, X509Certificate>({ maxSize: MAX_CACHE_BYTES })

/** Parses a certificate. The same bytes give the same object while the cache holds it. @throws if they are not a certificate */
export function parseCertificate(der: Buffer): X509Certificate {
  const key = hash('sha256', der, 'base64')
  const cached = certificates.get(key)
  if (cached) return cached
  const certificate = new X509Certificate(der)
  certificates.set(key, certificate, { size: PARSED_BYTES + der.length * BYTES_PER_DER_BYTE })
  return certificate
}
