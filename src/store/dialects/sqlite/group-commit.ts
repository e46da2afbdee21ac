// Groups waiting transactions into one commit: a savepoint each, one fsync for all, answered once it is on disk.
import { setImmediate } from 'node:timers'
import { type RootOperationNode, SqliteAdapter, SqliteQueryCompiler, Transaction } from 'kysely'
import { errors } from '../../../errors.ts'
import type { Audit } from '../../audit.ts'
import type { Change } from '../../changes.ts'
import type { Database } from '../../database.ts'
import { ForeignAwait, type Stamp, StoreMisuse, type Writing } from '../../store.ts'
import type { SqliteDatabase } from './connection.ts'
import { SqliteExecutor } from './executor.ts'
import { isBusy, translate } from './faults.ts'
import type { Statements } from './statements.ts'

// A group ends at whichever comes first. Larger groups commit more per fsync, but hold up the requests beside them:
// at 64 bodies the 99th percentile of an event-loop turn stays under 10 ms.
const MOST_BODIES = 64
const MOST_MILLISECONDS = 4

// How often a database locked by another process is asked again, and for how long, before the writers get a 503.
const BUSY_RETRY_MILLISECONDS = 20
const BUSY_RETRIES = 100

/** A transaction that waits for its turn. */
interface Job {
  readonly body: (tx: Writing) => Promise<unknown>
  readonly stamp: Stamp
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * A body that ran. Its caller learns of it after the group's commit, also where it failed: a caller that resumed
 * earlier would run between two bodies, and read what is not on disk yet.
 */
type Ran =
  | { readonly job: Job; readonly isOk: true; readonly value: unknown; readonly changes: readonly Change[] }
  | { readonly job: Job; readonly isOk: false; readonly error: unknown }

/** What a group's commit did, for whoever keeps something in memory that follows the tables. */
export interface Committed {
  readonly changes: readonly (readonly Change[])[]
  readonly tables: ReadonlySet<string>
}

export class GroupCommit {
  readonly #connection: SqliteDatabase
  readonly #statements: Statements
  readonly #audit: Audit
  readonly #onCommitted: (committed: Committed) => void
  #waiting: Job[] = []
  #isScheduled = false
  #isInsideBody = false
  #running: Promise<void> | undefined
  #busyRetries = 0
  #transactions = 0
  #refused = 0

  constructor(
    connection: SqliteDatabase,
    statements: Statements,
    audit: Audit,
    onCommitted: (committed: Committed) => void,
  ) {
    this.#connection = connection
    this.#statements = statements
    this.#audit = audit
    this.#onCommitted = onCommitted
  }

