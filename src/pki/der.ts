// Writes and reads DER (ITU-T X.690), as far as certificates need it.
//
// It is ours because it is ten times as fast as the libraries for it; the tests check it with one of them. Only the name
// in an issued certificate comes from a client, and it is validated before it is copied (`names.ts`), so that issued
// certificates need not be parsed again.
import { type Instant, MAX_INSTANT, toInstant, toIsoTime } from '../foundation/clock.ts'

const BOOLEAN = 0x01
const INTEGER = 0x02
const BIT_STRING = 0x03
const OCTET_STRING = 0x04
const NULL = 0x05
const OBJECT_IDENTIFIER = 0x06
const UTF8_STRING = 0x0c
const UTC_TIME = 0x17
const GENERALIZED_TIME = 0x18
const SEQUENCE = 0x30
const SET = 0x31

function encodeElement(tag: number, ...contents: readonly Uint8Array[]): Buffer {
  let length = 0
  for (const content of contents) length += content.length
  const lengthBytes = encodeLength(length)
  let at = 1 + lengthBytes.length
  const bytes = Buffer.allocUnsafe(at + length)
  bytes[0] = tag
  bytes.set(lengthBytes, 1)
  for (const content of contents) {
    bytes.set(content, at)
    at += content.length
  }
  return bytes
}

// X.690 §8.1.3: one byte below 128, else the number of length bytes with the high bit set, then the length.
function encodeLength(length: number): number[] {
  if (length < 0x80) return [length]
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return [0x80 | bytes.length, ...bytes]
}

export const der = {
  sequence: (...items: readonly Uint8Array[]) => encodeElement(SEQUENCE, ...items),
  set: (...items: readonly Uint8Array[]) => encodeElement(SET, ...items),
  boolean: (value: boolean) => encodeElement(BOOLEAN, Buffer.from([value ? 0xff : 0])),
  /** An unsigned integer from its big-endian bytes. */
  unsigned(bytes: Uint8Array): Buffer {
    let start = 0
    while (start < bytes.length - 1 && bytes[start] === 0) start += 1
    const trimmed = bytes.subarray(start)
    // A set high bit would make it negative.
    return (trimmed[0] ?? 0) & 0x80
      ? encodeElement(INTEGER, Buffer.from([0]), trimmed)
      : encodeElement(INTEGER, trimmed)
  },
  integer: (value: number) => der.unsigned(Buffer.from(toBigEndian(value))),
  bitString: (bytes: Uint8Array, unusedBits = 0) => encodeElement(BIT_STRING, Buffer.from([unusedBits]), bytes),
  octetString: (bytes: Uint8Array) => encodeElement(OCTET_STRING, bytes),
  nothing: () => encodeElement(NULL),
  utf8: (text: string) => encodeElement(UTF8_STRING, Buffer.from(text)),
  oid: (dotted: string) => encodeElement(OBJECT_IDENTIFIER, Buffer.from(encodeOid(dotted))),
  /** RFC 5280 §4.1.2.5: UTCTime through 2049, GeneralizedTime from 2050 on. */
  time(instant: Instant): Buffer {
    const digits = toIsoTime(instant).replace(/[-:T]|\.\d+/g, '')
    const isLate = Number(digits.slice(0, 4)) >= 2050
    return encodeElement(isLate ? GENERALIZED_TIME : UTC_TIME, Buffer.from(isLate ? digits : digits.slice(2)))
  },
  /** A context-specific tag around whole elements. */
  explicit: (number: number, ...items: readonly Uint8Array[]) => encodeElement(0xa0 | number, ...items),
  /** A context-specific tag in place of a primitive element's own. */
  implicit: (number: number, bytes: Uint8Array) => encodeElement(0x80 | number, bytes),
}

function toBigEndian(value: number): number[] {
  const bytes: number[] = []
  for (let rest = value; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return bytes.length > 0 ? bytes : [0]
}

function encodeOid(dotted: string): number[] {
  const [first = 0, second = 0, ...rest] = dotted.split('.').map(Number)
  return [first * 40 + second, ...rest.flatMap(encodeBase128)]
}

function encodeBase128(value: number): number[] {
  const bytes = [value & 0x7f]
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) bytes.unshift((rest & 0x7f) | 0x80)
  return bytes
}

/** A parsed element. Most of them are only skipped: their bytes are made when they are asked for. */
export class Element {
  readonly tag: number
  readonly #source: Buffer
  readonly #start: number
  readonly contentStart: number
  readonly end: number

