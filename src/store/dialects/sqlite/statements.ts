// Caches prepared statements, because preparing one takes longer than running most of our queries.
import type { Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { SqliteDatabase } from './connection.ts'

const MAX_PREPARED_BYTES = 8 * 1024 * 1024
const MAX_SEEN_ONCE_BYTES = 512 * 1024

/** A statement, with ballast by which the garbage collector accounts for the memory that SQLite allocates for it. */
interface PreparedStatement {
  readonly statement: Statement
  readonly externalMemory: ArrayBuffer
}

// Measured: a list of the longest kind takes 10.6 KB in addition to its conditions.
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

  /**
   * The statement of that text. It is cached from its second use on, because a statement that is used once would only evict
   * others.
   */
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
