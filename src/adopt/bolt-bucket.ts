// The buckets of a bbolt file: sorted keys, each with a value or with a bucket of its own.
//
// A network has millions of keys, and most of them are read once or not at all. So an entry is a place in its page; its key, its value
// and its bucket are made of it when they are asked for.
import { type BoltPage, damage, PAGE_HEADER_BYTES, type PageReader, type Place, readU64 } from './bolt-page.ts'

/** The beginning of a bucket: at a page, or with a page inside of the value that it is. */
type Start = { readonly page: number; readonly referrer: number } | { readonly inline: BoltPage }

/** The positions in an element of the numbers that say where its key is, and how long key and value are. */
interface ElementLayout {
  readonly position: number
  readonly keySize: number
  /** A branch has no values. */
  readonly valueSize: number | undefined
}

const LEAF: ElementLayout = { position: 4, keySize: 8, valueSize: 12 }
const BRANCH: ElementLayout = { position: 0, keySize: 4, valueSize: undefined }
const ELEMENT_BYTES = 16
const BUCKET_HEADER_BYTES = 16
const IS_BUCKET = 1
// Buckets in buckets, and branches above leaves; no real file comes near.
const MAX_DEPTH = 64
// A bucket that is read at once is in memory. The largest ones have a member for each service of a network.
const MAX_LISTED_BYTES = 64 * 2 ** 20
// An estimate of the memory of an entry besides its bytes.
const ENTRY_BYTES = 200
const MAX_LABEL_LENGTH = 80
const MAX_ASCII = 0x7f

export class BoltBucket {
  readonly #file: PageReader
  readonly #start: Start
  readonly #holder: BoltEntry | undefined
  readonly #depth: number

  /** @param holder the entry that is this bucket; none for the root */
  constructor(file: PageReader, start: Start, holder?: BoltEntry) {
    this.#depth = holder ? holder.owner.#depth + 1 : 0
    if (this.#depth > MAX_DEPTH) throw damage(`buckets are nested more than ${MAX_DEPTH} deep`)
    this.#file = file
    this.#start = start
    this.#holder = holder
  }

  /** The keys that lead to it, as text. */
  get path(): readonly string[] {
    return this.#holder?.path ?? []
  }

  /** The entries in the order of their keys. @throws SourceError where the file is damaged */
  *entries(): Generator<BoltEntry> {
    let last: BoltEntry | undefined
    for (const page of this.#leaves()) {
      const entries = this.#readLeaf(page, last)
      yield* entries
      last = entries.at(-1) ?? last
    }
  }

  /** All entries at once. @throws SourceError if it is larger than any that belongs in memory, or damaged */
  list(): readonly BoltEntry[] {
    let listed: BoltEntry[] = []
    let bytes = 0
    for (const page of this.#leaves()) {
      const entries = this.#readLeaf(page, listed.at(-1))
      for (const entry of entries) bytes += ENTRY_BYTES + entry.valueEnd - entry.keyStart
      if (bytes > MAX_LISTED_BYTES) throw damage(`${this} has more than a record can have, on page ${page.id}`)
      // Most buckets have one page.
      listed = listed.length === 0 ? entries : listed.concat(entries)
    }
    return listed
  }

  /** The bucket below a key, or undefined. */
  findBucket(key: string): BoltBucket | undefined {
    for (const entry of this.entries()) if (entry.compareKey(key) === 0) return entry.bucket
    return undefined
  }

  /** The bucket of an entry with a value that is one. */
  openInner(entry: BoltEntry, { id, offset, start, bytes }: BoltPage): BoltBucket {
    const { valueStart, valueEnd, element } = entry
    if (valueEnd - valueStart < BUCKET_HEADER_BYTES)
      throw damage(`page ${id} has a bucket without a beginning: ${entry.path.join('/')}`)
    const root = readU64(bytes, valueStart, entry)
    if (root !== 0) return new BoltBucket(this.#file, { page: root, referrer: offset + element - start }, entry)
    const inner = valueStart + BUCKET_HEADER_BYTES
    if (valueEnd - inner < PAGE_HEADER_BYTES)
      throw damage(`page ${id} has a bucket without content: ${entry.path.join('/')}`)
    const count = bytes.readUInt16LE(inner + 10)
    const inline = {
      id,
      kind: 'leaf',
      count,
      bytes,
      start: inner,
      end: valueEnd,
      offset: offset + inner - start,
    } as const
    return new BoltBucket(this.#file, { inline }, entry)
  }

  /** Its path, for messages. */
  toString(): string {
    const { path } = this
    return path.length === 0 ? 'the root' : path.join('/')
  }

  *#leaves(): Generator<BoltPage> {
    const start = this.#start
    if ('inline' in start) yield start.inline
    else yield* this.#walk(start.page, start.referrer, 0)
  }

  *#walk(id: number, referrer: number, depth: number): Generator<BoltPage> {
    if (depth > MAX_DEPTH) throw damage(`page ${id} is more than ${MAX_DEPTH} pages deep, in ${this}`)
    const page = this.#file.readPage(id, referrer, this)
    if (page.kind === 'leaf') {
      yield page
      return
    }
    for (const entry of this.#readElements(page, BRANCH)) {
      const child = readU64(page.bytes, entry.element + 8, entry)
      yield* this.#walk(child, page.offset + entry.element, depth + 1)
    }
  }

  /** @param last the entry before those of the page */
  #readLeaf(page: BoltPage, last: BoltEntry | undefined): BoltEntry[] {
    const entries = this.#readElements(page, LEAF)
    let previous = last
    for (const entry of entries) {
      if (page.bytes.readUInt32LE(entry.element) > IS_BUCKET)
        throw damage(`page ${page.id} has an element of an unknown kind, in ${this}`)
      if (previous && !isBefore(previous, entry))
        throw damage(`page ${page.id} has keys that are not in order, in ${this}`)
      previous = entry
    }
    return entries
  }

