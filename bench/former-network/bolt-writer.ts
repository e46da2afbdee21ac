// Writes a bbolt file: sorted keys in leaf pages, branch pages above them, and small buckets inside of values.
import { closeSync, openSync, writeSync } from 'node:fs'
import { computeChecksum } from '../../src/adopt/bolt-file.ts'

/** A bucket: texts and bytes as keys, bytes or buckets as values. A large one yields its entries, each of which is written at once. */
export type BucketContent = Iterable<readonly [key: string | Buffer, value: Buffer | BucketContent]>

interface Element {
  readonly key: Buffer
  readonly value: Buffer
  readonly flags: number
}

const HEADER = 16
const ELEMENT = 16
const BRANCH = 1
const LEAF = 2
const META = 4

/** Writes the file. */
export function writeBoltFile(path: string, root: BucketContent, pageBytes = 4096): void {
  const file = openSync(path, 'w')
  try {
    const writer = new BoltWriter(file, pageBytes)
    writer.finish(writer.writeTree(writer.toElements(root)))
  } finally {
    closeSync(file)
  }
}

/** Computes the checksum of the meta on a page anew, after a test changed it. */
export function sealMeta(file: Buffer, offset: number): void {
  const meta = file.subarray(offset + HEADER)
  meta.writeBigUInt64LE(computeChecksum(meta.subarray(0, 56)), 56)
}

class BoltWriter {
  readonly #file: number
  readonly #pageBytes: number
  #next = 2

  constructor(file: number, pageBytes: number) {
    this.#file = file
    this.#pageBytes = pageBytes
  }

  toElements(content: BucketContent): Element[] {
    const elements = [...content].map(([key, value]) => {
      const bytes = Buffer.isBuffer(key) ? key : Buffer.from(key)
      if (Buffer.isBuffer(value)) return { key: bytes, value, flags: 0 }
      return { key: bytes, value: this.#toBucketValue(value), flags: 1 }
    })
    return elements.sort((a, b) => Buffer.compare(a.key, b.key))
  }

  /** Writes leaf pages, and what refers to them. Returns the page at the top. */
  writeTree(elements: readonly Element[]): number {
    let level = this.#split(elements).map((group) => ({
      key: group[0]?.key ?? Buffer.alloc(0),
      page: this.#write(LEAF, group.length, encodeLeaf(group)),
    }))
    while (level.length > 1) {
      const groups = chunk(level, Math.max(2, Math.floor(this.#pageBytes / 128)))
      level = groups.map((group) => ({
        key: group[0]?.key ?? Buffer.alloc(0),
        page: this.#write(BRANCH, group.length, encodeBranch(group)),
      }))
    }
    return level[0]?.page ?? 0
  }

  finish(rootPage: number): void {
    for (const page of [0, 1]) {
      const bytes = Buffer.alloc(this.#pageBytes)
      bytes.writeBigUInt64LE(BigInt(page), 0)
      bytes.writeUInt16LE(META, 8)
      const meta = bytes.subarray(HEADER)
      meta.writeUInt32LE(0xed0cdaed, 0)
      meta.writeUInt32LE(2, 4)
      meta.writeUInt32LE(this.#pageBytes, 8)
      meta.writeBigUInt64LE(BigInt(rootPage), 16)
      meta.writeBigUInt64LE(2n ** 64n - 1n, 32)
      meta.writeBigUInt64LE(BigInt(this.#next), 40)
      meta.writeBigUInt64LE(BigInt(page + 1), 48)
      sealMeta(bytes, 0)
      writeSync(this.#file, bytes, 0, bytes.length, page * this.#pageBytes)
    }
  }

  #toBucketValue(content: BucketContent): Buffer {
    const elements = this.toElements(content)
    const header = Buffer.alloc(16)
    const body = encodeLeaf(elements)
    // A bucket that holds others has pages of its own.
    if (body.length + HEADER <= this.#pageBytes / 4 && elements.every(({ flags }) => flags === 0)) {
      const page = Buffer.alloc(HEADER)
      page.writeUInt16LE(LEAF, 8)
      page.writeUInt16LE(elements.length, 10)
      return Buffer.concat([header, page, body])
    }
    header.writeBigUInt64LE(BigInt(this.writeTree(elements)), 0)
    return header
  }

  #split(elements: readonly Element[]): (readonly Element[])[] {
    const groups: Element[][] = [[]]
    let size = HEADER
    for (const element of elements) {
      const bytes = ELEMENT + element.key.length + element.value.length
      if (size + bytes > this.#pageBytes && (groups.at(-1) ?? []).length > 0) {
        groups.push([])
        size = HEADER
      }
      groups.at(-1)?.push(element)
      size += bytes
    }
    return groups
  }

  #write(flags: number, count: number, body: Buffer): number {
    const id = this.#next
    const pages = Math.ceil((HEADER + body.length) / this.#pageBytes)
    const bytes = Buffer.alloc(pages * this.#pageBytes)
    bytes.writeBigUInt64LE(BigInt(id), 0)
    bytes.writeUInt16LE(flags, 8)
    bytes.writeUInt16LE(count, 10)
    bytes.writeUInt32LE(pages - 1, 12)
    body.copy(bytes, HEADER)
    writeSync(this.#file, bytes, 0, bytes.length, id * this.#pageBytes)
    this.#next += pages
    return id
  }
}

function encodeLeaf(elements: readonly Element[]): Buffer {
  const head = Buffer.alloc(elements.length * ELEMENT)
  let end = head.length
  elements.forEach(({ key, value, flags }, index) => {
    const at = index * ELEMENT
    head.writeUInt32LE(flags, at)
    head.writeUInt32LE(end - at, at + 4)
    head.writeUInt32LE(key.length, at + 8)
    head.writeUInt32LE(value.length, at + 12)
    end += key.length + value.length
  })
  return Buffer.concat([head, ...elements.flatMap(({ key, value }) => [key, value])])
}

function encodeBranch(children: readonly { readonly key: Buffer; readonly page: number }[]): Buffer {
  const head = Buffer.alloc(children.length * ELEMENT)
  let end = head.length
  children.forEach(({ key, page }, index) => {
    const at = index * ELEMENT
    head.writeUInt32LE(end - at, at)
    head.writeUInt32LE(key.length, at + 4)
    head.writeBigUInt64LE(BigInt(page), at + 8)
    end += key.length
  })
  return Buffer.concat([head, ...children.map(({ key }) => key)])
}

function chunk<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  )
}
