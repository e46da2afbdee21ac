// The records in the database of OpenZiti's controller, kind by kind, with members of the types that a caller expects.
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import type { BoltBucket, BoltEntry } from './bolt-bucket.ts'
import { BoltFile } from './bolt-file.ts'
import { damage } from './bolt-page.ts'
import { SourceError } from './source-error.ts'
import { isCompressed, unpackFile } from './source-files.ts'
import { decodeCounted, decodeEntry, decodePlain, decodeSet, type PlainValue, StoredTime } from './typed-values.ts'

// The schema of release 1.6.5 is 39, that of 2.0.3 is 44; later ones than 37 added members only.
const MIN_SCHEMA = 37
const MAX_SCHEMA = 44

/** A record, or a part of one. Members that it does not have are null, false or empty, as OpenZiti's controller reads them. */
export class SourceRecord {
  readonly #container: BoltBucket
  /** In the order of their keys. */
  readonly #entries: readonly BoltEntry[]

  constructor(bucket: BoltBucket) {
    this.#container = bucket
    this.#entries = bucket.list()
  }

  /** Kind and id, and the path to a part: for messages. */
  get place(): string {
    return this.#container.path.slice(1).join('/')
  }

  has(name: string): boolean {
    return this.#find(name) !== undefined
  }

  text(name: string): string | null {
    const value = this.#scalar(name)
    if (value === null || typeof value === 'string') return value
    throw this.#mistyped(name, 'a text')
  }

  flag(name: string): boolean {
    const value = this.#scalar(name)
    if (value === null || typeof value === 'boolean') return value ?? false
    throw this.#mistyped(name, 'a boolean')
  }

  number(name: string): number | null {
    const value = this.#scalar(name)
    if (value === null || typeof value === 'number') return value
    throw this.#mistyped(name, 'a number')
  }

  /** In milliseconds since 1970. */
  time(name: string): number | null {
    const value = this.#scalar(name)
    if (value === null || value instanceof StoredTime) return value?.ms ?? null
    throw this.#mistyped(name, 'a time')
  }

  /** Bytes without a type. */
  bytes(name: string): Buffer | null {
    const value = this.#find(name)?.value
    return value && value.length > 0 ? value : null
  }

  set(name: string): string[] {
    const bucket = this.#bucket(name)
    return bucket ? decodeSet(bucket) : []
  }

  /** The references of a set that counts them. */
  counted(name: string): string[] {
    const bucket = this.#bucket(name)
    return bucket ? decodeCounted(bucket) : []
  }

  map(name: string): Readonly<Record<string, PlainValue>> {
    const bucket = this.#bucket(name)
    const value = bucket ? decodePlain(bucket) : {}
    if (Array.isArray(value)) throw this.#mistyped(name, 'a map')
    return value as Readonly<Record<string, PlainValue>>
  }

  /** A part with members of its own; undefined if the record does not have it. */
  part(name: string): SourceRecord | undefined {
    const bucket = this.#bucket(name)
    return bucket && new SourceRecord(bucket)
  }

  /** The parts of a part, by their names. */
  parts(name: string): [name: string, part: SourceRecord][] {
    const bucket = this.#bucket(name)
    if (!bucket) return []
    return bucket
      .list()
      .flatMap((entry) => (entry.bucket ? [[entry.name, new SourceRecord(entry.bucket)] as const] : [])) as [
      string,
      SourceRecord,
    ][]
  }

  /** Members with bytes as values, by their keys as bytes. */
  rawMembers(name: string): [key: Buffer, value: Buffer][] {
    const bucket = this.#bucket(name)
    return bucket ? bucket.list().map(({ key, value }) => [key, value]) : []
  }

  /** The names of the members. */
  names(): string[] {
    return this.#entries.map((entry) => entry.name)
  }

