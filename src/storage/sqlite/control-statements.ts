// The statements around the bodies of transactions, prepared once.
import type { Statement } from 'better-sqlite3'
import type { LogPosition } from '../commit-log.ts'
import type { CommitPosition } from './commit-position.ts'
import type { SqliteDatabase } from './connection.ts'

/** The last commit, as the database states it. */
export type LogState = CommitPosition & LogPosition

export class ControlStatements {
  readonly begin: Statement
  readonly commit: Statement
  readonly savepoint: Statement
  readonly release: Statement
  readonly rollbackTo: Statement
  readonly setLast: Statement<[LogState]>
  readonly #connection: SqliteDatabase
  readonly #rollback: Statement
  readonly #last: Statement
  readonly #dataVersion: Statement
  #isDurable = true

  constructor(connection: SqliteDatabase) {
    this.begin = connection.prepare('begin immediate')
    this.commit = connection.prepare('commit')
    this.savepoint = connection.prepare('savepoint body')
    this.release = connection.prepare('release body')
    this.rollbackTo = connection.prepare('rollback to body')
    this.setLast = connection.prepare('update commit_position set position = @position, at = @at, chain = @chain')
    this.#connection = connection
    this.#rollback = connection.prepare('rollback')
    this.#last = connection.prepare('select position, at, chain from commit_position')
    this.#dataVersion = connection.prepare('pragma data_version').pluck()
  }

  /** Whether the transactions from now on wait until they, and all before them, are on disk. */
  set isDurable(isDurable: boolean) {
    if (isDurable !== this.#isDurable) this.#connection.pragma(`synchronous = ${isDurable ? 'FULL' : 'NORMAL'}`)
    this.#isDurable = isDurable
  }

  /** Ends the transaction without its changes, unless SQLite has done that. */
  rollBack(): void {
    if (this.#connection.inTransaction) this.#rollback.run()
  }

  /** The last commit. */
  readLast(): LogState {
    return this.#last.get() as LogState
  }

  /** Changes if another connection writes to the file, but not if this one does. */
  dataVersion(): unknown {
    return this.#dataVersion.get()
  }
}
