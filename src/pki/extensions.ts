// Reads the extensions of certificates (RFC 5280 §4.2), and tells which of them forbid the use of a certificate.
import { DerError, DerReader } from './der.ts'
import type { EncodedCertificate } from './encoded-certificate.ts'

export const EXTENSION_OIDS = {
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAlternativeName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  nameConstraints: '2.5.29.30',
  certificatePolicies: '2.5.29.32',
  extendedKeyUsage: '2.5.29.37',
} as const

// RFC 5280 §4.2: a certificate with another critical extension must be rejected. Policies only describe: none is required.
const PROCESSED_EXTENSIONS: readonly string[] = [
  EXTENSION_OIDS.keyUsage,
  EXTENSION_OIDS.subjectAlternativeName,
  EXTENSION_OIDS.basicConstraints,
  EXTENSION_OIDS.certificatePolicies,
  EXTENSION_OIDS.extendedKeyUsage,
]

export interface CertificateExtension {
  readonly isCritical: boolean
  /** The DER inside the OCTET STRING. */
  readonly value: Buffer
}

/** By OID. */
export type CertificateExtensions = ReadonlyMap<string, CertificateExtension>

const BOOLEAN = 0x01
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const EXTENSIONS = 0xa3

/** Returns the extensions of a certificate. @throws DerError if they cannot be read, or one occurs twice */
export function readExtensions(certificate: EncodedCertificate): CertificateExtensions {
  const extensions = new Map<string, CertificateExtension>()
  const body = new DerReader(certificate.raw).sequence().sequence()
  while (!body.isAtEnd) {
    const { tag, content } = body.next()
    if (tag !== EXTENSIONS) continue
    const items = new DerReader(content).sequence()
    while (!items.isAtEnd) {
      const [oid, extension] = readExtension(items.sequence())
      if (extensions.has(oid)) throw new DerError('an extension occurs twice')
      extensions.set(oid, extension)
    }
  }
  return extensions
}

function readExtension(item: DerReader): [oid: string, extension: CertificateExtension] {
  const oid = item.oid()
  const isCritical = item.peekTag() === BOOLEAN && item.next().content[0] !== 0
  const { tag, content } = item.next()
  if (tag !== OCTET_STRING) throw new DerError('the value of an extension is not an OCTET STRING')
  return [oid, { isCritical, value: content }]
}

/** Returns why extensions forbid the use of a certificate, whatever it is used for; undefined if they do not. */
export function findExtensionObjection(extensions: CertificateExtensions): string | undefined {
  for (const [oid, { isCritical }] of extensions) {
    // Without judging the names below it, an authority would vouch for names that it may not vouch for.
    if (oid === EXTENSION_OIDS.nameConstraints)
      return 'it has name constraints, which this controller does not evaluate'
    if (isCritical && !PROCESSED_EXTENSIONS.includes(oid))
      return `it has the critical extension ${oid}, which this controller does not evaluate`
  }
  return undefined
}

/** Returns why extensions forbid that a client identifies itself by a certificate; undefined if they do not. @throws DerError */
export function findEndEntityObjection(extensions: CertificateExtensions): string | undefined {
  const constraints = extensions.get(EXTENSION_OIDS.basicConstraints)
  if (constraints && isAuthority(constraints)) return 'it is that of an authority'
  const usage = extensions.get(EXTENSION_OIDS.keyUsage)
  // RFC 5246 §7.4.6 and RFC 8446 §4.4.2.2: a TLS client proves its key by a signature.
  if (usage && !allowsDigitalSignature(usage)) return 'its key usage does not allow digital signatures'
  return undefined
}

function isAuthority({ value }: CertificateExtension): boolean {
  const members = new DerReader(value).sequence()
  return members.peekTag() === BOOLEAN && members.next().content[0] !== 0
}

/** RFC 5280 §4.2.1.3: the first bit, which follows the number of unused ones. */
function allowsDigitalSignature({ value }: CertificateExtension): boolean {
  const { tag, content } = new DerReader(value).next()
  if (tag !== BIT_STRING) throw new DerError('a key usage is not a BIT STRING')
  return ((content[1] ?? 0) & 0x80) !== 0
}

/** Returns how many authorities may follow below an authority; infinite if it is not limited. @throws DerError */
export function readPathLength(extensions: CertificateExtensions): number {
  const constraints = extensions.get(EXTENSION_OIDS.basicConstraints)
  if (!constraints) return Number.POSITIVE_INFINITY
  const members = new DerReader(constraints.value).sequence()
  if (members.peekTag() === BOOLEAN) members.next()
  if (members.isAtEnd) return Number.POSITIVE_INFINITY
  const { tag, content } = members.next()
  if (tag !== INTEGER || ((content[0] ?? 0x80) & 0x80) !== 0)
    throw new DerError('a path length is not a natural number')
  return content.reduce((value, byte) => value * 256 + byte, 0)
}
