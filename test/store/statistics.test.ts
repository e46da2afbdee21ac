// The statistics of the planner: which samples of values it keeps.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openForWriting, type SqliteDatabase } from '../../src/storage/sqlite/connection.ts'
import { analyzeTables } from '../../src/storage/sqlite/statistics.ts'

const ROWS = 1_000
const DAY = 24 * 60 * 60_000

let directory: string
let connection: SqliteDatabase

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'statistics-'))
  connection = openForWriting(join(directory, 'things.db'))
  connection.exec(`
    create table things (n integer primary key, id text not null, kindId text not null, createdAt integer not null, notAfter integer not null);
    create unique index things_id_unique on things (id);
    create index things_kindId_index on things (kindId);
    create index things_createdAt_index on things (createdAt);
    create index things_notAfter_index on things (notAfter);
  `)
  const insert = connection.prepare('insert into things (id, kindId, createdAt, notAfter) values (?, ?, ?, ?)')
  for (let at = 0; at < ROWS; at++) insert.run(`thing ${at}`, at < 10 ? 'rare' : 'frequent', at * DAY, at * DAY)
})

afterEach(() => {
  connection.close()
  rmSync(directory, { recursive: true })
})

const planOf = (condition: string) =>
  connection.prepare(`explain query plan select * from things where ${condition} order by id limit 10`).all()

it('samples stay of times, and of what many rows share, and of nothing else', async () => {
  await analyzeTables(connection, () => false)

  const sampled = connection.prepare('select distinct idx from sqlite_stat4 order by idx').pluck().all()
  expect(sampled).toEqual(['things_createdAt_index', 'things_kindId_index', 'things_notAfter_index'])
})

it.each([
  ['a rare value, but not a frequent one', `kindId = 'rare'`, `kindId = 'frequent'`, 'things_kindId_index'],
  ['a short time, but not a long one', `createdAt > ${(ROWS - 10) * DAY}`, 'createdAt > 0', 'things_createdAt_index'],
])('a list in another order begins with the rows of %s', async (_what, few, many, index) => {
  await analyzeTables(connection, () => false)

  expect(planOf(few)[0]).toMatchObject({ detail: expect.stringContaining(index) })
  expect(planOf(many)[0]).toMatchObject({ detail: expect.stringContaining('things_id_unique') })
})
