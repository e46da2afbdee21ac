// The values that OpenZiti's controller stores in its database: scalars with a byte for their type, sets, maps and lists.
import type { BoltBucket, BoltEntry } from './bolt-bucket.ts'
import { damage, type Place } from './bolt-page.ts'

/** A time, in milliseconds since 1970. */
export class StoredTime {
  readonly ms: number

  constructor(ms: number) {
    this.ms = ms
  }
}

export type Scalar = boolean | number | string | StoredTime | null
/** A value of a map: what JSON can express. */
export type PlainValue =
  | boolean
  | number
  | string
  | null
  | readonly PlainValue[]
  | { readonly [key: string]: PlainValue }

const TYPE = { bool: 1, int32: 2, int64: 3, float64: 4, string: 5, time: 6, nil: 7 } as const
const LIST_SIZE_KEY = '__list__size__36484231-110c-4767-afe2-01b6e3db107a'
// Seconds from the beginning of year 1, from which Go counts, to 1970.
const GO_EPOCH_SECONDS = 62_135_596_800n
// The beginning of year 10000, from which on a time has no form in JSON.
const END_SECONDS = 315_537_897_600n
const SECOND_NANOSECONDS = 1_000_000_000

/** Decodes the value of an entry that is not a bucket. @throws SourceError naming its place if it has none */
export function decodeEntry(entry: BoltEntry): Scalar {
  return decodeScalar(entry.bytes, entry, entry.valueStart, entry.valueEnd)
}

/** Decodes a value between two positions. @throws SourceError naming `place` if it is not one */
export function decodeScalar(bytes: Buffer, place: Place, start = 0, end = bytes.length): Scalar {
  if (start === end) return null
  const [type, at, length] = [bytes[start], start + 1, end - start - 1]
  if (type === TYPE.nil) return null
  if (type === TYPE.string) return bytes.toString('utf8', at, end)
  if (type === TYPE.bool && length === 1) return bytes[at] !== 0
  if (type === TYPE.int32 && length === 4) return bytes.readInt32LE(at)
  if (type === TYPE.int64 && length === 8) return Number(bytes.readBigInt64LE(at))
  if (type === TYPE.float64 && length === 8) return bytes.readDoubleLE(at)
  if (type === TYPE.time && length === 15) return decodeTime(bytes, at, place)
  throw damage(`${place} has a value of an unknown form`)
}

/** Go's binary form: a version, seconds, nanoseconds, and the offset of the time zone, which is always UTC. */
function decodeTime(bytes: Buffer, at: number, place: Place): StoredTime {
  const [seconds, nanoseconds] = [bytes.readBigInt64BE(at + 1), bytes.readInt32BE(at + 9)]
  if (seconds < 0n || seconds >= END_SECONDS || nanoseconds < 0 || nanoseconds >= SECOND_NANOSECONDS)
    throw damage(`${place} has a time outside of the years 1 to 9999`)
  return new StoredTime(Number(seconds - GO_EPOCH_SECONDS) * 1000 + Math.floor(nanoseconds / 1_000_000))
}

/** Decodes the keys of a set of texts. A set of references with counts has them in the same form. */
export function decodeSet(bucket: BoltBucket): string[] {
  return bucket.list().map(decodeKey)
}

/** Decodes the keys of a set of references with counts, those that count. */
export function decodeCounted(bucket: BoltBucket): string[] {
  const members: string[] = []
  for (const entry of bucket.list()) {
    const member = decodeKey(entry)
    const count = entry.isBucket ? null : decodeEntry(entry)
    if (typeof count === 'number' && count > 0) members.push(member)
  }
  return members
}

/** Decodes a key that has a type, as the members of sets have. */
function decodeKey({ bytes, keyStart, valueStart, page, owner }: BoltEntry): string {
  if (keyStart === valueStart || bytes[keyStart] !== TYPE.string)
    throw damage(`page ${page} has a key that is not a text, in ${owner}`)
  return bytes.toString('utf8', keyStart + 1, valueStart)
}

/** Decodes a map or a list, with those in it. */
export function decodePlain(bucket: BoltBucket): PlainValue {
  const entries = bucket.list()
  const isList = entries.some((entry) => entry.compareKey(LIST_SIZE_KEY) === 0)
  return isList ? decodeList(bucket, entries) : decodeMap(entries)
}

function decodeMap(entries: readonly BoltEntry[]): PlainValue {
  return Object.fromEntries(entries.map((entry) => [entry.name, decodePlainEntry(entry)]))
}

function decodeList(bucket: BoltBucket, entries: readonly BoltEntry[]): PlainValue {
  const items: [index: number, value: PlainValue][] = []
  for (const entry of entries) {
    if (entry.compareKey(LIST_SIZE_KEY) === 0) continue
    const { key, page } = entry
    if (key[0] !== TYPE.int32 || key.length !== 5)
      throw damage(`page ${page} has a key that is not an index, in ${bucket}`)
    items.push([key.readInt32LE(1), decodePlainEntry(entry)])
  }
  // Keys are sorted as bytes, which is not the order of numbers.
  return items.sort(([a], [b]) => a - b).map(([, value]) => value)
}

function decodePlainEntry(entry: BoltEntry): PlainValue {
  const { bucket } = entry
  if (bucket) return decodePlain(bucket)
  const scalar = decodeEntry(entry)
  return scalar instanceof StoredTime ? new Date(scalar.ms).toISOString() : scalar
}
