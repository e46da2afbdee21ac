// Groups waiting transactions into one commit: a savepoint each, one fsync for all; callers resume once it is on disk.
import { setImmediate } from 'node:timers'
import type { Statement } from 'better-sqlite3'
import type { Clock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Audit } from '../audit/audit.ts'
import {
  type AuditOrigin,
  type CommitRecorder,
  NonQueryAwaitError,
  StoreMisuseError,
  type TransactionScope,
} from '../store.ts'
import type { Change, Commit } from '../transactions/changes.ts'
import { UncommittedChanges } from '../transactions/uncommitted-changes.ts'
import type { CommitPosition } from './commit-position.ts'
import type { SqliteDatabase } from './connection.ts'
import type { DatabaseFiles } from './database-files.ts'
import { isBusy, translateSqliteError } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'
import { openQueryHandle } from './transaction.ts'

// A group ends at the first of these limits. Larger groups commit more per fsync, but delay other requests: at 64 bodies the
// 99th percentile of an event-loop turn stays under 10 ms.
const MAX_TRANSACTIONS = 64
const MAX_GROUP_MS = 4

// How long a group may wait for more transactions. It waits only while each turn of the event loop adds some: eight clients
// that write continuously then share each commit, instead of four or five of them, and a single client does not wait.
const MAX_GATHER_MS = 1

// How often, and after which delay, a database that another process has locked is retried before the writers get a 503.
const BUSY_RETRY_MS = 20
const MAX_BUSY_RETRIES = 100

const RETRY_AFTER_SECONDS = 5

/** A transaction that waits for its turn. */
interface Job {
  readonly body: (tx: TransactionScope) => Promise<unknown>
  readonly origin: AuditOrigin
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * The outcome of a body. Its caller resumes after the group's commit, also if the body failed: a caller that resumed earlier
 * would run between two bodies, and read data that is not on disk yet.
 */
type Outcome =
  | { readonly job: Job; readonly isOk: true; readonly value: unknown; readonly changes: readonly Change[] }
  | { readonly job: Job; readonly isOk: false; readonly error: unknown }

/** The events that the queue reports to the store. */
export interface GroupListener {
  /** @returns undefined, or a promise that settles before the callers of the group resume */
  committed(commit: Commit): Promise<void> | undefined
  /** Another process wrote to the file: cached data may be outdated. Called inside the next group. */
  foreignWrite(): void
}

export class GroupCommit {
  /** They take part in every commit. */
  recorders: readonly CommitRecorder[] = []
  readonly #connection: SqliteDatabase
  readonly #statements: PreparedStatements
  readonly #control: ControlStatements
  readonly #audit: Audit
  readonly #files: DatabaseFiles
  readonly #listener: GroupListener
  readonly #maxQueueLength: number
  #jobs: Job[] = []
  #isScheduled = false
  #gatheringSince = 0
  #isInsideBody = false
  #running: Promise<void> | undefined
  #busyRetries = 0
  #dataVersion: unknown
  /** The position and the time of the last commit. */
  #last: CommitPosition
  readonly #clock: Clock
  #transactions = 0
  #refused = 0

  constructor(
    connection: SqliteDatabase,
    statements: PreparedStatements,
    audit: Audit,
    files: DatabaseFiles,
    clock: Clock,
    maxQueueLength: number,
    listener: GroupListener,
  ) {
    this.#connection = connection
    this.#statements = statements
    this.#control = new ControlStatements(connection)
    this.#audit = audit
    this.#files = files
    this.#clock = clock
    this.#maxQueueLength = maxQueueLength
    this.#listener = listener
    this.#dataVersion = this.#control.dataVersion()
    this.#last = this.#control.readLast()
  }

