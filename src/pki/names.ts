// Names in certificates (X.501): a client chooses the subject of its request, and other software must be able to read it.
import { isUtf8 } from 'node:buffer'
import { DerError, DerReader, der, type Element } from './der.ts'

// Far more than a name needs. Certificates are shown, sent and stored often, so they must stay small.
const MAX_NAME_BYTES = 2048

const OBJECT_IDENTIFIER = 0x06
const COMMON_NAME = '2.5.4.3'
const UTF8_STRING = 0x0c
const BMP_STRING = 0x1e

/** The string types that a name may have, each with its test of well-formed content. */
const TEXT_TYPES: Readonly<Record<number, (content: Buffer) => boolean>> = {
  [UTF8_STRING]: isUtf8,
  18: () => true, // NumericString
  19: () => true, // PrintableString
  20: () => true, // TeletexString
  22: () => true, // IA5String
  [BMP_STRING]: isBasicPlane,
}

/** Returns the DER of a name with one organization and one common name. */
export function encodeDistinguishedName(organization: string, commonName: string): Buffer {
  const attribute = (oid: string, value: string) => der.set(der.sequence(der.oid(oid), der.utf8(value)))
  return der.sequence(attribute('2.5.4.10', organization), attribute(COMMON_NAME, commonName))
}

/** Returns the DER of a name with one common name only. */
export function encodeCommonName(commonName: string): Buffer {
  return der.sequence(der.set(der.sequence(der.oid(COMMON_NAME), der.utf8(commonName))))
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

// The short names of RFC 4514 §3, and those that Go's libraries add. Clients compare the text.
const ATTRIBUTE_NAMES: Readonly<Record<string, string>> = {
  [COMMON_NAME]: 'CN',
  '2.5.4.5': 'SERIALNUMBER',
  '2.5.4.6': 'C',
  '2.5.4.7': 'L',
  '2.5.4.8': 'ST',
  '2.5.4.9': 'STREET',
  '2.5.4.10': 'O',
  '2.5.4.11': 'OU',
  '2.5.4.17': 'POSTALCODE',
}

/** Returns the text of a name (RFC 4514): its parts in reverse order. @throws DerError unless `assertReadableName` accepts it */
export function formatName(bytes: Buffer): string {
  const parts: string[] = []
  const sets = new DerReader(bytes).sequence()
  while (!sets.isAtEnd) {
    const attributes = sets.set()
    const values: string[] = []
    while (!attributes.isAtEnd) values.push(formatAttribute(attributes.sequence()))
    parts.unshift(values.join('+'))
  }
  return parts.join(',')
}

/**
 * Returns the common name in a name; undefined unless it has exactly one, because readers of certificates differ in which of several counts.
 * @throws DerError unless `assertReadableName` accepts it
 */
export function readCommonName(bytes: Buffer): string | undefined {
  const commonNames: string[] = []
  const sets = new DerReader(bytes).sequence()
  while (!sets.isAtEnd) {
    const attributes = sets.set()
    while (!attributes.isAtEnd) {
      const attribute = attributes.sequence()
      if (attribute.oid() === COMMON_NAME) commonNames.push(decodeText(attribute.next()))
    }
  }
  return commonNames.length === 1 ? commonNames[0] : undefined
}

function formatAttribute(attribute: DerReader): string {
  const oid = attribute.oid()
  const value = attribute.next()
  const name = ATTRIBUTE_NAMES[oid]
  return name ? `${name}=${escapeValue(decodeText(value))}` : `${oid}=#${value.bytes.toString('hex')}`
}

function decodeText({ tag, content }: Element): string {
  if (tag === UTF8_STRING) return content.toString('utf8')
  // A copy, because swapping works in place.
  return tag === BMP_STRING ? Buffer.from(content).swap16().toString('utf16le') : content.toString('latin1')
}

/** RFC 4514 §2.4. */
function escapeValue(value: string): string {
  return value.replace(/[,+"\\<>;]|^[ #]| $/g, (character) => `\\${character}`)
}
