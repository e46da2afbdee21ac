// The store on one SQLite file: a connection for writes and plain reads, others for streams.
import { type Compilable, type CompiledQuery, Kysely } from 'kysely'
import { LRUCache } from 'lru-cache'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import { Audit, type ChainHead } from '../audit/audit.ts'
import { type AuditSealer, CHAIN_START, type SealedRecord } from '../audit/audit-seal.ts'
import type { CommitLog, RowObserver } from '../commit-log.ts'
import type { Database } from '../database.ts'
import { LocalLog } from '../local-log.ts'
import { MIGRATIONS, type Migration, migrate, needsMigration, requireOwnSchema } from '../migrate.ts'
import { ResultCache } from '../result-cache.ts'
import {
  type AuditOrigin,
  type CommitRecorder,
  type Reader,
  RowsDivergedError,
  type Store,
  StoreMisuseError,
  type StoreStats,
  type StreamOptions,
  type TransactionScope,
} from '../store.ts'
import type { Commit } from '../transactions/changes.ts'
import { Projections } from '../transactions/projection.ts'
import { openForWriting, type SqliteDatabase } from './connection.ts'
import { CostExceededError, CostGuard } from './cost-guard.ts'
import { DatabaseFiles } from './database-files.ts'
import { SqliteExecutor } from './executor.ts'
import { GroupCommit } from './group-commit.ts'
import { sqlitePlanningCosts } from './planning-costs.ts'
import { Scans } from './scans.ts'
import { translateSqliteError } from './sqlite-errors.ts'
import { PreparedStatements } from './statements.ts'
import { analyzeTables, hasStatistics } from './statistics.ts'
import { Streams } from './streams.ts'
import { unsupportedDialect, unsupportedDriver } from './transaction.ts'

const MAX_QUEUE_LENGTH = 1_000
const MAX_COSTLY_BYTES = 256 * 1024
const ANALYZE_AFTER_CHANGES = 1_000

export interface SqliteStoreOptions {
  /** Seals the audit records. */
  readonly auditSealer: AuditSealer
  /** Receives errors of background work. */
  reportError(error: unknown): void
  /**
   * Stops the process, because memory no longer holds what the rows hold, or rows not what the log has led to. By default an
   * uncaught exception does.
   */
  readonly fail?: (error: Error) => void
  /** The log in which commits become durable. Defaults to the database itself. */
  readonly log?: CommitLog
  /** Looks at the rows after certain commits. */
  readonly observer?: RowObserver
  /** The memory for pages of the database. By default that of requests, which touch few of them. */
  readonly cacheMegabytes?: number
  /** How many transactions may wait for their turn; more are refused. */
  readonly maxQueueLength?: number
  /** Transactions that would wait for longer are refused, too. By default they wait for as long as it takes. */
  readonly maxQueueMs?: number
  /** Called before a database that has data is migrated. */
  readonly beforeMigration?: () => Promise<unknown>
  /** For tests. Defaults to those of this program. */
  readonly migrations?: readonly Migration[]
}

/**
 * Opens the database in `file`, creating and migrating it as needed.
 * @throws STORAGE_UNAVAILABLE if it cannot be read or written
 */
export async function openSqliteStore(file: string, clock: Clock, options: SqliteStoreOptions): Promise<Store> {
  let connection: SqliteDatabase | undefined
  try {
    connection = openForWriting(file)
    const { migrations = MIGRATIONS, beforeMigration } = options
    await requireOwnSchema(connection, migrations)
    if (options.cacheMegabytes !== undefined) connection.pragma(`cache_size = -${options.cacheMegabytes * 1024}`)
    if (needsMigration(connection, migrations)) await beforeMigration?.()
    await migrate(connection, clock, migrations)
    return new SqliteStore(file, connection, clock, options)
  } catch (error) {
    connection?.close()
    throw translateSqliteError(error)
  }
}

