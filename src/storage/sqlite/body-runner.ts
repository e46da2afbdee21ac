// Runs the bodies of transactions one by one inside the transaction of their group, each in a savepoint with its audit records.
import type { Transaction } from 'kysely'
import type { Audit } from '../audit/audit.ts'
import type { Database } from '../database.ts'
import { type AuditOrigin, NonQueryAwaitError, type TransactionScope } from '../store.ts'
import type { Change } from '../transactions/changes.ts'
import { UncommittedChanges } from '../transactions/uncommitted-changes.ts'
import type { SqliteDatabase } from './connection.ts'
import type { ControlStatements } from './control-statements.ts'
import { translateSqliteError } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'
import { openQueryHandle } from './transaction.ts'

/** A transaction that waits for its turn. */
export interface Job {
  readonly body: (tx: TransactionScope) => Promise<unknown>
  readonly origin: AuditOrigin
  resolve(value: unknown): void
  reject(error: unknown): void
}

/**
 * The outcome of a body. Its caller resumes after the group's commit, also if the body failed: a caller that resumed earlier
 * would run between two bodies, and read data that is not on disk yet.
 */
export type Outcome =
  | { readonly job: Job; readonly isOk: true; readonly value: unknown; readonly changes: readonly Change[] }
  | { readonly job: Job; readonly isOk: false; readonly error: unknown }

interface BodyRunnerParts {
  readonly connection: SqliteDatabase
  readonly statements: PreparedStatements
  readonly control: ControlStatements
  readonly audit: Audit
}

export class BodyRunner {
  readonly #parts: BodyRunnerParts
  #isRunning = false
  #refused = 0

  constructor(parts: BodyRunnerParts) {
    this.#parts = parts
  }

  /** True while a body runs: then reads must use its own handle. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  /** How many bodies awaited something other than their own queries. */
  get refused(): number {
    return this.#refused
  }

  /**
   * Runs one body in its savepoint.
   * @param tables receives those that it wrote to
   * @param earlier the changes of the bodies before it
   */
  async run(job: Job, tables: Set<string>, earlier: readonly Change[]): Promise<Outcome> {
    const { statements, control, audit } = this.#parts
    const mark = audit.mark()
    const uncommitted = new UncommittedChanges(earlier)
    const handle = openQueryHandle(statements)
    this.#isRunning = true
    try {
      control.savepoint.run()
      const value = await this.#rejectNonQueryAwait(async () => {
        const result = await job.body({ db: handle.db, uncommitted, record: (change) => uncommitted.add(change) })
        await audit.append(handle.db, uncommitted.own, job.origin)
        return result
      })
      control.release.run()
      for (const table of handle.tables) tables.add(table)
      return { job, isOk: true, value, changes: uncommitted.own }
    } catch (error) {
      audit.reset(mark)
      this.#undo()
      return { job, isOk: false, error: translateSqliteError(error) }
    } finally {
      handle.close()
      this.#isRunning = false
    }
  }

  /** Runs work that belongs to the whole group, after its bodies. */
  async runLast<T>(work: (db: Transaction<Database>) => Promise<T>): Promise<T> {
    const handle = openQueryHandle(this.#parts.statements)
    this.#isRunning = true
    try {
      return await work(handle.db)
    } finally {
      handle.close()
      this.#isRunning = false
    }
  }

  #undo(): void {
    const { connection, control } = this.#parts
    if (!connection.inTransaction) return
    try {
      control.rollbackTo.run()
      control.release.run()
    } catch {
      // Then the whole group is rolled back, and each of its callers gets the error of the commit.
      control.rollBack()
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
