// Prepared statements kept for reuse: preparing costs more than most of our queries take to run.
import type { Statement } from 'better-sqlite3'
import { BoundedCache } from '../../../bounded-cache.ts'
import type { SqliteDatabase } from './connection.ts'

const MAX_KEPT_BYTES = 8 * 1024 * 1024
const MAX_SEEN_ONCE_BYTES = 512 * 1024

/** A statement, and ballast that tells the garbage collector of the memory SQLite holds for it, which it cannot see. */
interface PreparedStatement {
  readonly statement: Statement
  readonly ballast: ArrayBuffer
}

// Measured: a list of the longest kind takes 10.6 KB beside what its conditions take.
const STATEMENT_BYTES = 12_288
const STATEMENT_BYTES_PER_CHARACTER = 8

export class PreparedStatements {
  readonly #connection: SqliteDatabase
  readonly #kept = new BoundedCache<PreparedStatement>(MAX_KEPT_BYTES)
  readonly #seenOnce = new BoundedCache<true>(MAX_SEEN_ONCE_BYTES)

  constructor(connection: SqliteDatabase) {
    this.#connection = connection
  }

  /** The statement of that text. A text is kept from its second use on: one that comes once would only push others out. */
  get(text: string): Statement {
    const kept = this.#kept.get(text)
    if (kept) return kept.statement
    const statement = this.#connection.prepare(text)
    if (this.#seenOnce.delete(text)) this.#keep(text, statement)
    else this.#seenOnce.set(text, true, 0)
    return statement
  }

  #keep(text: string, statement: Statement): void {
    const bytes = STATEMENT_BYTES + STATEMENT_BYTES_PER_CHARACTER * text.length
    this.#kept.set(text, { statement, ballast: new ArrayBuffer(bytes) }, bytes)
  }
}