  /** Finds keys and values, which follow the elements in their order, so that none shares its bytes with another. */
  #readElements(page: BoltPage, { position, keySize, valueSize }: ElementLayout): BoltEntry[] {
    const { bytes, count, start, end } = page
    const entries: BoltEntry[] = []
    let free = start + PAGE_HEADER_BYTES + count * ELEMENT_BYTES
    for (let index = 0; index < count; index += 1) {
      const element = start + PAGE_HEADER_BYTES + index * ELEMENT_BYTES
      if (element + ELEMENT_BYTES > end) throw this.#outside(page.id, index)
      const keyStart = element + bytes.readUInt32LE(element + position)
      const valueStart = keyStart + bytes.readUInt32LE(element + keySize)
      const valueEnd = valueStart + (valueSize === undefined ? 0 : bytes.readUInt32LE(element + valueSize))
      if (keyStart < free || valueEnd > end) throw this.#outside(page.id, index)
      free = valueEnd
      entries.push(new BoltEntry(this, page, element, keyStart, valueStart, valueEnd))
    }
    return entries
  }

  #outside(page: number, index: number) {
    return damage(`element ${index} of page ${page} is outside of its place, in ${this}`)
  }
}

/** A key of a bucket, with its value or its bucket. */
export class BoltEntry implements Place {
  readonly owner: BoltBucket
  readonly #page: BoltPage
  /** The position in the bytes of its page of the element that describes it. */
  readonly element: number
  readonly keyStart: number
  /** The end of the key, too. */
  readonly valueStart: number
  readonly valueEnd: number

  constructor(
    owner: BoltBucket,
    page: BoltPage,
    element: number,
    keyStart: number,
    valueStart: number,
    valueEnd: number,
  ) {
    this.owner = owner
    this.#page = page
    this.element = element
    this.keyStart = keyStart
    this.valueStart = valueStart
    this.valueEnd = valueEnd
  }

  /** The page that it is on, for messages. */
  get page(): number {
    return this.#page.id
  }

  /** The bytes in which the positions are. */
  get bytes(): Buffer {
    return this.#page.bytes
  }

  get key(): Buffer {
    return this.bytes.subarray(this.keyStart, this.valueStart)
  }

  /** The key as text. */
  get name(): string {
    return this.bytes.toString('utf8', this.keyStart, this.valueStart)
  }

  get isBucket(): boolean {
    return this.bytes.readUInt32LE(this.element) === IS_BUCKET
  }

  /** Empty if the entry is a bucket. */
  get value(): Buffer {
    return this.bytes.subarray(this.valueStart, this.isBucket ? this.valueStart : this.valueEnd)
  }

  /** @throws SourceError if it is damaged */
  get bucket(): BoltBucket | undefined {
    return this.isBucket ? this.owner.openInner(this, this.#page) : undefined
  }

  /** The keys that lead to it, as text: keys of other kinds than text have bytes that are not. */
  get path(): readonly string[] {
    const label = this.key.toString('latin1').replace(/[^\x20-\x7e]/g, '?')
    return [...this.owner.path, label.slice(0, MAX_LABEL_LENGTH)]
  }

  /** Compares the key with a text, byte by byte: negative if the key comes first, 0 if they are equal. */
  compareKey(text: string): number {
    const { bytes, keyStart, valueStart } = this
    const length = Math.min(text.length, valueStart - keyStart)
    for (let at = 0; at < length; at += 1) {
      const code = text.charCodeAt(at)
      if (code > MAX_ASCII) return Buffer.compare(this.key, Buffer.from(text))
      const difference = (bytes[keyStart + at] as number) - code
      if (difference !== 0) return difference
    }
    return valueStart - keyStart - text.length
  }

  /** Its place, for messages. */
  toString(): string {
    return `${this.path.join('/')} on page ${this.page}`
  }
}

/** Whether a key comes before another one. */
function isBefore(first: BoltEntry, second: BoltEntry): boolean {
  const [a, b] = [first.bytes, second.bytes]
  const [aLength, bLength] = [first.valueStart - first.keyStart, second.valueStart - second.keyStart]
  const length = Math.min(aLength, bLength)
  for (let at = 0; at < length; at += 1) {
    const difference = (a[first.keyStart + at] as number) - (b[second.keyStart + at] as number)
    if (difference !== 0) return difference < 0
  }
  return aLength < bLength
}
