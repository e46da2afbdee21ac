// The values of OpenZiti's controller in the form in which it stores them: a byte for the type, then the bytes.
import type { BucketContent } from './bolt-writer.ts'

export type Scalar = string | number | boolean | Date | null

// Seconds from the beginning of year 1, from which Go counts, to 1970.
const GO_EPOCH_SECONDS = 62_135_596_800n
const EMPTY = Buffer.alloc(0)

export function encodeScalar(value: Scalar): Buffer {
  if (value === null) return Buffer.from([7])
  if (typeof value === 'string') return encodeKey(value)
  if (typeof value === 'boolean') return Buffer.from([1, value ? 1 : 0])
  if (value instanceof Date) return encodeTime(value)
  const bytes = Buffer.alloc(5, 2)
  bytes.writeInt32LE(value, 1)
  return bytes
}

function encodeTime(time: Date): Buffer {
  const bytes = Buffer.alloc(16)
  bytes[0] = 6
  bytes[1] = 1
  bytes.writeBigInt64BE(BigInt(Math.floor(time.getTime() / 1000)) + GO_EPOCH_SECONDS, 2)
  bytes.writeInt16BE(-1, 14)
  return bytes
}

/** A text as a member of a set is a key. */
function encodeKey(text: string): Buffer {
  return Buffer.from(`\x05${text}`)
}

export function encodeSet(texts: Iterable<string>): BucketContent {
  return Array.from(texts, (text) => [encodeKey(text), EMPTY] as const)
}

/** References that count how many policies lead to them. */
export function encodeCounted(ids: Iterable<string>): BucketContent {
  const one = encodeScalar(1)
  return Array.from(ids, (id) => [encodeKey(id), one] as const)
}

/** A record of single values, sets and parts. */
export function encodeRecord(members: Readonly<Record<string, Scalar | BucketContent>>): BucketContent {
  return Object.entries(members).map(([name, value]) => [name, isScalar(value) ? encodeScalar(value) : value] as const)
}

function isScalar(value: Scalar | BucketContent): value is Scalar {
  return typeof value !== 'object' || value === null || value instanceof Date
}
