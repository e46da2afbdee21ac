// Reads the extensions of certificates (RFC 5280 §4.2).
import type { EncodedCertificate } from './certificates.ts'
import { DerError, DerReader } from './der.ts'

export const EXTENSION_OIDS = {
  subjectAlternativeName: '2.5.29.17',
} as const

export interface CertificateExtension {
  readonly isCritical: boolean
  /** The DER inside the OCTET STRING. */
  readonly value: Buffer
}

const BOOLEAN = 0x01
const OCTET_STRING = 0x04
const EXTENSIONS = 0xa3

/** Returns the extensions of a certificate by OID. @throws DerError if they cannot be read, or one occurs twice */
export function readExtensions(certificate: EncodedCertificate): ReadonlyMap<string, CertificateExtension> {
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
