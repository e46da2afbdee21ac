// Groups waiting transactions into one commit: a savepoint each, one fsync for all; callers resume once it is on disk.
//
// A group begins with the turn that the log grants. If the database is the log, its commit is that of the group. If several
// controllers share one, the rows are rolled back, and change once the log has taken the commit, as they do for everyone else.
import { setImmediate } from 'node:timers'
import type { Clock } from '../../foundation/clock.ts'
import { errors } from '../../foundation/errors.ts'
import type { Audit } from '../audit/audit.ts'
import { type CommitLog, type LogPosition, OutcomeUnknownError, type RowObserver, type Turn } from '../commit-log.ts'
import { type AuditOrigin, type CommitRecorder, StoreMisuseError, type TransactionScope } from '../store.ts'
import type { Change, Commit } from '../transactions/changes.ts'
import { BodyRunner, type Job, type Outcome } from './body-runner.ts'
import type { SqliteDatabase } from './connection.ts'
import { ControlStatements } from './control-statements.ts'
import type { DatabaseFiles } from './database-files.ts'
import { JobQueue } from './job-queue.ts'
import { RowCapture } from './row-capture.ts'
import { type FollowListener, RowFollower } from './row-follower.ts'
import { isBusy, translateSqliteError } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'
import { WritePace } from './write-pace.ts'

// Larger groups commit more per fsync, but delay other requests.
const MAX_TRANSACTIONS = 64

// How long a group may wait for more transactions. It waits only while each turn of the event loop adds some: eight clients
// that write continuously then share each commit, instead of four or five of them, and a single client does not wait.
const MAX_GATHER_MS = 1

// How often, and after which delay, a database that another process has locked is retried before the writers get a 503.
const BUSY_RETRY_MS = 20
const MAX_BUSY_RETRIES = 100

const RETRY_AFTER_SECONDS = 5

// How many commits of others are applied at a time.
const READ_LIMIT = 256

/** The events that the queue reports to the store. */
export interface GroupListener extends FollowListener {
  /** Another process wrote to the file: cached data may be outdated. Called inside the next group. */
  foreignWrite(): void
}

interface GroupCommitParts {
  readonly connection: SqliteDatabase
  readonly statements: PreparedStatements
  readonly audit: Audit
  readonly files: DatabaseFiles
  readonly clock: Clock
  readonly log: CommitLog
  readonly maxQueueLength: number
  readonly maxQueueMs: number
  readonly listener: GroupListener
  readonly observer: RowObserver | undefined
}

export class GroupCommit {
  /** They take part in every commit. */
  recorders: readonly CommitRecorder[] = []
  readonly #parts: GroupCommitParts
  readonly #control: ControlStatements
  readonly #bodies: BodyRunner
  readonly #capture: RowCapture
  readonly #follower: RowFollower
  readonly #pace: WritePace
  readonly #jobs = new JobQueue()
  #isScheduled = false
  #gatheringSince = 0
  /** The group that waits for its turn, or has it. */
  #group: Promise<void> | undefined
  /** The group that has its turn, or commits of others that are applied. */
  #running: Promise<void> | undefined
  #busyRetries = 0
  #dataVersion: unknown
  #transactions = 0

