// Names in certificates (X.501): a client chooses the subject of its request, and other software must be able to read it.
import { isUtf8 } from 'node:buffer'
import { DerError, DerReader, der, type Element } from './der.ts'

// Far more than a name needs. Certificates are shown, sent and stored often, so they must stay small.
const MAX_NAME_BYTES = 2048

const OBJECT_IDENTIFIER = 0x06

/** The string types that a name may have, each with its test of well-formed content. */
const TEXT_TYPES: Readonly<Record<number, (content: Buffer) => boolean>> = {
  12: isUtf8, // UTF8String
  18: () => true, // NumericString
  19: () => true, // PrintableString
  20: () => true, // TeletexString
  22: () => true, // IA5String
  30: isBasicPlane, // BMPString
}

/** Returns the DER of a name with one organization and one common name. */
export function encodeDistinguishedName(organization: string, commonName: string): Buffer {
  const attribute = (oid: string, value: string) => der.set(der.sequence(der.oid(oid), der.utf8(value)))
  return der.sequence(attribute('2.5.4.10', organization), attribute('2.5.4.3', commonName))
}

/** @throws DerError if other software could not read the name in a certificate */
export function assertReadableName(bytes: Buffer): void {
  if (bytes.length > MAX_NAME_BYTES) throw new DerError(`a name is longer than ${MAX_NAME_BYTES} bytes`)
  const sets = new DerReader(bytes).sequence()
  while (!sets.isAtEnd) {
    const attributes = sets.set()
    if (attributes.isAtEnd) throw new DerError('a part of a name is empty')
    while (!attributes.isAtEnd) assertReadableAttribute(attributes.sequence())
  }
}

function assertReadableAttribute(attribute: DerReader): void {
  const type = attribute.next()
  const { tag, content } = attribute.next()
  if (!isIdentifier(type) || TEXT_TYPES[tag]?.(content) !== true || !attribute.isAtEnd) {
    throw new DerError('a part of a name is not text')
  }
}

/** X.690 §8.19: all bytes of a number except the last have the high bit set, and no number has leading padding. */
function isIdentifier({ tag, content }: Element): boolean {
  if (tag !== OBJECT_IDENTIFIER || content.length === 0) return false
  const isPadded = content.some((byte, at) => byte === 0x80 && ((content[at - 1] ?? 0) & 0x80) === 0)
  return !isPadded && ((content.at(-1) as number) & 0x80) === 0
}

/** Whether the content has two bytes a character and no surrogates. */
function isBasicPlane(content: Buffer): boolean {
  if (content.length % 2 !== 0) return false
  return content.every((byte, at) => at % 2 === 1 || byte < 0xd8 || byte > 0xdf)
}
