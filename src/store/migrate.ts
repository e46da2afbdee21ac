// Brings a database to the newest schema, one transaction per migration, and fills a new one with the built-in records.
import { Kysely, SqliteDialect } from 'kysely'
import type { Clock } from '../clock.ts'
import type { SqliteDatabase } from './dialects/sqlite/connection.ts'
import { up as initial } from './migrations/0001-initial.ts'
import { seed } from './seed.ts'

/** In order; a name that was released is never changed or removed. */
const migrations = [{ name: '0001-initial', up: initial }] as const

/**
 * The migrations that have not run yet, in order.
 * @throws Error if a newer version created the database
 */
export function pendingMigrations(connection: SqliteDatabase): readonly string[] {
  const appliedNames = new Set(connection.prepare('select name from migrations').pluck().all() as string[])
  const unknown = [...appliedNames].find((name) => !migrations.some((migration) => migration.name === name))
  if (unknown) {
    throw new Error(
      `the database was made by a newer version of this controller: it does not know migration ${unknown}`,
    )
  }
  return migrations.map(({ name }) => name).filter((name) => !appliedNames.has(name))
}

/**
 * Runs the pending migrations. One that fails is rolled back as a whole.
 * @throws where the database was made by a newer version than this one
 */
export async function migrate(connection: SqliteDatabase, clock: Clock): Promise<readonly string[]> {
  // The stock dialect on the same connection, for the schema builder; never destroyed, because that would close it.
  const db = new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
  connection.exec('create table if not exists migrations (name text primary key, at integer not null) strict')
  const pendingNames = new Set(pendingMigrations(connection))
  const pending = migrations.filter(({ name }) => pendingNames.has(name))
  const isNew = pending.length === migrations.length
  for (const { name, up } of pending) {
    connection.exec('begin immediate')
    try {
      await up(db)
      if (isNew && name === pending.at(-1)?.name) await seed(db, clock.now())
      connection.prepare('insert into migrations (name, at) values (?, ?)').run(name, clock.now())
      connection.exec('commit')
    } catch (error) {
      connection.exec('rollback')
      throw error
    }
  }
  return pending.map(({ name }) => name)
}
