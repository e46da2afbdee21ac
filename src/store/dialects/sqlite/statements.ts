// Prepared statements kept for reuse: preparing costs more than most of our queries take to run.
import type { Statement } from 'better-sqlite3'
import type { SqliteDatabase } from './connection.ts'

const MOST_KEPT = 500
const MOST_SEEN_ONCE = 1_000

/** A statement, and ballast that tells the garbage collector of the memory SQLite holds for it, which it cannot see. */
interface Kept {
  readonly statement: Statement
  readonly ballast: ArrayBuffer
}

const BALLAST_BYTES = 12_288

export class Statements {
  readonly #connection: SqliteDatabase
  /** In order of use, the oldest first. */
  readonly #kept = new Map<string, Kept>()
  readonly #seenOnce = new Set<string>()

  constructor(connection: SqliteDatabase) {
    this.#connection = connection
  }

  /** The statement of that text. A text is kept from its second use on: one that comes once would only push others out. */
  get(text: string): Statement {
    const kept = this.#kept.get(text)
    if (kept) {
      this.#kept.delete(text)
      this.#kept.set(text, kept)
      return kept.statement
    }
    const statement = this.#connection.prepare(text)
    if (this.#seenOnce.delete(text)) this.#keep(text, statement)
    else this.#rememberOnce(text)
    return statement
  }

  #keep(text: string, statement: Statement): void {
    if (this.#kept.size >= MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value ?? '')
    this.#kept.set(text, { statement, ballast: new ArrayBuffer(BALLAST_BYTES) })
  }

  #rememberOnce(text: string): void {
    if (this.#seenOnce.size >= MOST_SEEN_ONCE) this.#seenOnce.clear()
    this.#seenOnce.add(text)
  }
}