  constructor(parts: GroupCommitParts) {
    this.#parts = parts
    const { connection, statements, audit, maxQueueLength: maxLength, maxQueueMs: maxWaitMs, clock } = parts
    this.#pace = new WritePace({ maxLength, maxWaitMs, clock })
    this.#control = new ControlStatements(connection)
    this.#bodies = new BodyRunner({ connection, statements, control: this.#control, audit })
    this.#capture = new RowCapture(connection)
    this.#dataVersion = this.#control.dataVersion()
    const { files, listener, observer } = parts
    const [control, capture] = [this.#control, this.#capture]
    this.#follower = new RowFollower({ connection, statements, control, capture, audit, files, listener, observer })
  }

  get stats() {
    return {
      transactions: this.#transactions,
      refused: this.#bodies.refused,
      waiting: this.#jobs.length,
      ...this.#follower.stats,
    }
  }

  /** The position of the last commit. */
  get position(): number {
    return this.#follower.last.position
  }

  /** Tells which commits led to it. */
  get chain(): string {
    return this.#follower.last.chain
  }

  /** True while a transaction's body runs: then reads must use its own handle. */
  get isInsideBody(): boolean {
    return this.#bodies.isRunning
  }

  /**
   * Queues a transaction. Throws inside a body, because the inner transaction could only run after the outer one.
   * @throws SERVER_TOO_MANY_REQUESTS if the queue is full, or would take too long; for privileged callers it is twice as long
   */
  add<T>(body: (tx: TransactionScope) => Promise<T>, origin: AuditOrigin): Promise<T> {
    if (this.isInsideBody) throw new StoreMisuseError('a transaction was started inside another one')
    try {
      this.requireRoom(origin.isPrivileged)
    } catch (error) {
      return Promise.reject(error)
    }
    return new Promise<T>((resolve, reject) => {
      this.#jobs.add({ body, origin, resolve: resolve as (value: unknown) => void, reject })
      this.#schedule()
    })
  }

  /** @throws SERVER_TOO_MANY_REQUESTS if the queue takes no further transaction */
  requireRoom(isPrivileged = false): void {
    this.#pace.requireRoom(this.#jobs.length, isPrivileged)
  }

  /** Settles once the queue is empty. */
  async waitUntilDrained(): Promise<void> {
    while (this.#jobs.length > 0 || this.#group || this.#running) {
      await (this.#group ?? this.#running ?? new Promise((resolve) => setImmediate(resolve)))
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
    if (this.#jobs.length === 0 || this.#group) return
    this.#group = this.#commitGroup().finally(() => {
      this.#group = undefined
      if (this.#jobs.length > 0) this.#schedule()
    })
  }

  /** Runs what may not overlap: a group that has its turn, or commits of others. */
  async #runAlone(work: () => Promise<void>): Promise<void> {
    while (this.#running) await this.#running
    const running = work().finally(() => {
      this.#running = undefined
    })
    this.#running = running.catch(() => undefined)
    return running
  }

  /** Applies what others have committed since the last commit. @throws if the log is out of reach, or contradicts the rows */
  async catchUp(): Promise<void> {
    for (;;) {
      const commits = await this.#parts.log.readAfter(this.#follower.last, READ_LIMIT)
      if (commits.length === 0) return
      await this.#runAlone(() => this.#follower.follow(commits))
      if (commits.length < READ_LIMIT) return
    }
  }

  async #commitGroup(): Promise<void> {
    const askedAt = this.#parts.clock.monotonic()
    const { last } = this.#follower
    try {
      // Meanwhile commits of others are applied: what it has missed when its turn comes is little.
      const turn = await this.#parts.log.acquire(last)
      await this.#useTurn(turn, turn.missed.at(-1) ?? last, askedAt)
    } catch (error) {
      for (const job of this.#jobs.takeAll()) job.reject(toUnavailableError(error))
    }
  }

  /** @param head the end of the log, which no other controller moves meanwhile */
  async #useTurn(turn: Turn, head: LogPosition, askedAt: number): Promise<void> {
    try {
      await this.#runAlone(async () => {
        const missed = this.#follower.listMissed(turn.missed)
        await this.#follower.follow(missed.map((commit) => commit.read()))
        this.#follower.requireAt(head)
        if (this.#begin()) await this.#runGroup(turn, this.#jobs.takeAll(), askedAt)
      })
    } finally {
      await turn.abandon()
    }
  }

  /** Opens the group's transaction. Returns false if another process has locked the database; it is then retried later. */
  #begin(): boolean {
    try {
      this.#parts.files.requirePresent()
      this.#capture.set(this.#parts.log.needsRows)
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
      for (const job of this.#jobs.takeAll()) job.reject(translateSqliteError(error))
      return false
    }
  }

  // Up to the commit, or to its way to a log that is shared, nothing yields to the event loop, so no request reads between the
  // statements of a group.
  async #runGroup(turn: Turn, group: Job[], askedAt: number): Promise<void> {
    const { audit } = this.#parts
    const outcomes: Outcome[] = []
    const mark = audit.mark()
    let failure: unknown
    let commit: Commit | undefined
    try {
      this.#noticeForeignWrites()
      commit = await this.#makeCommit(group, outcomes, askedAt)
      // Before the loop gets a turn, because the limit of those that wait counts them.
      this.#jobs.putBack(group.splice(outcomes.length))
      failure = await this.#commit(turn, commit)
      if (failure === undefined) failure = await this.#announce(outcomes, commit)
      else audit.reset(mark)
    } catch (error) {
      failure = toUnavailableError(error)
      this.#control.rollBack()
      audit.reset(mark)
      for (const job of group.slice(outcomes.length)) job.reject(failure)
    }
    for (const outcome of outcomes) {
      if (!outcome.isOk) outcome.job.reject(outcome.error)
      else if (failure !== undefined) outcome.job.reject(failure)
      else outcome.job.resolve(outcome.value)
    }
    if (commit && failure === undefined && outcomes.some(({ isOk }) => isOk)) await this.#follower.observe(commit)
  }

  /** Runs the bodies of a group, and what belongs to its commit. */
  async #makeCommit(group: readonly Job[], outcomes: Outcome[], askedAt: number): Promise<Commit> {
    const tables = new Set<string>()
    await this.#runBodies(group, outcomes, tables, this.#pace.beginGroup(askedAt))
    const commit = { ...this.#next(outcomes), changes: listChanges(outcomes), tables: [...tables] }
    const recorded = await this.#record(commit)
    return recorded === undefined ? commit : { ...commit, recorded }
  }

