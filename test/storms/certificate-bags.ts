// Client certificates that come with a bag of others, each of which costs as much to check as TLS lets through.
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { issueCertificate, toCertificatePem } from '../../src/pki/certificates.ts'
import { DerReader, der } from '../../src/pki/der.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'

const DAY_MS = 24 * 60 * 60_000
const BAG_SIZE = 20
// The largest modulus that OpenSSL computes with.
const KEY_BITS = 16_384

export interface Presented {
  readonly cert: string
  readonly key: string
}

/** A certificate of no identity, in a bag of authorities that have the name of the controller's own. */
export function bagOfStranger(directory: string): Presented {
  const name = ownName(directory)
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const subject = { subject: name, publicKeyInfo: publicKey.export({ type: 'spki', format: 'der' }), ...dates() }
  const authority = {
    key: privateKey,
    certificate: issueCertificate({ purpose: 'authority', ...subject }, { key: privateKey }),
  }
  const leaf = issueCertificate({ purpose: 'client', ...subject }, authority)
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' }) as string
  return { cert: toCertificatePem(leaf) + bag(name), key }
}

/** The certificate of a device, in such a bag. */
export function bagBesideDevice(directory: string, { cert, key }: Presented): Presented {
  const [leaf, ...above] = cert.split(/(?<=-----END CERTIFICATE-----\n)/)
  return { cert: [leaf, bag(ownName(directory)), ...above].join(''), key }
}

/** Authorities of one name without private keys, because generating real ones would take minutes. */
function bag(name: Buffer): string {
  const { privateKey: key } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const authorities = Array.from({ length: BAG_SIZE }, () =>
    issueCertificate({ purpose: 'authority', subject: name, publicKeyInfo: hugeKey(), ...dates() }, { key }),
  )
  return authorities.map(toCertificatePem).join('')
}

function hugeKey(): Buffer {
  const modulus = randomBytes(KEY_BITS / 8)
  modulus[0] = 0xff
  modulus[modulus.length - 1] = 0xff
  const key = der.sequence(der.unsigned(modulus), der.integer(65_537))
  return der.sequence(der.sequence(der.oid('1.2.840.113549.1.1.1'), der.nothing()), der.bitString(key))
}

function dates() {
  return { notBefore: Date.now() - DAY_MS, notAfter: Date.now() + DAY_MS }
}

/** DER of the name of the authority that issues for clients. */
function ownName(directory: string): Buffer {
  const { raw } = new X509Certificate(readFileSync(join(getDataPaths(directory).pki, 'intermediate.crt')))
  const certificate = new DerReader(raw).sequence().sequence()
  // RFC 5280 §4.1: version, serial number, signature, issuer, validity, subject.
  for (let skipped = 0; skipped < 5; skipped++) certificate.next()
  return certificate.next().bytes
}
