// The values that OpenZiti's controller stores in its database: scalars with a byte for their type, sets, maps and lists.
import type { BoltBucket, BoltEntry } from './bolt-bucket.ts'
import { damage } from './bolt-page.ts'

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

/** Decodes the value of an entry. @throws SourceError naming `place` if it is not one */
export function decodeScalar(bytes: Buffer, place: string): Scalar {
  if (bytes.length === 0) return null
  const [type, content] = [bytes[0], bytes.subarray(1)]
  if (type === TYPE.nil) return null
  if (type === TYPE.string) return content.toString('utf8')
  if (type === TYPE.bool && content.length === 1) return content[0] !== 0
  if (type === TYPE.int32 && content.length === 4) return content.readInt32LE(0)
  if (type === TYPE.int64 && content.length === 8) return Number(content.readBigInt64LE(0))
  if (type === TYPE.float64 && content.length === 8) return content.readDoubleLE(0)
  if (type === TYPE.time && content.length === 15) return decodeTime(content, place)
  throw damage(`${place} has a value of an unknown form`)
}

/** Go's binary form: a version, seconds, nanoseconds, and the offset of the time zone, which is always UTC. */
function decodeTime(content: Buffer, place: string): StoredTime {
  const [seconds, nanoseconds] = [content.readBigInt64BE(1), content.readInt32BE(9)]
  if (seconds < 0n || seconds >= END_SECONDS || nanoseconds < 0 || nanoseconds >= SECOND_NANOSECONDS)
    throw damage(`${place} has a time outside of the years 1 to 9999`)
  return new StoredTime(Number(seconds - GO_EPOCH_SECONDS) * 1000 + Math.floor(nanoseconds / 1_000_000))
}

/** Decodes the keys of a set of texts. A set of references with counts has them in the same form. */
export function decodeSet(bucket: BoltBucket): string[] {
  const members: string[] = []
  for (const { key, page } of bucket.list()) {
    if (key[0] !== TYPE.string) throw damage(`page ${page} has a key that is not a text, in ${bucket.describe()}`)
    members.push(key.toString('utf8', 1))
  }
  return members
}

/** Decodes the keys of a set of references with counts, those that count. */
export function decodeCounted(bucket: BoltBucket): string[] {
  const members: string[] = []
  for (const { key, value, page } of bucket.list()) {
    if (key[0] !== TYPE.string) throw damage(`page ${page} has a key that is not a text, in ${bucket.describe()}`)
    const count = decodeScalar(value, `${bucket.describe()} on page ${page}`)
    if (typeof count === 'number' && count > 0) members.push(key.toString('utf8', 1))
  }
  return members
}

/** Decodes a map or a list, with those in it. */
export function decodePlain(bucket: BoltBucket): PlainValue {
  const entries = bucket.list()
  const isList = entries.some(({ key }) => key.toString('utf8') === LIST_SIZE_KEY)
  return isList ? decodeList(bucket, entries) : decodeMap(bucket, entries)
}

function decodeMap(bucket: BoltBucket, entries: readonly BoltEntry[]): PlainValue {
  const members = entries.map((entry) => {
    const name = entry.key.toString('utf8')
    return [name, decodePlainEntry(entry, `${bucket.describe()}/${name} on page ${entry.page}`)] as const
  })
  return Object.fromEntries(members)
}

function decodeList(bucket: BoltBucket, entries: readonly BoltEntry[]): PlainValue {
  const items: [index: number, value: PlainValue][] = []
  for (const entry of entries) {
    const { key, page } = entry
    if (key.toString('utf8') === LIST_SIZE_KEY) continue
    if (key[0] !== TYPE.int32 || key.length !== 5)
      throw damage(`page ${page} has a key that is not an index, in ${bucket.describe()}`)
    items.push([key.readInt32LE(1), decodePlainEntry(entry, `${bucket.describe()} on page ${page}`)])
  }
  // Keys are sorted as bytes, which is not the order of numbers.
  return items.sort(([a], [b]) => a - b).map(([, value]) => value)
}

function decodePlainEntry({ bucket, value }: BoltEntry, place: string): PlainValue {
  if (bucket) return decodePlain(bucket)
  const scalar = decodeScalar(value, place)
  return scalar instanceof StoredTime ? new Date(scalar.ms).toISOString() : scalar
}