  /** @param endsAt the time, by the monotonic clock, after which none begins */
  async #runBodies(group: readonly Job[], outcomes: Outcome[], tables: Set<string>, endsAt: number): Promise<void> {
    const { clock } = this.#parts
    const changes: Change[] = []
    for (const job of group.slice(0, MAX_TRANSACTIONS)) {
      if (outcomes.length > 0 && clock.monotonic() > endsAt) break
      const outcome = await this.#bodies.run(job, tables, changes)
      outcomes.push(outcome)
      if (outcome.isOk) for (const change of outcome.changes) changes.push(change)
      // If the disk is full, for example, SQLite rolls back the whole transaction, not only this savepoint.
      if (!this.#parts.connection.inTransaction) break
    }
    this.#pace.endGroup(outcomes.length, group.length - outcomes.length + this.#jobs.length)
  }

  /** Detects writes of another process, after which projections may be outdated. */
  #noticeForeignWrites(): void {
    const version = this.#control.dataVersion()
    if (version === this.#dataVersion) return
    this.#dataVersion = version
    this.#follower.last = this.#control.readLast()
    this.#parts.listener.foreignWrite()
    this.#parts.files.requireLock()
  }

  /** The position and the time of the commit of a group: the next ones, if any of it succeeded. */
  #next(outcomes: readonly Outcome[]): Pick<Commit, 'position' | 'at'> {
    const { position, at } = this.#follower.last
    if (!outcomes.some(({ isOk }) => isOk)) return { position, at }
    return { position: position + 1, at: Math.max(this.#parts.clock.now(), at + 1) }
  }

  /** Has the recorders write what belongs to the commit. Returns what they say of it, by their names. */
  async #record(commit: Commit): Promise<Commit['recorded']> {
    const recorders = this.recorders.filter((recorder) => recorder.concerns(commit.changes))
    if (recorders.length === 0 || !this.#parts.connection.inTransaction) return undefined
    return this.#bodies.runLast(async (db) => {
      const recorded: Record<string, unknown> = {}
      for (const recorder of recorders) recorded[recorder.name] = await recorder.record(commit, db)
      return recorded
    })
  }

  /** Commits the group. Returns the error for its callers if that fails. */
  async #commit(turn: Turn, commit: Commit): Promise<unknown> {
    const { log, connection } = this.#parts
    try {
      if (!connection.inTransaction) throw new Error('SQLite ended the transaction of this group')
      if (commit.position === this.#follower.last.position) this.#control.rollBack()
      else if (log.isDeciding) await this.#commitToLog(turn, commit)
      else await this.#commitRows(turn, commit)
      return undefined
    } catch (error) {
      this.#control.rollBack()
      return toUnavailableError(error)
    }
  }

  /** Commits the rows of a group to the database, which is the log. */
  async #commitRows(turn: Turn, commit: Commit): Promise<void> {
    const { log, files } = this.#parts
    const { position, at } = commit
    const rows = log.needsRows ? this.#capture.take() : undefined
    this.#control.setLast.run({ position, at, chain: '' })
    this.#control.commit.run()
    this.#follower.last = { position, at, chain: '' }
    // A commit to a deleted file is not stored, so its callers must not resume as if it were.
    files.requirePresent()
    if (rows) await turn.publish({ ...commit, rows })
  }

  /**
   * Has the log take what a group changes, and changes the rows then. Reads meanwhile find the state before: nothing is visible
   * that the log may refuse.
   */
  async #commitToLog(turn: Turn, commit: Commit): Promise<void> {
    const rows = this.#capture.take()
    this.#control.rollBack()
    const loggedCommit = await turn.publish({ ...commit, rows })
    try {
      this.#follower.applyRows([loggedCommit])
    } catch (cause) {
      throw new OutcomeUnknownError('the log has taken a commit that cannot be applied here', { cause })
    }
  }

  /**
   * Applies the commit to the projections. A projection that has to be rebuilt only reads rows, so the event loop gets no
   * turn.
   * @returns the error for the callers if a projection cannot be rebuilt: their changes are on disk, but not served
   */
  #announce(outcomes: readonly Outcome[], commit: Commit): Promise<unknown> | undefined {
    for (const { isOk } of outcomes) if (isOk) this.#transactions += 1
    return this.#parts.listener.committed(commit)?.then(
      () => undefined,
      (cause) => errors.OUTCOME_UNKNOWN(undefined, { cause }),
    )
  }
}

/** The changes of a group that are announced: failed bodies have none. */
function listChanges(outcomes: readonly Outcome[]): readonly Change[] {
  const changes = outcomes.flatMap((outcome) => (outcome.isOk ? outcome.changes : []))
  return changes.filter(({ isAuditOnly }) => !isAuditOnly)
}

function toUnavailableError(cause: unknown): unknown {
  if (cause instanceof OutcomeUnknownError) return errors.OUTCOME_UNKNOWN(undefined, { cause })
  return errors.STORAGE_UNAVAILABLE(undefined, { cause, retryAfterSeconds: RETRY_AFTER_SECONDS })
}