  get stats() {
    return { transactions: this.#transactions, refused: this.#refused, waiting: this.#jobs.length }
  }

  /** True while a transaction's body runs: then reads must use its own handle. */
  get isInsideBody(): boolean {
    return this.#isInsideBody
  }

  /**
   * Queues a transaction. Throws inside a body, because the inner transaction could only run after the outer one.
   * @throws SERVER_TOO_MANY_REQUESTS if the queue is full; for privileged callers it is twice as long
   */
  add<T>(body: (tx: TransactionScope) => Promise<T>, origin: AuditOrigin): Promise<T> {
    if (this.#isInsideBody) throw new StoreMisuseError('a transaction was started inside another one')
    if (this.#jobs.length >= this.#maxQueueLength * (origin.isPrivileged ? 2 : 1)) {
      const cause = `${this.#jobs.length} transactions wait for their turn`
      return Promise.reject(errors.SERVER_TOO_MANY_REQUESTS(undefined, { cause, retryAfterSeconds: 1 }))
    }
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ body, origin, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** Settles once the queue is empty. */
  async waitUntilDrained(): Promise<void> {
    while (this.#jobs.length > 0 || this.#running) {
      await (this.#running ?? new Promise((resolve) => setImmediate(resolve)))
    }
  }

  #schedule(): void {
    if (this.#isScheduled) return
    this.#isScheduled = true
    this.#gatheringSince = performance.now()
    setImmediate(() => this.#gather(0))
  }

  #gather(before: number): void {
    const waiting = this.#jobs.length
    const isGrowing = waiting > before && waiting < MAX_TRANSACTIONS
    if (isGrowing && performance.now() - this.#gatheringSince < MAX_GATHER_MS) {
      setImmediate(() => this.#gather(waiting))
    } else {
      this.#drain()
    }
  }

  #drain(): void {
    this.#isScheduled = false
    if (this.#jobs.length === 0 || !this.#begin()) return
    const group = this.#jobs.splice(0)
    this.#running = this.#runGroup(group).finally(() => {
      this.#running = undefined
      if (this.#jobs.length > 0) this.#schedule()
    })
  }

  /** Opens the group's transaction. Returns false if another process has locked the database; it is then retried later. */
  #begin(): boolean {
    try {
      this.#files.requirePresent()
      this.#control.begin.run()
      this.#busyRetries = 0
      return true
    } catch (error) {
      if (isBusy(error) && this.#busyRetries < MAX_BUSY_RETRIES) {
        this.#busyRetries += 1
        this.#isScheduled = true
        setTimeout(() => this.#drain(), BUSY_RETRY_MS)
        return false
      }
      this.#busyRetries = 0
      for (const job of this.#jobs.splice(0)) job.reject(translateSqliteError(error))
      return false
    }
  }

  // Nothing here yields to the event loop, so no request reads between the statements of a group.
  async #runGroup(group: Job[]): Promise<void> {
    const outcomes: Outcome[] = []
    const tables = new Set<string>()
    let failure: unknown
    let changes: readonly Change[] = []
    const mark = this.#audit.mark()
    try {
      this.#noticeForeignWrites()
      await this.#runBodies(group, outcomes, tables)
      changes = listChanges(outcomes)
      const next = this.#next(outcomes)
      await this.#record({ ...next, changes })
      failure = this.#commit(next)
      this.#jobs = [...group.slice(outcomes.length), ...this.#jobs]
    } catch (error) {
      failure = toUnavailableError(error)
      this.#rollBack()
      for (const job of group.slice(outcomes.length)) job.reject(failure)
    }
    if (failure !== undefined) this.#audit.reset(mark)
    else failure = await this.#announce(outcomes, { ...this.#last, changes, tables: [...tables] })
    for (const outcome of outcomes) {
      if (!outcome.isOk) outcome.job.reject(outcome.error)
      else if (failure !== undefined) outcome.job.reject(failure)
      else outcome.job.resolve(outcome.value)
    }
  }

  async #runBodies(group: readonly Job[], outcomes: Outcome[], tables: Set<string>): Promise<void> {
    const started = performance.now()
    const changes: Change[] = []
    for (const job of group.slice(0, MAX_TRANSACTIONS)) {
      if (outcomes.length > 0 && performance.now() - started > MAX_GROUP_MS) break
      const outcome = await this.#runBody(job, tables, changes)
      outcomes.push(outcome)
      if (outcome.isOk) for (const change of outcome.changes) changes.push(change)
      // If the disk is full, for example, SQLite rolls back the whole transaction, not only this savepoint.
      if (!this.#connection.inTransaction) break
    }
  }

  /** Detects writes of another process, after which projections may be outdated. */
  #noticeForeignWrites(): void {
    const version = this.#control.dataVersion()
    if (version === this.#dataVersion) return
    this.#dataVersion = version
    this.#last = this.#control.readLast()
    this.#listener.foreignWrite()
    this.#files.requireLock()
  }

  /** The position and the time of the commit of a group: the next ones, if any of it succeeded. */
  #next(outcomes: readonly Outcome[]): CommitPosition {
    const { position, at } = this.#last
    if (!outcomes.some(({ isOk }) => isOk)) return this.#last
    return { position: position + 1, at: Math.max(this.#clock.now(), at + 1) }
  }

  /** Has the recorders write what belongs to the commit. */
  async #record(commit: Omit<Commit, 'tables'>): Promise<void> {
    const recorders = this.recorders.filter((recorder) => recorder.concerns(commit.changes))
    if (recorders.length === 0 || !this.#connection.inTransaction) return
    const handle = openQueryHandle(this.#statements)
    this.#isInsideBody = true
    try {
      for (const recorder of recorders) await recorder.record(commit, handle.db)
    } finally {
      handle.close()
      this.#isInsideBody = false
    }
  }

  /** Commits the group. Returns the error for its callers if that fails. */
  #commit(next: CommitPosition): unknown {
    try {
      if (!this.#connection.inTransaction) throw new Error('SQLite ended the transaction of this group')
      if (next !== this.#last) this.#control.setLast.run(next)
      this.#control.commit.run()
      this.#last = next
      // A commit to a deleted file is not stored, so its callers must not resume as if it were.
      this.#files.requirePresent()
      return undefined
    } catch (error) {
      this.#rollBack()
      return toUnavailableError(error)
    }
  }

  #rollBack(): void {
    if (this.#connection.inTransaction) this.#control.rollback.run()
  }

  /**
   * Applies the commit to the projections. A projection that has to be rebuilt only reads rows, so the event loop gets no
   * turn.
   * @returns the error for the callers if a projection cannot be rebuilt: their changes are on disk, but not served
   */
  #announce(outcomes: readonly Outcome[], commit: Commit): Promise<unknown> | undefined {
    for (const { isOk } of outcomes) if (isOk) this.#transactions += 1
    return this.#listener.committed(commit)?.then(() => undefined, toUnavailableError)
  }

  /** Runs one body in its savepoint. */
  async #runBody(job: Job, tables: Set<string>, earlierChanges: readonly Change[]): Promise<Outcome> {
    const mark = this.#audit.mark()
    const uncommitted = new UncommittedChanges(earlierChanges)
    const handle = openQueryHandle(this.#statements)
    this.#isInsideBody = true
    try {
      this.#control.savepoint.run()
      const value = await this.#rejectNonQueryAwait(async () => {
        const result = await job.body({ db: handle.db, uncommitted, record: (change) => uncommitted.add(change) })
        await this.#audit.append(handle.db, uncommitted.own, job.origin)
        return result
      })
      this.#control.release.run()
      for (const table of handle.tables) tables.add(table)
      return { job, isOk: true, value, changes: uncommitted.own }
    } catch (error) {
      this.#audit.reset(mark)
      this.#undoBody()
      return { job, isOk: false, error: translateSqliteError(error) }
    } finally {
      handle.close()
      this.#isInsideBody = false
    }
  }

  #undoBody(): void {
    if (!this.#connection.inTransaction) return
    try {
      this.#control.rollbackTo.run()
      this.#control.release.run()
    } catch {
      // Then the whole group is rolled back, and each of its callers gets the error of the commit.
      this.#rollBack()
    }
  }

  /**
   * Runs `work`, or rejects it as soon as it awaits anything but its own queries. If all microtasks are done and `work` is
   * not, it awaits the event loop: `process.nextTick` from a microtask runs exactly then, before any I/O.
   */
  #rejectNonQueryAwait<T>(work: () => Promise<T>): Promise<T> {
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
          reject(new NonQueryAwaitError())
        }),
      )
    })
  }
}

