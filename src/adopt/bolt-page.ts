// The pages of a bbolt file, and the error of a file whose structure is damaged.
import { SourceError } from './source-error.ts'

/** Names a place for messages, which few files need. A text does too. */
export interface Place {
  toString(): string
}

/** A page, or one inside of a value. */
export interface BoltPage {
  readonly id: number
  readonly kind: 'branch' | 'leaf'
  readonly count: number
  /** The bytes that it is in, and its bounds among them. */
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  /** Its position in the file. */
  readonly offset: number
}

export const PAGE_HEADER_BYTES = 16

/** Reads the pages of a file. */
export interface PageReader {
  /**
   * Reads a page, with those that it continues on.
   * @param referrer the position in the file of the element that refers to it
   * @param place the bucket that it belongs to, for messages
   * @throws SourceError if it is damaged, or something else refers to it too
   */
  readPage(id: number, referrer: number, place: Place): BoltPage
}

const BRANCH = 1
const LEAF = 2

/** The error of a file whose structure is damaged. */
export function damage(problem: string): SourceError {
  const remedy = 'take a new snapshot of the database: ziti edge db snapshot'
  return new SourceError('DATABASE_DAMAGED', `the database is damaged: ${problem}`, remedy)
}

/** @param place for messages @throws SourceError if the number is larger than any that a whole file has */
export function readU64(bytes: Buffer, offset: number, place: Place): number {
  const value = bytes.readUInt32LE(offset + 4) * 2 ** 32 + bytes.readUInt32LE(offset)
  if (Number.isSafeInteger(value)) return value
  throw damage(`${place} has the number ${bytes.readBigUInt64LE(offset)} in place of a page`)
}

/** Returns the kind of a page with elements. @throws SourceError if it is neither, or that of another place */
export function readKind(bytes: Buffer, id: number, place: Place): BoltPage['kind'] {
  if (bytes.length < PAGE_HEADER_BYTES || bytes.readBigUInt64LE(0) !== BigInt(id))
    throw damage(`page ${id} is not in its place, in ${place}`)
  const flags = bytes.readUInt16LE(8)
  if (flags === BRANCH) return 'branch'
  if (flags === LEAF) return 'leaf'
  throw damage(`page ${id} is neither a branch nor a leaf, in ${place}`)
}
