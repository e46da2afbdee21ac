// Leads the rows of a file that no store has open to the end of the log, with the migrations among its commits.
import type { Clock } from '../../foundation/clock.ts'
import type { CommitLog, LoggedCommit } from '../commit-log.ts'
import { type Migration, migrate } from '../migrate.ts'
import type { SqliteDatabase } from '../sqlite/connection.ts'
import { ControlStatements } from '../sqlite/control-statements.ts'
import { applyRowChanges } from '../sqlite/row-apply.ts'
import { PreparedStatements } from '../sqlite/statements.ts'

const READ_LIMIT = 256

export interface FollowParts {
  readonly commitLog: CommitLog
  readonly clock: Clock
  /** The migrations of this program. */
  readonly migrations: readonly Migration[]
}

/** @throws if the log is out of reach, does not lead on from the rows, or changes rows that are not there */
export async function followLog(connection: SqliteDatabase, parts: FollowParts): Promise<void> {
  const statements = new PreparedStatements(connection)
  for (;;) {
    const commits = await parts.commitLog.readAfter(new ControlStatements(connection).readLast(), READ_LIMIT)
    for (const together of splitAtMigrations(commits)) {
      // If this is interrupted, the migration has run when it is met again, and nothing of it is pending.
      await runMigration(connection, together[0] as LoggedCommit, parts)
      apply(connection, statements, together)
    }
    if (commits.length < READ_LIMIT) return
  }
}

/** Commits that are applied at once: each migration begins others. */
function splitAtMigrations(commits: readonly LoggedCommit[]): LoggedCommit[][] {
  const parts: LoggedCommit[][] = []
  for (const commit of commits) {
    if (commit.migration || parts.length === 0) parts.push([])
    parts.at(-1)?.push(commit)
  }
  return parts
}

async function runMigration(
  connection: SqliteDatabase,
  { migration }: LoggedCommit,
  { clock, migrations }: FollowParts,
): Promise<void> {
  if (!migration) return
  const last = migrations.findIndex(({ name }) => name === migration.migration)
  await migrate(connection, clock, migrations.slice(0, last + 1))
}

function apply(connection: SqliteDatabase, statements: PreparedStatements, commits: readonly LoggedCommit[]): void {
  const control = new ControlStatements(connection)
  control.begin.run()
  try {
    for (const { rows } of commits) applyRowChanges(connection, statements, rows)
    const { position, at, chain } = commits.at(-1) as LoggedCommit
    control.setLast.run({ position, at, chain })
    control.commit.run()
  } catch (error) {
    control.rollBack()
    throw error
  }
}