  constructor(tag: number, source: Buffer, start: number, contentStart: number, end: number) {
    this.tag = tag
    this.#source = source
    this.#start = start
    this.contentStart = contentStart
    this.end = end
  }

  get content(): Buffer {
    return this.#source.subarray(this.contentStart, this.end)
  }

  /** Its bytes with those of tag and length. */
  get bytes(): Buffer {
    return this.#source.subarray(this.#start, this.end)
  }
}

/** The input is not DER, or does not have the expected structure. */
export class DerError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'DerError'
  }
}

/** Reads elements in sequence. */
export class DerReader {
  readonly #bytes: Buffer
  readonly #end: number
  #offset: number

  /** Reads the bytes from `start` to `end`. */
  constructor(bytes: Buffer, start = 0, end = bytes.length) {
    this.#bytes = bytes
    this.#offset = start
    this.#end = end
  }

  get isAtEnd(): boolean {
    return this.#offset >= this.#end
  }

  peekTag(): number | undefined {
    return this.isAtEnd ? undefined : this.#bytes[this.#offset]
  }

  next(): Element {
    const start = this.#offset
    const tag = this.#byte()
    const length = this.#length()
    const contentStart = this.#offset
    const end = contentStart + length
    if (end > this.#end) throw new DerError('an element is longer than the input')
    this.#offset = end
    return new Element(tag, this.#bytes, start, contentStart, end)
  }

  /** Returns a reader of the next element, which must be a SEQUENCE. */
  sequence(): DerReader {
    const element = this.next()
    if (element.tag !== SEQUENCE) throw new DerError('a SEQUENCE was expected')
    return new DerReader(this.#bytes, element.contentStart, element.end)
  }

  /** Returns a reader of the next element, which must be a SET. */
  set(): DerReader {
    const element = this.next()
    if (element.tag !== SET) throw new DerError('a SET was expected')
    return new DerReader(this.#bytes, element.contentStart, element.end)
  }

  /** The next element, which must be an OBJECT IDENTIFIER, in dotted form. */
  oid(): string {
    const { tag, content } = this.next()
    if (tag !== OBJECT_IDENTIFIER || content.length === 0) throw new DerError('an OID was expected')
    const [first = 0, ...rest] = content
    const parts = [Math.min(2, Math.floor(first / 40))]
    parts.push(first - (parts[0] as number) * 40)
    let value = 0
    for (const byte of rest) {
      value = value * 128 + (byte & 0x7f)
      if (byte & 0x80) continue
      parts.push(value)
      value = 0
    }
    return parts.join('.')
  }

  /** The next element, which must be a UTCTime or a GeneralizedTime in the form of RFC 5280 §4.1.2.5. */
  time(): Instant {
    const { tag, content } = this.next()
    const text = content.toString('latin1')
    // RFC 5280 §4.1.2.5.1: two digits of a year are those of 1950 to 2049.
    const digits = tag === UTC_TIME ? `${text < '50' ? '20' : '19'}${text}` : text
    const number = (start: number, end: number) => Number(digits.slice(start, end))
    const instant = /^\d{14}Z$/.test(digits)
      ? toInstant(number(0, 4), number(4, 6), number(6, 8), number(8, 10), number(10, 12), number(12, 14))
      : undefined
    const isTime = tag === UTC_TIME || tag === GENERALIZED_TIME
    // A leap second may be the first one of the year 10000.
    if (!isTime || instant === undefined || instant > MAX_INSTANT) throw new DerError('a time was expected')
    return instant
  }

  /** The next element, which must be a BIT STRING of whole bytes. */
  bits(): Buffer {
    const { tag, content } = this.next()
    if (tag !== BIT_STRING || content[0] !== 0) throw new DerError('a BIT STRING was expected')
    return content.subarray(1)
  }

  #byte(): number {
    const byte = this.isAtEnd ? undefined : this.#bytes[this.#offset]
    if (byte === undefined) throw new DerError('the input ends too early')
    this.#offset += 1
    return byte
  }

  #length(): number {
    const first = this.#byte()
    if (first < 0x80) return first
    const count = first & 0x7f
    if (count === 0 || count > 4) throw new DerError('a length has a form that DER forbids')
    let length = 0
    for (let at = 0; at < count; at++) length = length * 256 + this.#byte()
    return length
  }
}
