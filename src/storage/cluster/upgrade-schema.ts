// Leads the rows of a controller to the schema of its program, before anything else opens them.
//
// In a cluster, a migration is a commit: each controller runs it on its own file, at that place of the log, so that all rows stay the same.
// The first one of a newer release that finds no controller of an older one running adds it. An older one that runs nevertheless, because
// it was cut off, meets that commit and stops.
import type { Clock } from '../../foundation/clock.ts'
import type { Log } from '../../foundation/log.ts'
import { DataDirectoryError } from '../../settings/data-directory.ts'
import type { LogPosition } from '../commit-log.ts'
import { describeSchema, type Migration, needsMigration, requireOwnSchema } from '../migrate.ts'
import type { PostgresLog } from '../postgres/postgres-log.ts'
import { openForWriting, type SqliteDatabase } from '../sqlite/connection.ts'
import { ControlStatements } from '../sqlite/control-statements.ts'
import { followLog } from './follow-log.ts'
import type { ClusterNodes } from './nodes.ts'

const LOOK_MS = 250

export interface UpgradeParts {
  readonly databaseFile: string
  readonly clock: Clock
  /** The time of this machine, which is compared with that of the database. */
  readonly readMachineTime: () => number
  readonly log: Log
  readonly commitLog: PostgresLog
  readonly nodes: ClusterNodes
  readonly migrations: readonly Migration[]
  /** Whether it waits until controllers of older releases have stopped. */
  readonly isWaiting: boolean
  readonly beforeMigration: () => Promise<unknown>
}

/**
 * Returns once the rows have the schema of this program; at once if they have it already.
 * @throws DataDirectoryError `OLDER_CONTROLLERS` if controllers of older releases run, and it does not wait for them; NodeNameTakenError
 */
export async function upgradeSchema(parts: UpgradeParts): Promise<void> {
  const connection = openForWriting(parts.databaseFile)
  try {
    await requireOwnSchema(connection, parts.migrations)
    if (needsMigration(connection, parts.migrations)) await new SchemaUpgrade(parts, connection).run()
  } finally {
    connection.close()
  }
}

class SchemaUpgrade {
  readonly #parts: UpgradeParts
  readonly #connection: SqliteDatabase

  constructor(parts: UpgradeParts, connection: SqliteDatabase) {
    this.#parts = parts
    this.#connection = connection
  }

  async run(): Promise<void> {
    const { log, nodes, isWaiting, readMachineTime, beforeMigration } = this.#parts
    await nodes.claim(this.#readLast().position, readMachineTime)
    await beforeMigration()
    let waitsFor = ''
    for (;;) {
      await followLog(this.#connection, this.#parts)
      if (!this.#isPending) return
      await nodes.claim(this.#readLast().position, readMachineTime)
      const older = this.#listOlderControllers()
      if (older.length === 0) await this.#publishMigration()
      else if (!isWaiting) throw olderControllersError(older)
      else {
        if (older.join() !== waitsFor)
          log.warn(
            { controllers: older },
            'this release needs a newer schema, and waits until controllers of older releases stop',
          )
        waitsFor = older.join()
        await new Promise((resolve) => setTimeout(resolve, LOOK_MS))
      }
    }
  }

  get #isPending(): boolean {
    return needsMigration(this.#connection, this.#parts.migrations)
  }

  #readLast() {
    return new ControlStatements(this.#connection).readLast()
  }

  /** Controllers that run, by a program that does not know the newest migration of this one. */
  #listOlderControllers(): string[] {
    const newest = this.#newestMigration
    const running = this.#parts.nodes.list().filter(({ isLive }) => isLive)
    return running.flatMap(({ name, details }) => ((details.migration ?? '') < newest ? [name] : []))
  }

  get #newestMigration(): string {
    return this.#parts.migrations.at(-1)?.name ?? ''
  }

  /** Adds the migration to the log, unless another controller has meanwhile. */
  async #publishMigration(): Promise<void> {
    const { clock, commitLog, log, migrations } = this.#parts
    const last = this.#readLast()
    const turn = await commitLog.acquire(last as LogPosition)
    try {
      // Others have committed since: they are read first.
      if (turn.missed.length > 0) return
      const migration = await describeSchema(migrations)
      const at = Math.max(clock.now(), last.at + 1)
      await turn.publish({ position: last.position + 1, at, changes: [], tables: [], rows: [], migration })
      log.info({ migration: migration.migration }, 'the schema of the network was migrated')
    } finally {
      await turn.abandon()
    }
  }
}

function olderControllersError(older: readonly string[]): DataDirectoryError {
  const message = `this release needs a newer schema, and controllers of an older release run: ${older.join(', ')}`
  const remedy = 'controller serve waits until they have stopped; stop them, or install this release there'
  return new DataDirectoryError('OLDER_CONTROLLERS', message, remedy)
}