class SqliteStore implements Store {
  readonly db: Kysely<Database>
  readonly projections: Projections
  readonly results = new ResultCache()
  readonly auditSealer: AuditSealer
  readonly #connection: SqliteDatabase
  readonly #executor: SqliteExecutor
  readonly #guard = new CostGuard()
  readonly #scans: Scans
  /** The texts of statements that cost too much for this thread. */
  readonly #costlyStatements = new LRUCache<string, true>({
    maxSize: MAX_COSTLY_BYTES,
    sizeCalculation: (_, text) => 2 * text.length,
  })
  readonly #streams: Streams
  readonly #queue: GroupCommit
  readonly #audit: Audit
  readonly #files: DatabaseFiles
  readonly #reportError: SqliteStoreOptions['reportError']
  #commits = 0
  /** The approximate number of records that were ever created, and that number at the last analysis of the tables. */
  #createdRecords: number
  #analyzedRecords: number
  #divergence: Error | undefined
  #isClosed = false

  constructor(file: string, connection: SqliteDatabase, clock: Clock, options: SqliteStoreOptions) {
    const { auditSealer, reportError, fail = crash, log = new LocalLog() } = options
    const { maxQueueLength = MAX_QUEUE_LENGTH, maxQueueMs = Number.POSITIVE_INFINITY } = options
    const statements = new PreparedStatements(connection)
    const audit = new Audit(auditSealer, clock, log.node, readChainHead(connection, auditSealer, clock.now(), log.node))
    this.auditSealer = auditSealer
    this.#audit = audit
    this.#connection = connection
    this.#createdRecords = readNewestAuditRecord(connection)
    this.#analyzedRecords = hasStatistics(connection) ? this.#createdRecords : 0
    const files = new DatabaseFiles(file)
    this.#files = files
    this.#guard.install(connection)
    this.#scans = new Scans(file, files)
    this.#streams = new Streams(file, files, this.#scans)
    this.#reportError = reportError
    this.#queue = new GroupCommit({
      ...{ connection, statements, audit, files, clock, log, maxQueueLength, maxQueueMs },
      observer: options.observer,
      listener: {
        committed: (commit) => this.#announce(commit),
        foreignWrite: () => {
          this.results.clear()
          reportError(new Error('another process wrote to the database: cached data may be outdated'))
        },
        schemaMoved: (error) => {
          this.#divergence = error
          fail(error)
        },
        diverged: (error) => {
          this.#divergence = new RowsDivergedError(error)
          fail(this.#divergence)
        },
      },
    })
    this.#executor = new SqliteExecutor(statements, {
      check: (isReadOnly) => {
        if (!isReadOnly) throw new StoreMisuseError('changes go through Store.write')
        if (this.#queue.isInsideBody)
          throw new StoreMisuseError('inside a transaction, reads go through its own handle')
      },
    })
    this.db = new Kysely<Database>({
      config: { dialect: unsupportedDialect },
      dialect: unsupportedDialect,
      driver: unsupportedDriver,
      executor: this.#executor,
    })
    this.projections = new Projections({ db: this.db, own: [this.results], reportError, fail })
  }

  get position(): number {
    return this.#queue.position
  }

  get chain(): string {
    return this.#queue.chain
  }

  write<T>(body: (tx: TransactionScope) => Promise<T>, origin: AuditOrigin): Promise<T> {
    if (this.#isClosed) return Promise.reject(new StoreMisuseError('the store is closed'))
    if (this.#failure) return Promise.reject(errors.STORAGE_UNAVAILABLE(undefined, { cause: this.#failure }))
    return this.#queue.add(body, origin)
  }

  requireRoom(): void {
    this.#queue.requireRoom()
  }

  /** The error after which nothing may be served. */
  get #failure(): Error | undefined {
    return this.#divergence ?? this.projections.failure
  }

  async catchUp(): Promise<void> {
    if (this.#failure) throw this.#failure
    await this.#queue.catchUp()
  }

  recordBy(...recorders: readonly CommitRecorder[]): void {
    this.#queue.recorders = recorders
  }

  stream<Row>(query: Compilable<Row>, options: StreamOptions): AsyncIterable<Row> {
    return this.#streams.rows(query.compile(), options)
  }

  async scan<Row>(query: Compilable<Row>, reader: Reader): Promise<readonly Row[]> {
    return this.#scan(query.compile(), reader)
  }

  count(query: Compilable<{ n: number }>, tables: readonly string[], reader?: Reader): Promise<number> {
    const compiled = query.compile()
    const key = `${compiled.sql}\0${JSON.stringify(compiled.parameters)}`
    return this.results.find(key, async () => {
      const [row] = reader ? await this.#scan(compiled, reader) : this.#executor.read(compiled)
      return { value: row?.n ?? 0, tables, bytes: 0 }
    })
  }

  async analyze(): Promise<void> {
    const isFinished = await analyzeTables(this.#connection, () => this.#isClosed)
    if (isFinished) this.#analyzedRecords = this.#createdRecords
  }

  auditElapsed(): number {
    return this.#audit.elapsed()
  }

  stats(): StoreStats {
    return { commits: this.#commits, openStreams: this.#streams.open, scans: this.#scans.started, ...this.#queue.stats }
  }

  requireUsable(): void {
    if (this.#failure) throw this.#failure
    this.#files.requirePresent()
    readNewestAuditRecord(this.#connection)
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#queue.waitUntilDrained()
    try {
      this.#streams.close()
      await this.#scans.close()
    } finally {
      this.#connection.close()
    }
  }

  async #scan<Row>(query: CompiledQuery<Row>, reader: Reader): Promise<readonly Row[]> {
    if (!this.#costlyStatements.get(query.sql)) {
      try {
        return this.#guard.withinUnits(sqlitePlanningCosts.maxUnguarded, () => this.#executor.read(query))
      } catch (error) {
        if (!(error instanceof CostExceededError)) throw error
        this.#costlyStatements.set(query.sql, true)
      }
    }
    return this.#scans.rows(query, reader)
  }

  /**
   * Analyzes the tables after each doubling, because the plans for an empty database do not suit a full one. Only created
   * records count, because other changes barely affect the statistics.
   */
  #analyzeIfGrown(changes: Commit['changes']): void {
    for (const { operation } of changes) if (operation === 'create') this.#createdRecords += 1
    if (this.#createdRecords < Math.max(ANALYZE_AFTER_CHANGES, 2 * this.#analyzedRecords)) return
    this.#analyzedRecords = this.#createdRecords
    void this.analyze().catch(this.#reportError)
  }

  #announce(commit: Commit): Promise<void> | undefined {
    this.#commits += 1
    this.#analyzeIfGrown(commit.changes)
    return this.projections.apply(commit)
  }
}

/** Stops the process, as an exception does that no part expects. */
export function crash(error: Error): void {
  setImmediate(() => {
    throw error
  })
}

// How many of the newest records are searched for an intact one, whose age is reliable.
const MAX_CHANGED = 1_000

/**
 * Returns the state from which the chain continues: the hash of the newest record, and the age at present. Only the wall clock measures
 * the time in which this controller did not run, from its own last record on: the clocks of other controllers may show anything.
 */
function readChainHead(
  connection: SqliteDatabase,
  sealer: AuditSealer,
  now: Instant,
  ownName: string | null,
): ChainHead {
  const newest = connection
    .prepare(`select * from audit_records order by n desc limit ${MAX_CHANGED}`)
    .iterate() as Iterable<SealedRecord>
  let hash: string | undefined
  let elapsed = 0
  for (const record of newest) {
    hash ??= record.hash
    if (!sealer.isIntact(record)) continue
    elapsed = Math.max(elapsed, record.elapsed)
    if (record.node !== ownName) continue
    // If the clock was set back, the time in between counts as zero.
    return { hash, elapsed: Math.max(elapsed, record.elapsed + Math.max(0, now - record.at)) }
  }
  return { hash: hash ?? CHAIN_START, elapsed }
}

function readNewestAuditRecord(connection: SqliteDatabase): number {
  return (connection.prepare('select max(n) from audit_records').pluck().get() as number | null) ?? 0
}
