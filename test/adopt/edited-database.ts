// Databases of OpenZiti's controller that differ from the recorded ones in what a test is about.

import { type BucketContent, writeBoltFile } from '../../bench/former-network/bolt-writer.ts'
import { encodeScalar } from '../../bench/former-network/typed-values.ts'
import type { BoltBucket } from '../../src/adopt/bolt-bucket.ts'
import { BoltFile } from '../../src/adopt/bolt-file.ts'

/** A bucket that a test may change; keys are bytes as Latin-1 texts. */
export class EditableBucket {
  readonly #entries = new Map<string, Buffer | EditableBucket>()

  static from(bucket: BoltBucket): EditableBucket {
    const copy = new EditableBucket()
    for (const { key, value, bucket: inner } of bucket.entries())
      copy.#entries.set(key.toString('latin1'), inner ? EditableBucket.from(inner) : Buffer.from(value))
    return copy
  }

  /** The bucket at a path, which is made if it does not exist. */
  at(...path: readonly string[]): EditableBucket {
    const [first, ...rest] = path
    if (first === undefined) return this
    const existing = this.#entries.get(first)
    const bucket = existing instanceof EditableBucket ? existing : new EditableBucket()
    this.#entries.set(first, bucket)
    return bucket.at(...rest)
  }

  get keys(): string[] {
    return [...this.#entries.keys()]
  }

  set(key: string, value: string | number | boolean | null): void {
    this.#entries.set(key, encodeScalar(value))
  }

  get(key: string): Buffer | EditableBucket | undefined {
    return this.#entries.get(key)
  }

  /** Sets a value of any bytes, or a bucket. */
  put(key: string, value: Buffer | EditableBucket): void {
    this.#entries.set(key, value)
  }

  /** Adds a member to a set of texts. */
  add(text: string): void {
    this.#entries.set(`\x05${text}`, Buffer.alloc(0))
  }

  delete(key: string): void {
    this.#entries.delete(key)
  }

  toContent(): BucketContent {
    const toBytes = (key: string) => Buffer.from(key, 'latin1')
    return new Map(
      [...this.#entries].map(([key, value]) => [
        toBytes(key),
        value instanceof EditableBucket ? value.toContent() : value,
      ]),
    )
  }
}

/** Changes the records of a database in its place. */
export function editDatabase(path: string, edit: (records: EditableBucket) => void): void {
  const file = BoltFile.open(path)
  const root = EditableBucket.from(file.root)
  file.close()
  edit(root.at('ziti'))
  writeBoltFile(path, root.toContent())
}
