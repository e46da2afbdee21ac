// Reads the names that a certificate gives to its holder: the common name, e-mail addresses and URIs.
import { isAscii, isUtf8 } from 'node:buffer'
import { type EncodedCertificate, readFacts } from './certificates.ts'
import { DerError, DerReader } from './der.ts'
import { EXTENSION_OIDS, readExtensions } from './extensions.ts'

/** The names of a certificate's holder, in the order of the certificate. */
export interface CertificateNames {
  /** The last one of the subject, if it has several: the most specific. */
  readonly commonName: string | undefined
  /** RFC 5280 §4.2.1.6: rfc822Name and uniformResourceIdentifier. */
  readonly emails: readonly string[]
  readonly uris: readonly string[]
}

const COMMON_NAME = '2.5.4.3'

const EMAIL_TAG = 0x81
const URI_TAG = 0x86

/** Converts the string types of X.501 to text; undefined if the content is malformed. */
const DECODERS: Readonly<Record<number, (content: Buffer) => string | undefined>> = {
  12: (content) => (isUtf8(content) ? content.toString('utf8') : undefined), // UTF8String
  18: decodeAscii, // NumericString
  19: decodeAscii, // PrintableString
  20: (content) => content.toString('latin1'), // TeletexString
  22: decodeAscii, // IA5String
  30: decodeBasicPlane, // BMPString
}

/**
 * Returns the names of a certificate. A name that is malformed, or that holds U+0000, is skipped: text that other
 * software would cut there could pass for another name.
 */
export function readCertificateNames(certificate: EncodedCertificate): CertificateNames {
  try {
    const { subject } = readFacts(certificate)
    return { commonName: readSubjectCommonName(subject), ...readAlternativeNames(certificate) }
  } catch (error) {
    if (error instanceof DerError) return { commonName: undefined, emails: [], uris: [] }
    throw error
  }
}

function readSubjectCommonName(subject: Buffer): string | undefined {
  let commonName: string | undefined
  const sets = new DerReader(subject).sequence()
  while (!sets.isAtEnd) {
    const attributes = sets.set()
    while (!attributes.isAtEnd) {
      const attribute = attributes.sequence()
      const isCommonName = attribute.oid() === COMMON_NAME
      const { tag, content } = attribute.next()
      if (isCommonName) commonName = withoutNull(DECODERS[tag]?.(content))
    }
  }
  return commonName
}

function readAlternativeNames(certificate: EncodedCertificate): { emails: string[]; uris: string[] } {
  const emails: string[] = []
  const uris: string[] = []
  const general = readExtensions(certificate).get(EXTENSION_OIDS.subjectAlternativeName)
  const names = general && new DerReader(general.value).sequence()
  while (names && !names.isAtEnd) {
    const { tag, content } = names.next()
    const text = tag === EMAIL_TAG || tag === URI_TAG ? withoutNull(decodeAscii(content)) : undefined
    if (text !== undefined) (tag === EMAIL_TAG ? emails : uris).push(text)
  }
  return { emails, uris }
}

function decodeAscii(content: Buffer): string | undefined {
  return isAscii(content) ? content.toString('latin1') : undefined
}

function decodeBasicPlane(content: Buffer): string | undefined {
  if (content.length % 2 !== 0) return undefined
  const text = Buffer.from(content).swap16().toString('utf16le')
  return text.isWellFormed() ? text : undefined
}

function withoutNull(text: string | undefined): string | undefined {
  return text?.includes('\0') ? undefined : text
}