  get stats() {
    return { transactions: this.#transactions, refused: this.#refused, waiting: this.#waiting.length }
  }

  /** True while a transaction's body runs: then reads belong on its own handle. */
  get isInsideBody(): boolean {
    return this.#isInsideBody
  }

  /** Puts a transaction in line. Called inside a body it throws: the inner one could only run after the outer. */
  add<T>(body: (tx: Writing) => Promise<T>, stamp: Stamp): Promise<T> {
    if (this.#isInsideBody) throw new StoreMisuse('a transaction was started inside another one')
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ body, stamp, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Settles once nothing waits any more. */
  async drained(): Promise<void> {
    while (this.#waiting.length > 0 || this.#running) {
      await (this.#running ?? new Promise((resolve) => setImmediate(resolve)))
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => this.#drain())
  }

  #drain(): void {
    this.#isScheduled = false
    if (this.#waiting.length === 0 || !this.#begin()) return
    const group = this.#waiting.splice(0)
    this.#running = this.#runGroup(group).finally(() => {
      this.#running = undefined
      if (this.#waiting.length > 0) this.#schedule()
    })
  }

  /** Opens the group's transaction; false where another process holds the database, then it is asked again later. */
  #begin(): boolean {
    try {
      this.#connection.exec('begin immediate')
      this.#busyRetries = 0
      return true
    } catch (error) {
      if (isBusy(error) && this.#busyRetries < BUSY_RETRIES) {
        this.#busyRetries += 1
        this.#isScheduled = true
        setTimeout(() => this.#drain(), BUSY_RETRY_MILLISECONDS)
        return false
      }
      this.#busyRetries = 0
      for (const job of this.#waiting.splice(0)) job.reject(translate(error))
      return false
    }
  }

  // Nothing in here gives the event loop a turn, so no request reads between the statements of a group.
  async #runGroup(group: Job[]): Promise<void> {
    const mark = this.#audit.mark()
    const tables = new Set<string>()
    const ran: Ran[] = []
    const started = performance.now()
    for (const job of group.slice(0, MOST_BODIES)) {
      if (ran.length > 0 && performance.now() - started > MOST_MILLISECONDS) break
      ran.push(await this.#runBody(job, tables))
      // On a full disk and the like SQLite ends the whole transaction, not just this savepoint.
      if (!this.#connection.inTransaction) break
    }
    this.#waiting = [...group.slice(ran.length), ...this.#waiting]
    const failure = this.#commit()
    if (failure !== undefined) this.#audit.reset(mark)
    else this.#announce(ran, tables)
    for (const outcome of ran) {
      if (!outcome.isOk) outcome.job.reject(outcome.error)
      else if (failure !== undefined) outcome.job.reject(failure)
      else outcome.job.resolve(outcome.value)
    }
  }

  /** Puts the group on disk; returns what its callers are told where that fails. */
  #commit(): unknown {
    try {
      if (!this.#connection.inTransaction) throw new Error('SQLite ended the transaction of this group')
      this.#connection.exec('commit')
      return undefined
    } catch (error) {
      if (this.#connection.inTransaction) this.#connection.exec('rollback')
      return errors.STORAGE_UNAVAILABLE(undefined, { cause: error, retryAfterSeconds: 5 })
    }
  }

  #announce(ran: readonly Ran[], tables: ReadonlySet<string>): void {
    const changes = ran.flatMap((outcome) => (outcome.isOk ? [outcome.changes] : []))
    this.#transactions += changes.length
    this.#onCommitted({ changes, tables })
  }

  /** Runs one body in its savepoint. */
  async #runBody(job: Job, tables: Set<string>): Promise<Ran> {
    const mark = this.#audit.mark()
    const changes: Change[] = []
    const touched = new Set<string>()
    const handle = this.#handle((table) => touched.add(table))
    this.#connection.exec('savepoint body')
    this.#isInsideBody = true
    try {
      const value = await this.#orForeignAwait(async () => {
        const result = await job.body({ db: handle.db, record: (change) => changes.push(change) })
        await this.#audit.append(handle.db, changes, job.stamp)
        return result
      })
      this.#connection.exec('release body')
      for (const table of touched) tables.add(table)
      return { job, isOk: true, value, changes }
    } catch (error) {
      this.#audit.reset(mark)
      if (this.#connection.inTransaction) this.#connection.exec('rollback to body; release body')
      return { job, isOk: false, error: translate(error) }
    } finally {
      handle.close()
      this.#isInsideBody = false
    }
  }

  /**
   * Runs `work`, or refuses it as soon as it awaits something foreign. When all microtasks are done and it is not, what
   * it awaits needs the event loop: `process.nextTick` from a microtask runs exactly then, before any I/O.
   */
  #orForeignAwait<T>(work: () => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      let isSettled = false
      work().then(
        (value) => {
          isSettled = true
          resolve(value)
        },
        (error) => {
          isSettled = true
          reject(error)
        },
      )
      queueMicrotask(() =>
        process.nextTick(() => {
          if (isSettled) return
          this.#refused += 1
          reject(new ForeignAwait())
        }),
      )
    })
  }

  /** A Kysely transaction on this connection that can be closed, so that a body cannot go on after its end. */
  #handle(onTable: (table: string) => void): { db: Transaction<Database>; close(): void } {
    let isOpen = true
    const executor = new SqliteExecutor(this.#statements, {
      check: () => {
        if (!isOpen) throw new StoreMisuse('a transaction was used after its end')
      },
      changed: (query) => {
        const table = tableOf(query)
        if (table) onTable(table)
      },
    })
    const db = new Transaction<Database>({
      config: { dialect: unusableDialect },
      dialect: unusableDialect,
      driver: unusableDriver,
      executor,
    })
    return {
      db,
      close: () => {
        isOpen = false
      },
    }
  }
}

/** The table that a statement changes. */
export function tableOf(query: RootOperationNode): string | undefined {
  switch (query.kind) {
    case 'InsertQueryNode':
      return query.into?.table.identifier.name
    case 'DeleteQueryNode':
      return firstTable(query.from.froms)
    case 'UpdateQueryNode':
      return query.table ? firstTable([query.table]) : undefined
    default:
      return undefined
  }
}

function firstTable(nodes: readonly unknown[]): string | undefined {
  const node = nodes[0] as { kind: string; table?: { identifier: { name: string } } } | undefined
  return node?.kind === 'TableNode' ? node.table?.identifier.name : undefined
}

const refuse = () => {
  throw new StoreMisuse('queries run through the executor')
}

/** Kysely asks for a driver and a dialect; with an executor of its own it uses neither. */
export const unusableDriver = {
  init: refuse,
  acquireConnection: refuse,
  beginTransaction: refuse,
  commitTransaction: refuse,
  rollbackTransaction: refuse,
  releaseConnection: refuse,
  destroy: async () => {},
}
export const unusableDialect = {
  createDriver: () => unusableDriver,
  createQueryCompiler: () => new SqliteQueryCompiler(),
  createAdapter: () => new SqliteAdapter(),
  createIntrospector: refuse,
}
