// Reads files of bbolt, the key-value store of OpenZiti's controller, without changing them.
//
// A file is damaged or hostile until its checks have passed: every page has one referrer, and every element its own bytes, so
// that no walk visits more bytes than the file has. Pages are read when a walk reaches them, because a file can be larger than
// the memory.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { BoltBucket } from './bolt-bucket.ts'
import {
  type BoltPage,
  damage,
  PAGE_HEADER_BYTES,
  type PageReader,
  type Place,
  readKind,
  readU64,
} from './bolt-page.ts'
import { SourceError } from './source-error.ts'

const META_BYTES = 64
const MAGIC = 0xed0cdaed
const VERSION = 2
const MIN_PAGE_BYTES = 1024
const MAX_PAGE_BYTES = MIN_PAGE_BYTES << 14
// A value runs over as many pages as it needs, which are read at once.
const MAX_RUN_BYTES = 64 * 2 ** 20
/** How much is read at once of pages that follow one another. */
const READ_AHEAD_BYTES = 64 * 1024

/** The part of a file that says where everything else is. */
interface Meta {
  readonly pageBytes: number
  readonly rootPage: number
  /** Pages from here on are not in use. */
  readonly pageCount: number
  readonly transactionId: bigint
}

/** An open file. */
export class BoltFile implements PageReader {
  readonly #file: number
  readonly #meta: Meta
  /** By page: the position in the file of the element that refers to it. */
  readonly #referrers = new Map<number, number>()
  #bytesRead = 0
  /** The bytes that were read last, and their position in the file. */
  #window: { readonly bytes: Buffer; readonly start: number } = { bytes: Buffer.alloc(0), start: 0 }
  /** The end of the last page in the file. */
  #lastEnd = 0

  private constructor(file: number) {
    this.#file = file
    this.#meta = readNewestMeta(file)
    const { pageBytes, pageCount } = this.#meta
    const { size } = fstatSync(file)
    if (size < pageCount * pageBytes) throw damage(`it has ${size} of ${pageCount * pageBytes} bytes`)
  }

  /** Opens a database. @throws SourceError if it is none */
  static open(path: string): BoltFile {
    const file = openSync(path, 'r')
    try {
      return new BoltFile(file)
    } catch (error) {
      closeSync(file)
      throw error
    }
  }

  /** How many bytes have been read of pages, each time that one was. */
  get bytesRead(): number {
    return this.#bytesRead
  }

  /** Grows with each change of the database. */
  get transactionId(): bigint {
    return this.#meta.transactionId
  }

  /** The bucket that holds all others. */
  get root(): BoltBucket {
    return new BoltBucket(this, { page: this.#meta.rootPage, referrer: 0 })
  }

  close(): void {
    closeSync(this.#file)
  }

  readPage(id: number, referrer: number, place: Place): BoltPage {
    const { pageBytes } = this.#meta
    const offset = id * pageBytes
    this.#claim(id, referrer, place)
    const first = this.#read(offset, pageBytes)
    const kind = readKind(first, id, place)
    const overflow = first.readUInt32LE(12)
    const runBytes = pageBytes * (overflow + 1)
    if (overflow > 0 && runBytes > MAX_RUN_BYTES)
      throw damage(`page ${id} runs over ${runBytes} bytes, more than any value has, in ${place}`)
    for (let next = id + 1; next <= id + overflow; next += 1) this.#claim(next, referrer, place)
    const bytes = overflow === 0 ? first : this.#read(offset, runBytes)
    this.#bytesRead += bytes.length
    this.#lastEnd = offset + bytes.length
    return { id, kind, count: first.readUInt16LE(10), bytes, start: 0, end: bytes.length, offset }
  }

  /** Returns bytes of the file; fewer if it ends. */
  #read(offset: number, length: number): Buffer {
    const { bytes, start } = this.#window
    if (offset < start || offset + length > start + bytes.length) {
      const isAfterLast = offset === this.#lastEnd
      const more = readBytes(this.#file, offset, isAfterLast ? Math.max(length, READ_AHEAD_BYTES) : length)
      this.#window = { bytes: more, start: offset }
      return more.subarray(0, length)
    }
    return bytes.subarray(offset - start, offset - start + length)
  }

  #claim(id: number, referrer: number, place: Place): void {
    // The first two pages are the metas.
    if (id < 2 || id >= this.#meta.pageCount)
      throw damage(`${place} refers to page ${id}, which the file does not have`)
    const first = this.#referrers.get(id)
    if (first !== undefined && first !== referrer)
      throw damage(`two things refer to page ${id}, one of them in ${place}`)
    this.#referrers.set(id, referrer)
  }
}

/** Returns bytes of a file; fewer if it ends. */
function readBytes(file: number, offset: number, length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  return bytes.subarray(0, readSync(file, bytes, 0, length, offset))
}

/** Two pages hold metas in turn, so that one is valid whatever interrupted a write. */
function readNewestMeta(file: number): Meta {
  const first = readMeta(file, 0)
  if (first) return pickNewer(first, readMeta(file, first.pageBytes))
  for (let offset = MIN_PAGE_BYTES; offset <= MAX_PAGE_BYTES; offset *= 2) {
    const second = readMeta(file, offset)
    if (second?.pageBytes === offset) return second
  }
  const remedy = "state the controller's database: the file that db: names, or ctrl-ha.db below cluster.dataDir"
  throw new SourceError(
    'NOT_A_DATABASE',
    "it is not a database of OpenZiti's controller, or its beginning is damaged",
    remedy,
  )
}

function pickNewer(first: Meta, second: Meta | undefined): Meta {
  return second && second.transactionId > first.transactionId ? second : first
}

function readMeta(file: number, offset: number): Meta | undefined {
  const page = readBytes(file, offset, PAGE_HEADER_BYTES + META_BYTES)
  if (page.length < PAGE_HEADER_BYTES + META_BYTES) return undefined
  const meta = page.subarray(PAGE_HEADER_BYTES)
  if (meta.readUInt32LE(0) !== MAGIC || meta.readUInt32LE(4) !== VERSION) return undefined
  if (meta.readBigUInt64LE(56) !== computeChecksum(meta.subarray(0, 56))) return undefined
  const pageBytes = meta.readUInt32LE(8)
  const isPageSize = pageBytes >= MIN_PAGE_BYTES && pageBytes <= MAX_PAGE_BYTES && (pageBytes & (pageBytes - 1)) === 0
  if (!isPageSize) return undefined
  return {
    pageBytes,
    rootPage: readU64(meta, 16, 'its beginning'),
    pageCount: readU64(meta, 40, 'its beginning'),
    transactionId: meta.readBigUInt64LE(48),
  }
}

/** FNV-1a with 64 bits. */
export function computeChecksum(bytes: Buffer): bigint {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash
}
