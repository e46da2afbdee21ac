// Leads the rows of this file, and what follows them, along the log: it applies the commits that the log has taken.
//
// The log has them on disk, so the file need not: after a power cut it is at an earlier commit, and is led on from there. To wait for
// the disk took a fifth of the time of a controller that others let create identities all the time.
import type { Audit } from '../audit/audit.ts'
import { type LoggedCommit, type LogPosition, type RowObserver, SchemaMovedError } from '../commit-log.ts'
import { TABLES_THAT_FILES_FOLLOW } from '../shared-tables.ts'
import type { Commit } from '../transactions/changes.ts'
import type { SqliteDatabase } from './connection.ts'
import type { ControlStatements, LogState } from './control-statements.ts'
import type { DatabaseFiles } from './database-files.ts'
import { applyRowChanges, RowsDifferError } from './row-apply.ts'
import type { RowCapture } from './row-capture.ts'
import { isConstraintViolation } from './sqlite-errors.ts'
import type { PreparedStatements } from './statements.ts'

/** The events that it reports to the store. */
export interface FollowListener {
  /** @returns undefined, or a promise that settles before the callers of the group resume */
  committed(commit: Commit): Promise<void> | undefined
  /** The rows of this file are not those that the log has led to. Nothing of it may be served any more. */
  diverged(error: unknown): void
  /** The log was migrated by a newer program. Nothing may be served any more. */
  schemaMoved(error: SchemaMovedError): void
}

interface RowFollowerParts {
  readonly connection: SqliteDatabase
  readonly statements: PreparedStatements
  readonly control: ControlStatements
  readonly capture: RowCapture
  readonly audit: Audit
  readonly files: DatabaseFiles
  readonly listener: FollowListener
  readonly observer: RowObserver | undefined
}

export class RowFollower {
  /** The last commit that the rows have. */
  last: LogState
  readonly #parts: RowFollowerParts
  #commits = 0
  #times = 0

  constructor(parts: RowFollowerParts) {
    this.#parts = parts
    this.last = parts.control.readLast()
  }

  /** How many commits of others it has applied, and how often. */
  get stats() {
    return { followedCommits: this.#commits, catchUps: this.#times }
  }

  /**
   * Applies commits of others: to the rows, all at once, and then to what follows them. @throws if the log has another commit than the last
   * one of these rows, or as `applyRows` does
   */
  async follow(commits: readonly LoggedCommit[]): Promise<void> {
    const missed = this.listMissed(commits)
    if (missed.length === 0) return
    this.#commits += missed.length
    this.#times += 1
    for (const commits of this.#splitForObserver(missed)) {
      this.applyRows(commits)
      for (const commit of commits) {
        this.#parts.audit.follow(commit.rows)
        await this.#parts.listener.committed(commit)
      }
      await this.observe(commits.at(-1) as LoggedCommit)
    }
  }

  /** The commits that are not applied: others may have been since these were read. @throws as `requireAt` does */
  listMissed<Place extends LogPosition>(commits: readonly Place[]): Place[] {
    const same = commits.find(({ position }) => position === this.last.position)
    if (same) this.requireAt(same)
    return commits.filter(({ position }) => position > this.last.position)
  }

  /** @throws unless a place in the log is that of the rows: after a failover, the log may lack what was read from it before */
  requireAt({ position, chain }: LogPosition): void {
    const { last } = this
    if (position !== last.position || chain !== last.chain)
      throw new Error(`the log does not have the commit ${last.position} of these rows any more`)
  }

  /** Applies commits to the rows alone. @throws if they do not lead on from them, or the file cannot be written */
  applyRows(commits: readonly LoggedCommit[]): void {
    const { connection, statements, control, capture, files, listener } = this.#parts
    files.requirePresent()
    control.isDurable = commits.some(({ rows }) => rows.some(({ table }) => TABLES_THAT_FILES_FOLLOW.has(table)))
    control.begin.run()
    try {
      requireSuccessive(this.last, commits)
      const migration = commits.find((commit) => commit.migration)?.migration
      if (migration) throw new SchemaMovedError(migration)
      capture.pause(() => {
        for (const { rows } of commits) applyRowChanges(connection, statements, rows)
      })
      const { position, at, chain } = commits.at(-1) as LoggedCommit
      control.setLast.run({ position, at, chain })
      control.commit.run()
      this.last = { position, at, chain }
    } catch (error) {
      control.rollBack()
      if (error instanceof SchemaMovedError) listener.schemaMoved(error)
      if (error instanceof RowsDifferError || isConstraintViolation(error)) listener.diverged(error)
      throw error
    }
    files.requirePresent()
  }

  /** Lets the observer look at the rows after a commit, if it is time. */
  async observe(commit: Commit): Promise<void> {
    const { observer } = this.#parts
    if (observer?.isDue(commit)) await observer.observe(commit.position)
  }

  /** Commits that are applied together end with one after which the observer looks at the rows. */
  #splitForObserver(commits: readonly LoggedCommit[]): LoggedCommit[][] {
    const { observer } = this.#parts
    const parts: LoggedCommit[][] = [[]]
    for (const commit of commits) {
      parts.at(-1)?.push(commit)
      if (observer?.isDue(commit)) parts.push([])
    }
    return parts.filter(({ length }) => length > 0)
  }
}

/** @throws RowsDifferError unless each commit follows the one before it */
function requireSuccessive(last: LogPosition, commits: readonly LoggedCommit[]): void {
  for (const [at, { position }] of commits.entries()) {
    const expected = last.position + at + 1
    if (position !== expected) throw new RowsDifferError(`the log has the commit ${position} in place of ${expected}`)
  }
}
