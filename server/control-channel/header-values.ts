// The values of message headers: numbers are little-endian, text has no terminator, collections begin with their number of entries.

/** A header value that does not have the form of its kind. */
export class HeaderValueError extends Error {
  override readonly name = 'HeaderValueError'
}

// Limits that routers have for a collection, so that the values of one router can be sent on to another.
export const MAX_ENTRIES = 128
export const MAX_ENTRY_BYTES = 8_192

const EMPTY = Buffer.alloc(0)

export function encodeBool(value: boolean): Buffer {
  return Buffer.from([value ? 1 : 0])
}

export function encodeInt32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeInt32LE(value)
  return bytes
}

export function encodeUint64(value: bigint): Buffer {
  const bytes = Buffer.allocUnsafe(8)
  bytes.writeBigUInt64LE(value)
  return bytes
}

export function encodeText(value: string): Buffer {
  return Buffer.from(value)
}

function encodeUint32(value: number): Buffer {
  const bytes = Buffer.allocUnsafe(4)
  bytes.writeUInt32LE(value)
  return bytes
}

/** @throws HeaderValueError */
export function decodeUint32(bytes: Buffer): number {
  if (bytes.length !== 4) throw new HeaderValueError(`a number has ${bytes.length} bytes in place of 4`)
  return bytes.readUInt32LE()
}

/** Renders values by number; an empty map is a value of no bytes. @throws HeaderValueError if a router would not accept it */
export function encodeBytesByNumber(values: ReadonlyMap<number, Buffer>): Buffer {
  return encodeEntries([...values].map(([key, value]) => [encodeUint32(key), ...encodeSized(value)]))
}

/** @throws HeaderValueError */
export function decodeBytesByNumber(bytes: Buffer): Map<number, Buffer> {
  return new Map(decodeEntries(bytes, (reader) => [reader.readNumber(), reader.readSized()] as const))
}

/** Renders text by name; an empty map is a value of no bytes. @throws HeaderValueError if a router would not accept it */
export function encodeTextByName(values: Readonly<Record<string, string>>): Buffer {
  return encodeEntries(
    Object.entries(values).map(([key, value]) => [
      ...encodeSized(Buffer.from(key)),
      ...encodeSized(Buffer.from(value)),
    ]),
  )
}

/** @throws HeaderValueError */
export function decodeTexts(bytes: Buffer): string[] {
  return decodeEntries(bytes, (reader) => reader.readSized().toString())
}

/** @throws HeaderValueError */
export function decodeTextByName(bytes: Buffer): Record<string, string> {
  return Object.fromEntries(
    decodeEntries(bytes, (reader) => [reader.readSized().toString(), reader.readSized().toString()] as const),
  )
}

function encodeSized(bytes: Buffer): [length: Buffer, bytes: Buffer] {
  if (bytes.length > MAX_ENTRY_BYTES) throw new HeaderValueError(`an entry has more than ${MAX_ENTRY_BYTES} bytes`)
  return [encodeUint32(bytes.length), bytes]
}

function encodeEntries(entries: readonly (readonly Buffer[])[]): Buffer {
  if (entries.length === 0) return EMPTY
  if (entries.length > MAX_ENTRIES) throw new HeaderValueError(`there are more than ${MAX_ENTRIES} entries`)
  return Buffer.concat([encodeUint32(entries.length), ...entries.flat()])
}

function decodeEntries<T>(bytes: Buffer, decode: (reader: EntryReader) => T): T[] {
  if (bytes.length === 0) return []
  const reader = new EntryReader(bytes)
  const count = reader.readNumber()
  if (count > MAX_ENTRIES) throw new HeaderValueError(`there are more than ${MAX_ENTRIES} entries`)
  const entries = Array.from({ length: count }, () => decode(reader))
  reader.requireEnd()
  return entries
}

/** Reads the parts of a collection one after the other. */
class EntryReader {
  readonly #bytes: Buffer
  #offset = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  readNumber(): number {
    return decodeUint32(this.#read(4))
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
