// What the rest of the controller knows of storage: reads, grouped durable writes, streams, events after commit.
import type { Compilable, Kysely, Transaction } from 'kysely'
import type { AuditSealer } from './audit-seal.ts'
import type { Change } from './changes.ts'
import type { Database } from './database.ts'
import type { Projections } from './projection.ts'

/** A transaction body's view of the store. */
export interface TransactionScope {
  readonly db: Transaction<Database>
  /** What transactions before this one changed that commit with it: projections do not hold it yet. */
  readonly earlierChanges: readonly Change[]
  /** Notes what this body changed: audited with it, announced after its commit. */
  record(change: Change): void
}

export interface Store {
  /** Seals its audit records, and verifies their seals. */
  readonly auditSealer: AuditSealer
  /** For reading; any statement that would change something is refused. */
  readonly db: Kysely<Database>
  /**
   * Runs `body` as a transaction and settles once it is on disk. The body awaits its own queries and nothing else:
   * awaiting a timer, a file or the network gets it refused with `NonQueryAwaitError` and rolled back.
   * @throws SERVER_TOO_MANY_REQUESTS where too many wait already, STORAGE_UNAVAILABLE where the disk takes nothing
   */
  write<T>(body: (tx: TransactionScope) => Promise<T>, origin: AuditOrigin): Promise<T>
  /**
   * Rows one by one on a connection of their own, on one state of the database, for as long as the options allow.
   * @throws SERVER_TOO_MANY_REQUESTS if the reader, or all readers together, have too many streams open
   */
  stream<Row>(query: Compilable<Row>, options: StreamOptions): AsyncIterable<Row>
  /**
   * The rows of a query whose cost its caller chose. If it is guarded (`SqlDialect.guard`) and turns out to cost more than may
   * hold up everything else, it is run again in a thread.
   * @throws INVALID_FILTER if it takes too long there, SERVER_TOO_MANY_REQUESTS if too many such reads wait for their turn
   */
  scan<Row>(query: Compilable<Row>, reader: Reader): Promise<readonly Row[]>
  /** Returns a count, cached until a commit changes one of its tables. With a reader it runs like `scan`. */
  count(query: Compilable<{ n: number }>, tables: readonly string[], reader?: Reader): Promise<number>
  /** What memory derives from commits: follows each of them before the callers of its transactions resume. */
  readonly projections: Projections
  /** Writes a consistent copy to `file`, beside running writes. */
  backup(file: string): Promise<void>
  /** Refreshes what the database knows of its tables; worth a moment every few hours. */
  analyze(): Promise<void>
  stats(): StoreStats
  /** Milliseconds that the audit has lasted, by a clock that is not set. */
  auditElapsed(): number
  /** Lets what waits commit, then closes. */
  close(): Promise<void>
}

/** Who and where a transaction comes from, for its audit records. */
export interface AuditOrigin {
  readonly actor: { readonly kind: string; readonly id: string | null; readonly name: string | null }
  readonly requestId: string
  readonly address: string | null
  /** Its transactions are the last to be refused where too many wait. */
  readonly isPrivileged?: boolean
}

/** On whose behalf something is read: what one reader may take is limited, and administrators have places of their own. */
export interface Reader {
  /** The id of the identity, or the kind of a caller that is none. */
  readonly id: string
  readonly isAdministrator: boolean
}

export interface StreamOptions {
  readonly reader: Reader
  /** Its rows may take long to find: they are looked for in a thread. The query is guarded (`SqlDialect.guard`). */
  readonly isCostly?: boolean
  /** After this long the stream is cut, because it holds an old state of the database. */
  readonly timeoutMs?: number
  /** After this long without a row being asked for the stream is cut. */
  readonly idleTimeoutMs?: number
}

export interface StoreStats {
  readonly commits: number
  readonly transactions: number
  readonly refused: number
  readonly waiting: number
  readonly openStreams: number
  /** Reads that were left to a thread. */
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

/** A handle was used outside the body it was made for, or to write where only reading is allowed. */
export class StoreMisuseError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'StoreMisuseError'
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
