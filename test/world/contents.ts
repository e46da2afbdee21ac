// Everything that a controller has on disk, for tests of what was written and what was not.
import { sql } from 'kysely'
import type { TestController } from './controller.ts'

/** The names of all tables. */
export async function tablesOf({ controller }: TestController): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_master where type = 'table' and name not like 'sqlite_%' order by name
  `.execute(controller.store.db)
  return rows.map(({ name }) => name)
}

/** Every row of every table, as text: one line a row. */
export async function contentsOf(world: TestController): Promise<string> {
  const lines: string[] = []
  for (const name of await tablesOf(world)) {
    const { rows } = await sql`select * from ${sql.table(name)}`.execute(world.controller.store.db)
    for (const row of rows) lines.push(`${name} ${JSON.stringify(row)}`)
  }
  return lines.join('\n')
}
