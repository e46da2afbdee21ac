// Names in certificates (X.501): whoever asks for a certificate writes its name, and others must be able to read it.
import { isUtf8 } from 'node:buffer'
import { DerError, DerReader, der, type Element } from './der.ts'

// Far more than anybody needs; a certificate is shown, sent and stored again and again.
const MAX_NAME_BYTES = 2048

const OBJECT_IDENTIFIER = 0x06

/** The kinds of text that a name may hold, each with what makes it readable. */
const texts: Readonly<Record<number, (content: Buffer) => boolean>> = {
  12: isUtf8, // UTF8String
  18: () => true, // NumericString
  19: () => true, // PrintableString
  20: () => true, // TeletexString
  22: () => true, // IA5String
  30: isBasicPlane, // BMPString
}

/** DER of a name with one organization and one common name. */
export function encodeDistinguishedName(organization: string, commonName: string): Buffer {
  const attribute = (oid: string, value: string) => der.set(der.sequence(der.oid(oid), der.utf8(value)))
  return der.sequence(attribute('2.5.4.10', organization), attribute('2.5.4.3', commonName))
}

/** @throws DerError for a name that other software could not read in a certificate */
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
  if (!isIdentifier(type) || texts[tag]?.(content) !== true || !attribute.isAtEnd) {
    throw new DerError('a part of a name is no text')
  }
}

/** X.690 §8.19: every number but its last byte has the high bit set, and none begins with an empty byte. */
function isIdentifier({ tag, content }: Element): boolean {
  if (tag !== OBJECT_IDENTIFIER || content.length === 0) return false
  const isPadded = content.some((byte, at) => byte === 0x80 && ((content[at - 1] ?? 0) & 0x80) === 0)
  return !isPadded && ((content.at(-1) as number) & 0x80) === 0
}

/** Two bytes a character, and none of the halves of which further planes are made. */
function isBasicPlane(content: Buffer): boolean {
  if (content.length % 2 !== 0) return false
  return content.every((byte, at) => at % 2 === 1 || byte < 0xd8 || byte > 0xdf)
}
