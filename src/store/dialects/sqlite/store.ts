// The store on one SQLite file: a connection for writes and plain reads, a second one for streams.
import { type Compilable, Kysely } from 'kysely'
import type { Clock } from '../../../clock.ts'
import { Audit, chainHead } from '../../audit.ts'
import type { Database } from '../../database.ts'
import { migrate } from '../../migrate.ts'
import {
  type CommitListener,
  type Stamp,
  type Store,
  StoreMisuse,
  type StoreStats,
  type StreamLimits,
  type Writing,
} from '../../store.ts'
import { Totals } from '../../totals.ts'
import { openForReading, openForWriting, type SqliteDatabase } from './connection.ts'
import { bindable, SqliteExecutor } from './executor.ts'
import { type Committed, GroupCommit, unusableDialect, unusableDriver } from './group-commit.ts'
import { Statements } from './statements.ts'

const STREAM_MILLISECONDS = 60_000
// Pages a step of a backup copies before other work gets a turn.
const BACKUP_PAGES = 200

/** Opens the database in `file`, creating and migrating it as needed. */
export async function openSqliteStore(file: string, clock: Clock, report: (error: unknown) => void): Promise<Store> {
  const connection = openForWriting(file)
  try {
    await migrate(connection, clock)
    const reading = openForReading(file)
    return await SqliteStore.create(connection, reading, report)
  } catch (error) {
    connection.close()
    throw error
  }
}

class SqliteStore implements Store {
  readonly db: Kysely<Database>
  readonly #connection: SqliteDatabase
  readonly #reading: SqliteDatabase
  readonly #queue: GroupCommit
  readonly #totals = new Totals()
  readonly #listeners = new Set<CommitListener>()
  readonly #report: (error: unknown) => void
  #commits = 0
  #isClosed = false

  static async create(
    connection: SqliteDatabase,
    reading: SqliteDatabase,
    report: (error: unknown) => void,
  ): Promise<SqliteStore> {
    const audit = new Audit(CHAIN_PENDING)
    const store = new SqliteStore(connection, reading, audit, report)
    audit.reset(await chainHead(store.db))
    return store
  }

  private constructor(
    connection: SqliteDatabase,
    reading: SqliteDatabase,
    audit: Audit,
    report: (error: unknown) => void,
  ) {
    const statements = new Statements(connection)
    this.#connection = connection
    this.#reading = reading
    this.#report = report
    this.#queue = new GroupCommit(connection, statements, audit, (committed) => this.#announce(committed))
    const executor = new SqliteExecutor(statements, {
      check: (isReadOnly) => {
        if (!isReadOnly) throw new StoreMisuse('changes go through Store.write')
        if (this.#queue.isInsideBody) throw new StoreMisuse('inside a transaction, reads go through its own handle')
      },
    })
    this.db = new Kysely<Database>({
      config: { dialect: unusableDialect },
      dialect: unusableDialect,
      driver: unusableDriver,
      executor,
    })
  }

  write<T>(body: (tx: Writing) => Promise<T>, stamp: Stamp): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreMisuse('the store is closed'))
    return this.#queue.add(body, stamp)
  }

  async *stream<Row>(query: Compilable<Row>, limits: StreamLimits = {}): AsyncIterable<Row> {
    const { sql, parameters } = query.compile()
    const deadline = performance.now() + (limits.milliseconds ?? STREAM_MILLISECONDS)
    for (const row of this.#reading.prepare(sql).iterate(bindable(parameters))) {
      if (performance.now() > deadline) throw new StoreMisuse('a stream was held open for too long')
      yield row as Row
    }
  }

  total(query: Compilable<{ n: number }>, tables: readonly string[]): Promise<number> {
    return this.#totals.of(this.db, query.compile(), tables)
  }

  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async backup(file: string): Promise<void> {
    await this.#connection.backup(file, { progress: () => BACKUP_PAGES })
  }

  stats(): StoreStats {
    return { commits: this.#commits, ...this.#queue.stats }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#queue.drained()
    this.#reading.close()
    this.#connection.pragma('optimize')
    this.#connection.close()
  }

  #announce({ changes, tables }: Committed): void {
    this.#commits += 1
    this.#totals.touched(tables)
    for (const ofOne of changes) {
      if (ofOne.length === 0) continue
      for (const listener of this.#listeners) {
        try {
          listener(ofOne, this.#commits)
        } catch (error) {
          this.#report(error)
        }
      }
    }
  }
}

const CHAIN_PENDING = ''
