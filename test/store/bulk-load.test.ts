// Indexes that are dropped while a new database is loaded, and made again afterwards.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { dropIndexes } from '../../src/storage/sqlite/bulk-load.ts'
import { createDatabase } from '../../src/storage/sqlite/maintenance.ts'
import { TestClock } from '../world/controller.ts'
import { Sqlite } from '../world/sqlite.ts'

const folder = mkdtempSync(join(tmpdir(), 'bulk-'))
afterAll(() => rmSync(folder, { recursive: true }))
const path = join(folder, 'controller.db')

function query(sql: string): unknown[] {
  const connection = new Sqlite(path)
  try {
    return connection.prepare(sql).all()
  } finally {
    connection.close()
  }
}

const listSchema = () =>
  query("select type, name, tbl_name, sql from sqlite_schema where name not like 'sqlite%' order by type, name")
const listIndexes = (pattern: string) =>
  query(`select name from sqlite_schema where type = 'index' and sql like '${pattern}'`)

describe('the indexes of a database that is loaded', () => {
  it('are gone meanwhile except those of unique values, and are the same afterwards, with statistics', async () => {
    await createDatabase(path, new TestClock())
    const [before, unique] = [listSchema(), listIndexes('create unique index %')]
    const makeIndexes = dropIndexes(path)
    expect(listIndexes('create index %')).toEqual([])
    expect(listIndexes('create unique index %')).toEqual(unique)
    expect(unique.length).toBeGreaterThan(5)
    await makeIndexes()
    expect(listSchema()).toEqual(before)
    expect(query("select idx from sqlite_stat1 where tbl = 'config_types' and idx is not null").length).toBeGreaterThan(
      1,
    )
  })
})