  #scalar(name: string) {
    const entry = this.#find(name)
    if (!entry) return null
    if (entry.isBucket) throw this.#mistyped(name, 'a single value')
    return decodeEntry(entry)
  }

  #bucket(name: string): BoltBucket | undefined {
    const entry = this.#find(name)
    if (!entry) return undefined
    const { bucket } = entry
    // A map that was set to nothing is one value.
    if (bucket || decodeEntry(entry) === null) return bucket
    throw this.#mistyped(name, 'a bucket')
  }

  #find(name: string): BoltEntry | undefined {
    let [low, high] = [0, this.#entries.length]
    while (low < high) {
      const middle = (low + high) >>> 1
      const entry = this.#entries[middle] as BoltEntry
      const order = entry.compareKey(name)
      if (order === 0) return entry
      if (order < 0) low = middle + 1
      else high = middle
    }
    return undefined
  }

  #mistyped(name: string, expected: string): SourceError {
    const page = this.#find(name)?.page
    return damage(`${this.place} has a member ${name} that is not ${expected}, on page ${page}`)
  }
}

/** Everything that a database of OpenZiti's controller holds. */
export class SourceDatabase {
  readonly #file: BoltFile
  readonly #kinds: ReadonlyMap<string, BoltBucket>
  /** The version of the layout. */
  readonly schema: number
  readonly transactionId: bigint

  /** @throws SourceError if the file is another program's, damaged, or of a release that cannot be adopted */
  constructor(file: BoltFile) {
    const data = file.root.findBucket('ziti')
    if (!data) {
      const remedy = 'state the database of the controller, not its log (raft.db), nor the file of another program'
      throw new SourceError('NOT_A_DATABASE', "the file holds no data of OpenZiti's controller", remedy)
    }
    this.#kinds = new Map(data.list().flatMap(({ key, bucket }) => (bucket ? [[key.toString(), bucket]] : [])))
    this.#file = file
    this.transactionId = file.transactionId
    const versions = this.#kinds.get('versions')
    this.schema = (versions && new SourceRecord(versions).number('edge')) ?? 0
    requireSchema(this.schema)
  }

  /** How many bytes have been read of it, each time that some were. */
  get bytesRead(): number {
    return this.#file.bytesRead
  }

  /** The records of a kind, read one by one. */
  *records(kind: string): Generator<[id: string, record: SourceRecord]> {
    const bucket = this.#kinds.get(kind)
    if (!bucket) return
    for (const entry of bucket.entries()) {
      const { name: id, bucket: record } = entry
      if (!record) throw damage(`${kind}/${id} is not a record, on page ${entry.page}`)
      yield [id, new SourceRecord(record)]
    }
  }

  /** The ids of the records of a kind. */
  ids(kind: string): Set<string> {
    const ids = new Set<string>()
    const bucket = this.#kinds.get(kind)
    if (bucket) for (const { name } of bucket.entries()) ids.add(name)
    return ids
  }
}

/**
 * Runs `body` on the database of a file, which is closed afterwards.
 * @param directory where a compressed file is unpacked
 * @throws SourceError if it cannot be read
 */
export async function readDatabase<T>(
  path: string,
  directory: string,
  body: (database: SourceDatabase) => Promise<T>,
): Promise<T> {
  const file = await openFile(path, directory)
  try {
    return await body(new SourceDatabase(file))
  } finally {
    file.close()
  }
}

async function openFile(path: string, directory: string): Promise<BoltFile> {
  if (!isCompressed(path)) return BoltFile.open(path)
  const unpacked = join(directory, 'unpacked-database')
  try {
    await unpackFile(path, unpacked)
    return BoltFile.open(unpacked)
  } finally {
    // An open file can be read on without its name, and nothing of it stays, even if this process is killed.
    rmSync(unpacked, { force: true })
  }
}

function requireSchema(schema: number): void {
  if (schema >= MIN_SCHEMA && schema <= MAX_SCHEMA) return
  if (schema < MIN_SCHEMA) {
    const remedy =
      "start OpenZiti's controller 1.6.5 with this database once, which brings it up to date, then adopt again"
    throw new SourceError('SCHEMA_TOO_OLD', `the database has the schema ${schema}; ${MIN_SCHEMA} is required`, remedy)
  }
  const remedy = 'use a newer release of this controller'
  throw new SourceError(
    'SCHEMA_TOO_NEW',
    `the database has the schema ${schema}, which is newer than ${MAX_SCHEMA}`,
    remedy,
  )
}
