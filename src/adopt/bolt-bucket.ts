// The buckets of a bbolt file: sorted keys, each with a value or with a bucket of its own.
import { type BoltPage, damage, PAGE_HEADER_BYTES, type PageReader, readU64 } from './bolt-page.ts'

/** The beginning of a bucket: at a page, or with a page inside of the value that it is. */
type Start = { readonly page: number; readonly referrer: number } | { readonly inline: BoltPage }

export interface BoltEntry {
  readonly key: Buffer
  /** Empty if the entry is a bucket. */
  readonly value: Buffer
  readonly bucket: BoltBucket | undefined
  /** The page that it is on, for messages. */
  readonly page: number
}

const ELEMENT_BYTES = 16
const BUCKET_HEADER_BYTES = 16
const IS_BUCKET = 1
// Buckets in buckets, and branches above leaves; no real file comes near.
const MAX_DEPTH = 64
// A bucket that is read at once is in memory. The largest ones have a member for each service of a network.
const MAX_LISTED_BYTES = 64 * 2 ** 20
// An estimate of the memory of an entry besides its bytes.
const ENTRY_BYTES = 200

export class BoltBucket {
  readonly #file: PageReader
  readonly #start: Start
  /** The keys that lead to it, as text. */
  readonly path: readonly string[]

  constructor(file: PageReader, path: readonly string[], start: Start) {
    if (path.length > MAX_DEPTH) throw damage(`buckets are nested more than ${MAX_DEPTH} deep`)
    this.#file = file
    this.#start = start
    this.path = path
  }

  /** The entries in the order of their keys. @throws SourceError where the file is damaged */
  *entries(): Generator<BoltEntry> {
    let previous: Buffer | undefined
    for (const entry of this.#walk()) {
      if (previous && Buffer.compare(previous, entry.key) >= 0)
        throw damage(`page ${entry.page} has keys that are not in order, in ${this.describe()}`)
      previous = entry.key
      yield entry
    }
  }

  /** All entries at once. @throws SourceError if it is larger than any that belongs in memory, or damaged */
  list(): BoltEntry[] {
    const entries: BoltEntry[] = []
    let bytes = 0
    for (const entry of this.entries()) {
      bytes += ENTRY_BYTES + entry.key.length + entry.value.length
      if (bytes > MAX_LISTED_BYTES)
        throw damage(`${this.describe()} has more than a record can have, on page ${entry.page}`)
      entries.push(entry)
    }
    return entries
  }

  /** The bucket below a key, or undefined. */
  findBucket(key: string): BoltBucket | undefined {
    for (const entry of this.entries()) if (entry.bucket && entry.key.equals(Buffer.from(key))) return entry.bucket
    return undefined
  }

  /** Its path, for messages. */
  describe(): string {
    return this.path.length === 0 ? 'the root' : this.path.join('/')
  }

  #walk(): Generator<BoltEntry> {
    const start = this.#start
    return 'inline' in start ? this.#walkLeaf(start.inline) : this.#walkPage(start.page, start.referrer, 0)
  }

  *#walkPage(id: number, referrer: number, depth: number): Generator<BoltEntry> {
    if (depth > MAX_DEPTH) throw damage(`page ${id} is more than ${MAX_DEPTH} pages deep, in ${this.describe()}`)
    const page = this.#file.readPage(id, referrer, this.describe())
    if (page.kind === 'leaf') {
      yield* this.#walkLeaf(page)
      return
    }
    for (const { element } of this.#readElements(page, 0, 4, undefined)) {
      const child = readU64(page.bytes, element + 8, `page ${id}, in ${this.describe()},`)
      yield* this.#walkPage(child, page.offset + element, depth + 1)
    }
  }

  *#walkLeaf(page: BoltPage): Generator<BoltEntry> {
    for (const { element, key, value } of this.#readElements(page, 4, 8, 12)) {
      const flags = page.bytes.readUInt32LE(element)
      if (flags > IS_BUCKET) throw damage(`page ${page.id} has an element of an unknown kind, in ${this.describe()}`)
      if (flags === IS_BUCKET) {
        const bucket = this.#openBucket(page, element, key, value)
        yield { key, value: value.subarray(0, 0), bucket, page: page.id }
      } else {
        yield { key, value, bucket: undefined, page: page.id }
      }
    }
  }

  /**
   * Reads keys and values, which follow the elements in their order, so that none shares its bytes with another.
   * @param position where in an element the position of its key is; `keySize` and `valueSize` likewise
   */
  *#readElements(page: BoltPage, position: number, keySize: number, valueSize: number | undefined) {
    const { bytes, count, id } = page
    let end = PAGE_HEADER_BYTES + count * ELEMENT_BYTES
    for (let index = 0; index < count; index += 1) {
      const element = PAGE_HEADER_BYTES + index * ELEMENT_BYTES
      if (element + ELEMENT_BYTES > bytes.length) throw this.#outside(id, index)
      const begin = element + bytes.readUInt32LE(element + position)
      const keyEnd = begin + bytes.readUInt32LE(element + keySize)
      const valueEnd = keyEnd + (valueSize === undefined ? 0 : bytes.readUInt32LE(element + valueSize))
      if (begin < end || valueEnd > bytes.length) throw this.#outside(id, index)
      end = valueEnd
      yield { element, key: bytes.subarray(begin, keyEnd), value: bytes.subarray(keyEnd, valueEnd) }
    }
  }

  #outside(page: number, index: number) {
    return damage(`element ${index} of page ${page} is outside of its place, in ${this.describe()}`)
  }

  #openBucket(page: BoltPage, element: number, key: Buffer, value: Buffer): BoltBucket {
    const path = [...this.path, toLabel(key)]
    if (value.length < BUCKET_HEADER_BYTES)
      throw damage(`page ${page.id} has a bucket without a beginning: ${path.join('/')}`)
    const root = readU64(value, 0, `page ${page.id}, in ${path.join('/')},`)
    if (root !== 0) return new BoltBucket(this.#file, path, { page: root, referrer: page.offset + element })
    const bytes = value.subarray(BUCKET_HEADER_BYTES)
    if (bytes.length < PAGE_HEADER_BYTES)
      throw damage(`page ${page.id} has a bucket without content: ${path.join('/')}`)
    const offset = page.offset + (bytes.byteOffset - page.bytes.byteOffset)
    const inline = { id: page.id, kind: 'leaf', count: bytes.readUInt16LE(10), bytes, offset } as const
    return new BoltBucket(this.#file, path, { inline })
  }
}

/** A key as text for messages: keys of other kinds than text have bytes that are not. */
function toLabel(key: Buffer): string {
  return key
    .toString('latin1')
    .replace(/[^\x20-\x7e]/g, '?')
    .slice(0, 80)
}
