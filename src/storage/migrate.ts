// Brings a database to the newest schema in one transaction, and fills a new one with the built-in records.
//
// So either the directory has the newest schema, or the previous program can still use it. The table of migrations stores
// the version that ran each, so that an older program can name the version that it needs.
import { createHash } from 'node:crypto'
import { Kysely, SqliteDialect } from 'kysely'
import type { Clock } from '../foundation/clock.ts'
import { version } from '../foundation/version.ts'
import { DataDirectoryError } from '../settings/data-directory.ts'
import type { LogSchema } from './commit-log.ts'
import { up as initial } from './migrations/0001-initial.ts'
import { seed } from './seed.ts'
import { openInMemory, type SqliteDatabase } from './sqlite/connection.ts'

/** One step between two schemas. */
export interface Migration {
  readonly name: string
  up(db: Kysely<unknown>): Promise<void>
}

/** In order; a name that was released is never changed or removed. */
export const MIGRATIONS: readonly Migration[] = [{ name: '0001-initial', up: initial }]

/** A migration failed. The database is as it was before. */
export class MigrationError extends Error {
  readonly migration: string

  constructor(migration: string, cause: unknown) {
    super(`the migration ${migration} failed, and the data is unchanged: ${(cause as Error).message}`, { cause })
    this.name = 'MigrationError'
    this.migration = migration
  }
}

interface AppliedMigration {
  readonly name: string
  /** The version of the controller that ran it. */
  readonly version: string
}

/** The migrations that have run, in order. A new file has none. */
export function listAppliedMigrations(connection: SqliteDatabase): readonly AppliedMigration[] {
  const exists = connection.prepare("select 1 from sqlite_master where type = 'table' and name = 'migrations'").get()
  if (exists === undefined) return []
  return connection.prepare('select name, version from migrations order by name').all() as AppliedMigration[]
}

/**
 * The names of the migrations that have not run yet, in order.
 * @throws DataDirectoryError `NEWER_DATABASE` if a version that has further migrations created the database
 */
export function listPendingMigrations(
  connection: SqliteDatabase,
  migrations: readonly Migration[] = MIGRATIONS,
): readonly string[] {
  const applied = listAppliedMigrations(connection)
  requireKnownMigrations(applied, migrations)
  return migrations.map(({ name }) => name).filter((name) => !applied.some((other) => other.name === name))
}

/**
 * Requires that the migrations of a database made the schema that those of this build make. Until it is released, a migration may
 * change under the same name.
 * @throws DataDirectoryError `OTHER_SCHEMA`, `NEWER_DATABASE`
 */
export async function requireOwnSchema(
  connection: SqliteDatabase,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<void> {
  const applied = listAppliedMigrations(connection)
  requireKnownMigrations(applied, migrations)
  const last = applied.at(-1)
  if (!last) return
  const ownSchema = await computeSchema(migrations.slice(0, migrations.findIndex(({ name }) => name === last.name) + 1))
  // Databases of builds that stored no digest do not have the column.
  const { schema } = connection.prepare('select * from migrations where name = ?').get(last.name) as { schema?: string }
  if (schema === ownSchema) return
  const message = `the data has the schema ${shorten(schema)} of another build of version ${last.version} (${last.name}), and this build has the schema ${shorten(ownSchema)}`
  const remedy =
    'run the build that made it; to change to this one, controller export there, and controller apply here in a new directory'
  throw new DataDirectoryError('OTHER_SCHEMA', message, remedy)
}

/** The schema that migrations lead to, as a log states it. */
export async function describeSchema(migrations: readonly Migration[]): Promise<LogSchema> {
  const { name: migration } = migrations.at(-1) as Migration
  return { migration, digest: await computeSchema(migrations), release: version.version }
}

const SHOWN_DIGITS = 12

function shorten(digest = 'unknown'): string {
  return digest.slice(0, SHOWN_DIGITS)
}

const computedSchemas = new WeakMap<Migration, Promise<string>>()

/** The digest of the schema that migrations make, computed once in a process for each last one. */
function computeSchema(migrations: readonly Migration[]): Promise<string> {
  const last = migrations.at(-1) as Migration
  const schema = computedSchemas.get(last) ?? runInMemory(migrations)
  computedSchemas.set(last, schema)
  return schema
}

async function runInMemory(migrations: readonly Migration[]): Promise<string> {
  const connection = openInMemory()
  try {
    const db = createSchemaBuilder(connection)
    for (const { up } of migrations) await up(db)
    return digestSchema(connection)
  } finally {
    connection.close()
  }
}

/** The digest of all tables, indexes and triggers, except those of SQLite and of the migrations themselves. */
function digestSchema(connection: SqliteDatabase): string {
  const schema = connection
    .prepare(
      "select type, name, sql from sqlite_master where name not like 'sqlite\\_%' escape '\\' and tbl_name != 'migrations' order by type, name",
    )
    .raw()
    .all()
  return createHash('sha256').update(JSON.stringify(schema)).digest('hex')
}

/** The stock dialect on the same connection; never destroyed, because that would close it. */
function createSchemaBuilder(connection: SqliteDatabase): Kysely<unknown> {
  return new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) })
}

/** Whether a database that has data needs a migration. @throws DataDirectoryError `NEWER_DATABASE` */
export function needsMigration(connection: SqliteDatabase, migrations: readonly Migration[] = MIGRATIONS): boolean {
  return listPendingMigrations(connection, migrations).length > 0 && listAppliedMigrations(connection).length > 0
}

/** @throws DataDirectoryError `NEWER_DATABASE` if one of the migrations is not known to this version */
export function requireKnownMigrations(
  applied: readonly AppliedMigration[],
  migrations: readonly Migration[] = MIGRATIONS,
): void {
  const unknown = applied.findLast(({ name }) => !migrations.some((migration) => migration.name === name))
  if (!unknown) return
  const message = `the data was migrated by version ${unknown.version} of the controller (${unknown.name}), and this is the older version ${version.version}`
  // The backup that the upgrade made names the newer version, which wrote the file, although it holds the older data.
  const remedy = `run version ${unknown.version} or later, or restore a backup from before that upgrade, which made one itself (controller-TIME-migration.tar.gz): controller db restore FILE`
  throw new DataDirectoryError('NEWER_DATABASE', message, remedy)
}

/**
 * Runs the pending migrations in one transaction: all of them, or none.
 * @returns their names
 * @throws MigrationError if one fails, DataDirectoryError `NEWER_DATABASE`
 */
export async function migrate(
  connection: SqliteDatabase,
  clock: Clock,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<readonly string[]> {
  const pendingNames = listPendingMigrations(connection, migrations)
  if (pendingNames.length === 0) return []
  const isNew = pendingNames.length === migrations.length
  const db = createSchemaBuilder(connection)
  let current = ''
  connection.exec('begin immediate')
  try {
    connection.exec(
      'create table if not exists migrations (name text primary key, at integer not null, version text not null, schema text not null) strict',
    )
    const insert = connection.prepare('insert into migrations (name, at, version, schema) values (?, ?, ?, ?)')
    for (const { name, up } of migrations) {
      if (!pendingNames.includes(name)) continue
      current = name
      await up(db)
      insert.run(name, clock.now(), version.version, digestSchema(connection))
    }
    if (isNew) await seed(db, clock.now())
    connection.exec('commit')
  } catch (error) {
    if (connection.inTransaction) connection.exec('rollback')
    throw new MigrationError(current, error)
  }
  return pendingNames
}
