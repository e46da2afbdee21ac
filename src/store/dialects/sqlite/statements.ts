// Prepared statements kept for reuse: preparing costs more than most of our queries take to run.
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { SqliteDatabase } from './connection.ts'

const MAX_PREPARED_BYTES = 8 * 1024 * 1024
const MAX_SEEN_ONCE_BYTES = 512 * 1024

/** A statement, and ballast that tells the garbage collector of the memory SQLite holds for it, which it cannot see. */
interface PreparedStatement {
  readonly statement: Statement
  readonly externalMemory: ArrayBuffer
}

// Measured: a list of the longest kind takes 10.6 KB beside what its conditions take.
const STATEMENT_BYTES = 12_288
const STATEMENT_BYTES_PER_CHARACTER = 8

export class PreparedStatements {
  readonly #connection: SqliteDatabase
  readonly #prepared = new LRUCache<string, PreparedStatement>({
    maxSize: MAX_PREPARED_BYTES,
    sizeCalculation: ({ externalMemory }, text) => externalMemory.byteLength + 2 * text.length,
  })
  readonly #seenOnce = new LRUCache<string, true>({
    maxSize: MAX_SEEN_ONCE_BYTES,
    sizeCalculation: (_, text) => 2 * text.length,
  })

  constructor(connection: SqliteDatabase) {
    this.#connection = connection
  }

  /** The statement of that text. A text is kept from its second use on: one that comes once would only push others out. */
  get(text: string): Statement {
    const prepared = this.#prepared.get(text)
    if (prepared) return prepared.statement
    const statement = this.#connection.prepare(text)
    if (this.#seenOnce.delete(text)) this.#cache(text, statement)
    else this.#seenOnce.set(text, true)
    return statement
  }

  #cache(text: string, statement: Statement): void {
    const bytes = STATEMENT_BYTES + STATEMENT_BYTES_PER_CHARACTER * text.length
    this.#prepared.set(text, { statement, externalMemory: new ArrayBuffer(bytes) })
  }
}
