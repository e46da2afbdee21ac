// Reads files of bbolt, the key-value store of OpenZiti's controller, without changing them.
//
// A file is damaged or hostile until its checks have passed: every page has one referrer, and every element its own bytes, so
// that no walk visits more bytes than the file has. Pages are read when a walk reaches them, because a file can be larger than
// the memory.
import { closeSync, fstatSync, openSync, readFileSync, readSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { BoltBucket } from './bolt-bucket.ts'
import { type BoltPage, damage, PAGE_HEADER_BYTES, type PageReader, readKind, readU64 } from './bolt-page.ts'
import { SourceError } from './source-error.ts'

const META_BYTES = 64
const MAGIC = 0xed0cdaed
const VERSION = 2
const MIN_PAGE_BYTES = 1024
const MAX_PAGE_BYTES = MIN_PAGE_BYTES << 14
// A compressed file is unpacked in memory.
const MAX_UNPACKED_BYTES = 2 ** 30

/** The part of a file that says where everything else is. */
interface Meta {
  readonly pageBytes: number
  readonly rootPage: number
  /** Pages from here on are not in use. */
  readonly pageCount: number
  readonly transactionId: bigint
}

/** Reads bytes of a file; fewer if it ends. */
interface Bytes {
  readonly size: number
  read(offset: number, length: number): Buffer
  close(): void
}

/** An open file. */
export class BoltFile implements PageReader {
  readonly #bytes: Bytes
  readonly #meta: Meta
  /** By page: the position in the file of the element that refers to it. */
  readonly #referrers = new Map<number, number>()

  private constructor(bytes: Bytes) {
    this.#bytes = bytes
    this.#meta = readNewestMeta(bytes)
    const { pageBytes, pageCount } = this.#meta
    if (bytes.size < pageCount * pageBytes) throw damage(`it has ${bytes.size} of ${pageCount * pageBytes} bytes`)
  }

  /** Opens a database, or a compressed one. @throws SourceError if it is neither */
  static open(path: string): BoltFile {
    const bytes = openBytes(path)
    try {
      return new BoltFile(bytes)
    } catch (error) {
      bytes.close()
      throw error
    }
  }

  /** Grows with each change of the database. */
  get transactionId(): bigint {
    return this.#meta.transactionId
  }

  /** The bucket that holds all others. */
  get root(): BoltBucket {
    return new BoltBucket(this, [], { page: this.#meta.rootPage, referrer: 0 })
  }

  close(): void {
    this.#bytes.close()
  }

  readPage(id: number, referrer: number): BoltPage {
    const { pageBytes } = this.#meta
    const offset = id * pageBytes
    this.#claim(id, referrer)
    const first = this.#bytes.read(offset, pageBytes)
    const kind = readKind(first, id)
    const overflow = first.readUInt32LE(12)
    for (let next = id + 1; next <= id + overflow; next += 1) this.#claim(next, referrer)
    const bytes = overflow === 0 ? first : this.#bytes.read(offset, pageBytes * (overflow + 1))
    return { id, kind, count: first.readUInt16LE(10), bytes, offset }
  }

  #claim(id: number, referrer: number): void {
    // The first two pages are the metas.
    if (id < 2 || id >= this.#meta.pageCount)
      throw damage(`something refers to page ${id}, which the file does not have`)
    const first = this.#referrers.get(id)
    if (first !== undefined && first !== referrer) throw damage(`two things refer to page ${id}`)
    this.#referrers.set(id, referrer)
  }
}

function openBytes(path: string): Bytes {
  const file = openSync(path, 'r')
  const start = Buffer.alloc(2)
  const length = readSync(file, start, 0, 2, 0)
  if (length === 2 && start[0] === 0x1f && start[1] === 0x8b) {
    closeSync(file)
    return unpack(path)
  }
  return {
    size: fstatSync(file).size,
    read(offset, length) {
      const bytes = Buffer.allocUnsafe(length)
      return bytes.subarray(0, readSync(file, bytes, 0, length, offset))
    },
    close: () => closeSync(file),
  }
}

function unpack(path: string): Bytes {
  const content = unpackContent(path)
  return {
    size: content.length,
    read: (offset, length) => content.subarray(offset, offset + length),
    close() {},
  }
}

function unpackContent(path: string): Buffer {
  try {
    return gunzipSync(readFileSync(path), { maxOutputLength: MAX_UNPACKED_BYTES })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_BUFFER_TOO_LARGE')
      throw new SourceError(
        'DATABASE_TOO_LARGE',
        `${path} is too large to unpack in memory`,
        'unpack it with gunzip',
        error,
      )
    throw damage(`${path} cannot be unpacked`)
  }
}

/** Two pages hold metas in turn, so that one is valid whatever interrupted a write. */
function readNewestMeta(bytes: Bytes): Meta {
  const first = readMeta(bytes, 0)
  if (first) return pickNewer(first, readMeta(bytes, first.pageBytes))
  for (let offset = MIN_PAGE_BYTES; offset <= MAX_PAGE_BYTES; offset *= 2) {
    const second = readMeta(bytes, offset)
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

function readMeta(bytes: Bytes, offset: number): Meta | undefined {
  const page = bytes.read(offset, PAGE_HEADER_BYTES + META_BYTES)
  if (page.length < PAGE_HEADER_BYTES + META_BYTES) return undefined
  const meta = page.subarray(PAGE_HEADER_BYTES)
  if (meta.readUInt32LE(0) !== MAGIC || meta.readUInt32LE(4) !== VERSION) return undefined
  if (meta.readBigUInt64LE(56) !== computeChecksum(meta.subarray(0, 56))) return undefined
  const pageBytes = meta.readUInt32LE(8)
  const isPageSize = pageBytes >= MIN_PAGE_BYTES && pageBytes <= MAX_PAGE_BYTES && (pageBytes & (pageBytes - 1)) === 0
  if (!isPageSize) return undefined
  return {
    pageBytes,
    rootPage: readU64(meta, 16),
    pageCount: readU64(meta, 40),
    transactionId: meta.readBigUInt64LE(48),
  }
}

/** FNV-1a with 64 bits. */
export function computeChecksum(bytes: Buffer): bigint {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash
}
