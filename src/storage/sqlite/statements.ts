// Caches prepared statements, because preparing one takes longer than running most of our queries.
import type { RunResult, Statement } from 'better-sqlite3'
import { LRUCache } from 'lru-cache'
import type { SqliteDatabase } from './connection.ts'

const MAX_PREPARED_BYTES = 8 * 1024 * 1024
const MAX_SEEN_ONCE_BYTES = 512 * 1024

type Row = Record<string, unknown>

/**
 * A statement whose rows are copies of one object. A row that SQLite's binding makes takes a third longer, because the binding
 * adds column by column, and the rows of two statements that select the same columns have different shapes.
 */
class PreparedStatement {
  readonly reader: boolean
  readonly readonly: boolean
  readonly #statement: Statement<unknown[], unknown[]>
  readonly #columns: readonly string[]
  readonly #emptyRow: Row

  constructor(statement: Statement<unknown[], unknown[]>) {
    this.reader = statement.reader
    this.readonly = statement.readonly
    this.#statement = statement.reader ? statement.raw() : statement
    this.#columns = statement.reader ? statement.columns().map(({ name }) => name) : []
    this.#emptyRow = Object.fromEntries(this.#columns.map((name) => [name, null]))
  }

  all(parameters: readonly unknown[]): Row[] {
    return this.#statement.all(parameters).map((values) => this.#toRow(values))
  }

  run(parameters: readonly unknown[]): RunResult {
    return this.#statement.run(parameters)
  }

  #toRow(values: readonly unknown[]): Row {
    const row = { ...this.#emptyRow }
    const columns = this.#columns
    for (let at = 0; at < columns.length; at++) row[columns[at] as string] = values[at]
    return row
  }
}

/** With ballast by which the garbage collector accounts for the memory that SQLite allocates for the statement. */
interface CachedStatement {
  readonly statement: PreparedStatement
  readonly externalMemory: ArrayBuffer
}

// Measured: a list of the longest kind takes 10.6 KB in addition to its conditions.
const STATEMENT_BYTES = 12_288
const STATEMENT_BYTES_PER_CHARACTER = 8

export class PreparedStatements {
  readonly #connection: SqliteDatabase
  readonly #prepared = new LRUCache<string, CachedStatement>({
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
  get(text: string): PreparedStatement {
    const prepared = this.#prepared.get(text)
    if (prepared) return prepared.statement
    const statement = new PreparedStatement(this.#connection.prepare<unknown[], unknown[]>(text))
    if (this.#seenOnce.delete(text)) this.#cache(text, statement)
    else this.#seenOnce.set(text, true)
    return statement
  }

  #cache(text: string, statement: PreparedStatement): void {
    const bytes = STATEMENT_BYTES + STATEMENT_BYTES_PER_CHARACTER * text.length
    this.#prepared.set(text, { statement, externalMemory: new ArrayBuffer(bytes) })
  }
}