/** The changes of a group that are announced: failed bodies have none. */
function listChanges(outcomes: readonly Outcome[]): readonly Change[] {
  const changes = outcomes.flatMap((outcome) => (outcome.isOk ? outcome.changes : []))
  return changes.filter(({ isAuditOnly }) => !isAuditOnly)
}

function toUnavailableError(cause: unknown): unknown {
  return errors.STORAGE_UNAVAILABLE(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
}

/** The statements around bodies, prepared once. */
class ControlStatements {
  readonly begin: Statement
  readonly commit: Statement
  readonly rollback: Statement
  readonly savepoint: Statement
  readonly release: Statement
  readonly rollbackTo: Statement
  readonly setLast: Statement<[CommitPosition]>
  readonly #last: Statement
  readonly #dataVersion: Statement

  constructor(connection: SqliteDatabase) {
    this.begin = connection.prepare('begin immediate')
    this.commit = connection.prepare('commit')
    this.rollback = connection.prepare('rollback')
    this.savepoint = connection.prepare('savepoint body')
    this.release = connection.prepare('release body')
    this.rollbackTo = connection.prepare('rollback to body')
    this.setLast = connection.prepare('update commit_position set position = @position, at = @at')
    this.#last = connection.prepare('select position, at from commit_position')
    this.#dataVersion = connection.prepare('pragma data_version').pluck()
  }

  /** The position and the time of the last commit. */
  readLast(): CommitPosition {
    return this.#last.get() as CommitPosition
  }

  /** Changes if another connection writes to the file, but not if this one does. */
  dataVersion(): unknown {
    return this.#dataVersion.get()
  }
}
