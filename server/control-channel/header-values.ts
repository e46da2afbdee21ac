// The values of message headers: numbers, text, and small collections, each with one exact form.

/** A header value that does not have the form of its kind. */
export class HeaderValueError extends Error {
  override readonly name = 'HeaderValueError'
}

// What routers accept of a collection, so that what one router sends can be sent on to another.
const MAX_ENTRIES = 128
const MAX_ENTRY_BYTES = 8_192

const utf8 = new TextDecoder('utf-8', { fatal: true })

/** How a kind of value is written and read. `decode` throws HeaderValueError if the bytes have another form. */
export interface HeaderCodec<T> {
  encode(value: T): Buffer
  decode(bytes: Buffer): T
}

export const bool: HeaderCodec<boolean> = {
  encode: (value) => Buffer.from([value ? 1 : 0]),
  decode: (bytes) => requireLength(bytes, 1)[0] !== 0,
}

export const byte: HeaderCodec<number> = {
  encode: (value) => Buffer.from([value]),
  decode: (bytes) => requireLength(bytes, 1)[0]!,
}

export const uint32: HeaderCodec<number> = {
  encode(value) {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeUInt32LE(value)
    return bytes
  },
  decode: (bytes) => requireLength(bytes, 4).readUInt32LE(),
}

export const int32: HeaderCodec<number> = {
  encode(value) {
    const bytes = Buffer.allocUnsafe(4)
    bytes.writeInt32LE(value)
    return bytes
  },
  decode: (bytes) => requireLength(bytes, 4).readInt32LE(),
}

export const uint64: HeaderCodec<bigint> = {
  encode(value) {
    const bytes = Buffer.allocUnsafe(8)
    bytes.writeBigUInt64LE(value)
    return bytes
  },
  decode: (bytes) => requireLength(bytes, 8).readBigUInt64LE(),
}

export const text: HeaderCodec<string> = {
  encode: (value) => Buffer.from(value),
  decode: decodeText,
}

/** An empty collection is a value of no bytes. */
export const textList: HeaderCodec<readonly string[]> = {
  encode: (values) => encodeCollection(values, (value) => [encodeSized(Buffer.from(value))]),
  decode: (bytes) => decodeCollection(bytes, (reader) => decodeText(reader.readSized())),
}

export const bytesByNumber: HeaderCodec<ReadonlyMap<number, Buffer>> = {
  encode: (values) => encodeCollection([...values], ([key, value]) => [uint32.encode(key), encodeSized(value)]),
  decode: (bytes) => new Map(decodeCollection(bytes, (reader) => [reader.readNumber(), reader.readSized()] as const)),
}

export const textByName: HeaderCodec<ReadonlyMap<string, string>> = {
  encode: (values) =>
    encodeCollection([...values], ([key, value]) => [encodeSized(Buffer.from(key)), encodeSized(Buffer.from(value))]),
  decode: (bytes) =>
    new Map(
      decodeCollection(bytes, (reader) => [decodeText(reader.readSized()), decodeText(reader.readSized())] as const),
    ),
}

function requireLength(bytes: Buffer, length: number): Buffer {
  if (bytes.length !== length) throw new HeaderValueError(`the value has ${bytes.length} bytes in place of ${length}`)
  return bytes
}

function decodeText(bytes: Buffer): string {
  try {
    return utf8.decode(bytes)
  } catch (cause) {
    throw new HeaderValueError('the text is not UTF-8', { cause })
  }
}

function encodeSized(bytes: Buffer): Buffer {
  return Buffer.concat([uint32.encode(bytes.length), bytes])
}

/** @throws HeaderValueError if a router would not accept so many entries */
function encodeCollection<T>(values: readonly T[], encode: (value: T) => readonly Buffer[]): Buffer {
  if (values.length === 0) return Buffer.alloc(0)
  if (values.length > MAX_ENTRIES) throw new HeaderValueError(`there are more than ${MAX_ENTRIES} entries`)
  return Buffer.concat([uint32.encode(values.length), ...values.flatMap(encode)])
}

function decodeCollection<T>(bytes: Buffer, decode: (reader: EntryReader) => T): T[] {
  if (bytes.length === 0) return []
  const reader = new EntryReader(bytes)
  const count = reader.readNumber()
  if (count > MAX_ENTRIES) throw new HeaderValueError(`there are more than ${MAX_ENTRIES} entries`)
  const values = Array.from({ length: count }, () => decode(reader))
  reader.requireEnd()
  return values
}

/** Reads the parts of a collection one after the other. */
class EntryReader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  readNumber(): number {
    return this.#read(4).readUInt32LE()
  }

  readSized(): Buffer {
    const length = this.readNumber()
    if (length > MAX_ENTRY_BYTES) throw new HeaderValueError(`an entry has more than ${MAX_ENTRY_BYTES} bytes`)
    return this.#read(length)
  }

  requireEnd(): void {
    if (this.#offset !== this.#bytes.length) throw new HeaderValueError('bytes follow the last entry')
  }

  #read(length: number): Buffer {
    const end = this.#offset + length
    if (end > this.#bytes.length) throw new HeaderValueError('an entry is cut short')
    const bytes = this.#bytes.subarray(this.#offset, end)
    this.#offset = end
    return bytes
  }
}
