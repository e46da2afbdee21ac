// Each table is shared by all controllers of a network, or belongs to one file, for a reason.
import { Kysely, SqliteDialect } from 'kysely'
import { expect, it } from 'vitest'
import { up } from '../../src/storage/migrations/0001-initial.ts'
import { LOCAL_TABLES, SHARED_TABLES } from '../../src/storage/shared-tables.ts'
import { openInMemory } from '../../src/storage/sqlite/connection.ts'
import { listSharedTables } from '../../src/storage/sqlite/table-columns.ts'

/** SQLite's own tables: the statistics of its planner, and the keys that it gives next, which follow from the rows. */
const isOfSqlite = (name: string) => name.startsWith('sqlite_')

async function openSchema() {
  const connection = openInMemory()
  await up(new Kysely<unknown>({ dialect: new SqliteDialect({ database: connection }) }))
  return connection
}

it('every table is shared or local, and in one list', async () => {
  const connection = await openSchema()
  const tables = connection.prepare("select name from sqlite_schema where type = 'table'").pluck().all() as string[]
  const ownTables = tables.filter((name) => !isOfSqlite(name))

  // The table of migrations is made by what runs them.
  expect([...SHARED_TABLES, ...Object.keys(LOCAL_TABLES)].sort()).toEqual([...ownTables, 'migrations'].sort())
})

it('shared tables hold only what JSON holds without loss, and their rows have keys', async () => {
  const connection = await openSchema()
  const types = SHARED_TABLES.flatMap((table) =>
    (connection.pragma(`table_info("${table}")`) as { type: string }[]).map(({ type }) => type),
  )

  expect(new Set(types)).toEqual(new Set(['INTEGER', 'TEXT']))
  expect(listSharedTables(connection).map(({ table }) => table)).toEqual(SHARED_TABLES)
})
