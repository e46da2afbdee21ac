// The interface of the log: where commits are ordered and become durable. It is the database itself, or one that several controllers
// share, each of which applies to its rows what the log has taken.
import type { Commit } from './transactions/changes.ts'
import type { RowChange } from './transactions/row-changes.ts'

/** A place in a log. */
export interface LogPosition {
  /** How many commits led to it. */
  readonly position: number
  /** Tells what they were: two logs with the same chain at a position hold the same up to it. */
  readonly chain: string
}

/** A commit with the rows that it changes, for a log to take. */
export interface CommitDraft extends Commit {
  readonly rows: readonly RowChange[]
  /** The schema to which each controller migrates its rows at this place, of a commit that does nothing else. */
  readonly migration?: LogSchema
}

/** The schema of the rows that the commits of a log change. */
export interface LogSchema {
  /** The name of the newest migration. */
  readonly migration: string
  /** The digest of the schema that it leads to. */
  readonly digest: string
  /** The version of the controller that ran it. */
  readonly release: string
}

/** The log was migrated to a schema that this program does not know. */
export class SchemaMovedError extends Error {
  override readonly name = 'SchemaMovedError'

  constructor({ migration, release }: LogSchema) {
    super(`the network was migrated by release ${release} (${migration}): install release ${release} or later here`)
  }
}

/** A commit was sent to a log, and nothing tells whether it was taken, or it was taken, and this controller cannot serve it. */
export class OutcomeUnknownError extends Error {
  override readonly name = 'OutcomeUnknownError'
}

/** A commit that a log has taken. It is plain JSON. */
export interface LoggedCommit extends CommitDraft, LogPosition {
  /** Tells it from every other attempt to commit. */
  readonly id: string
  /** The controller that made it. */
  readonly node: string
}

/** A commit of a log that may be applied already: only one that is not costs its reading. */
export interface UnreadCommit extends LogPosition {
  read(): LoggedCommit
}

/** The right to commit next, which one controller has at a time. It ends with `publish` or `abandon`. */
export interface Turn {
  /** The commits after the position that the caller stated: its own is the next one after these. */
  readonly missed: readonly UnreadCommit[]
  /**
   * Settles once the commit is durable, and others can read it.
   * @throws OutcomeUnknownError if nothing tells whether it is: then what the log has next is the truth; any other error if it is not
   */
  publish(commit: CommitDraft): Promise<LoggedCommit>
  abandon(): Promise<void>
}

/** Looks at the rows as they are between certain commits, which are the same on every controller. */
export interface RowObserver {
  /** Whether it looks at them after a commit. */
  isDue(commit: Commit): boolean
  /** Settles once it holds a snapshot of the rows: until then no other commit is made or applied. It must not reject. */
  observe(position: number): Promise<void>
}

export interface CommitLog {
  /** The name of this controller in the log; null if it is alone. */
  readonly node: string | null
  /**
   * Whether the log decides what is committed: rows change only after it has taken a commit. Otherwise they have changed before,
   * because the database is the log.
   */
  readonly isDeciding: boolean
  /** Whether commits are taken with their rows, which has a cost. */
  readonly needsRows: boolean
  /**
   * Waits for the right to commit.
   * @throws if the log is out of reach, or does not lead on from `after`
   */
  acquire(after: LogPosition): Promise<Turn>
  /** The commits after a position, in order: none, or at most `limit` of them. @throws as `acquire` does */
  readAfter(after: LogPosition, limit: number): Promise<readonly LoggedCommit[]>
}
