// The interface of the store: reads, grouped durable writes, streams, events after commit.
import type { Compilable, Kysely, Transaction } from 'kysely'
import type { AuditSealer } from './audit/audit-seal.ts'
import type { Database } from './database.ts'
import type { ResultCache } from './result-cache.ts'
import type { Change, Commit } from './transactions/changes.ts'
import type { Projections } from './transactions/projection.ts'
import type { UncommittedChanges } from './transactions/uncommitted-changes.ts'

/** A transaction body's view of the store. */
export interface TransactionScope {
  readonly db: Transaction<Database>
  readonly uncommitted: UncommittedChanges
  /** Records a change of this body: it is audited in the transaction, and announced after the commit. */
  record(change: Change): void
}

/** Writes what belongs to a whole commit, in its transaction. */
export interface CommitRecorder {
  readonly name: string
  /** Whether it has anything to write. Asked for each commit, so that the others cost nothing. */
  concerns(changes: readonly Change[]): boolean
  /**
   * Runs last in the transaction, and awaits only its own queries. If it throws, nothing is committed. Returns what the commit says of
   * it to what follows: plain JSON, or nothing.
   */
  record(commit: Omit<Commit, 'tables'>, db: Transaction<Database>): Promise<unknown>
}

export interface Store {
  /** The position of the last commit. */
  readonly position: number
  /** Tells which commits led to it, if controllers share a log; empty otherwise. */
  readonly chain: string
  /** Seals its audit records, and verifies their seals. */
  readonly auditSealer: AuditSealer
  /** For reading; statements that change data are rejected. */
  readonly db: Kysely<Database>
  /**
   * Runs `body` as a transaction and settles once it is on disk. The body awaits its own queries and nothing else: if it
   * awaits a timer, a file or the network, it is rejected with `NonQueryAwaitError` and rolled back.
   * @throws SERVER_TOO_MANY_REQUESTS if too many wait already, STORAGE_UNAVAILABLE if the disk cannot be written
   */
  write<T>(body: (tx: TransactionScope) => Promise<T>, origin: AuditOrigin): Promise<T>
  /** Requires that a transaction would not be refused now. @throws SERVER_TOO_MANY_REQUESTS */
  requireRoom(): void
  /**
   * Applies what other controllers have committed to a log that they share.
   * @throws if the log is out of reach, or the rows are not those that it has led to
   */
  catchUp(): Promise<void>
  /**
   * Streams rows one by one on a connection of their own, from one snapshot of the database, for as long as the options allow.
   * @throws SERVER_TOO_MANY_REQUESTS if the reader, or all readers together, have too many streams open
   */
  stream<Row>(query: Compilable<Row>, options: StreamOptions): AsyncIterable<Row>
  /**
   * The rows of a query whose cost its caller determines. If it is guarded (`SqlDialect.guard`) and costs too much for the
   * main thread, it is run again in a worker thread.
   * @throws INVALID_FILTER if it takes too long there, SERVER_TOO_MANY_REQUESTS if too many such reads wait for their turn
   */
  scan<Row>(query: Compilable<Row>, reader: Reader): Promise<readonly Row[]>
  /** Returns a count, cached until a commit changes one of its tables. With a reader it runs like `scan`. */
  count(query: Compilable<{ n: number }>, tables: readonly string[], reader?: Reader): Promise<number>
  /** Results of queries, until a commit changes one of the tables that they were read from. */
  readonly results: ResultCache
  /** From now on these take part in every commit, in this order, and no others. */
  recordBy(...recorders: readonly CommitRecorder[]): void
  /** State in memory, which follows each commit before the callers of its transactions resume. */
  readonly projections: Projections
  /** Refreshes the statistics of the query planner; worthwhile every few hours. */
  analyze(): Promise<void>
  stats(): StoreStats
  /** @throws if the database cannot be read, or its files were replaced, so that no write can succeed */
  requireUsable(): void
  /** The age of the audit in milliseconds, by a clock that is never set. */
  auditElapsed(): number
  /** Commits the waiting transactions, then closes. */
  close(): Promise<void>
}

/** The actor and the origin of a transaction, for its audit records. */
export interface AuditOrigin {
  readonly actor: { readonly kind: string; readonly id: string | null; readonly name: string | null }
  readonly requestId: string
  readonly address: string | null
  /** Its transactions are the last to be refused if too many wait. */
  readonly isPrivileged?: boolean
}

/**
 * The caller on whose behalf data is read. The work for one reader is limited, and administrators have capacity of their own.
 */
export interface Reader {
  /** The id of the identity, or the kind of a caller without one. */
  readonly id: string
  readonly isAdministrator: boolean
}

export interface StreamOptions {
  readonly reader: Reader
  /** Its rows may take long to find, so a thread does it. The query is guarded (`SqlDialect.guard`). */
  readonly isCostly?: boolean
  /** The stream is cut after this time, because it holds an old snapshot of the database. */
  readonly timeoutMs?: number
  /** The stream is cut after this time without a read. */
  readonly idleTimeoutMs?: number
}

export interface StoreStats {
  readonly commits: number
  readonly transactions: number
  readonly refused: number
  readonly waiting: number
  /** Commits of other controllers that were applied, and how many times that was done. */
  readonly followedCommits: number
  readonly catchUps: number
  readonly openStreams: number
  /** Reads that ran in a thread. */
  readonly scans: number
}

/** A body awaited something other than its own queries. */
export class NonQueryAwaitError extends Error {
  constructor() {
    super(
      'a transaction awaited something other than its own queries: hash, sign, read files and call the network before it',
    )
    this.name = 'NonQueryAwaitError'
  }
}

/** A handle was used outside the body it was made for, or to write although only reading is allowed. */
export class StoreMisuseError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreMisuseError'
  }
}

/** The rows of a file are not those that the log has led to, which several controllers share: nothing of it may be served any more. */
export class RowsDivergedError extends Error {
  /** The difference, in a sentence. */
  get reason(): string {
    return `${this.message}: ${(this.cause as Error).message}`
  }

  constructor(cause: unknown) {
    super('the rows differ from those of the log', { cause })
    this.name = 'RowsDivergedError'
  }
}

/** A unique index refused a row. */
export class UniqueViolationError extends Error {
  readonly table: string
  readonly columns: readonly string[]

  constructor(table: string, columns: readonly string[], cause: unknown) {
    super(`a row of ${table} with the same ${columns.join(', ')} exists`, { cause })
    this.name = 'UniqueViolationError'
    this.table = table
    this.columns = columns
  }
}
