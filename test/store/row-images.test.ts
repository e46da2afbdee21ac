// Commits as images of rows: a second database that applies them has the same rows, and one that has others is told apart.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import type { CommitLog, LoggedCommit } from '../../src/storage/commit-log.ts'
import { LocalLog } from '../../src/storage/local-log.ts'
import { openForReading } from '../../src/storage/sqlite/connection.ts'
import { digestRows, listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Store, TransactionScope } from '../../src/storage/store.ts'
import type { Change } from '../../src/storage/transactions/changes.ts'
import { TestClock } from '../world/controller.ts'

const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }

let directory: string
let clock: TestClock
let log: LocalLog
let commits: LoggedCommit[]
let writer: Store
let follower: Store
let failures: Error[]
let stopFollowing: () => void

const followed: CommitLog = {
  node: 'follower',
  isDeciding: true,
  needsRows: true,
  acquire: () => Promise.reject(new Error('only followed')),
  readAfter: async ({ position }) => commits.filter((commit) => commit.position > position),
}

function open(name: string, commitLog: CommitLog): Promise<Store> {
  return openSqliteStore(join(directory, name), clock, {
    auditSealer: new AuditSealer(Buffer.alloc(32, 1)),
    log: commitLog,
    fail: (error) => failures.push(error),
    reportError(error) {
      throw error
    },
  })
}

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'images-'))
  clock = new TestClock(1_000_000)
  failures = []
  commits = []
  log = new LocalLog()
  stopFollowing = log.follow((commit) => commits.push(JSON.parse(JSON.stringify(commit)) as LoggedCommit))
  writer = await open('writer.db', log)
  follower = await open('follower.db', followed)
})
afterEach(async () => {
  await writer.close()
  await follower.close()
  rmSync(directory, { recursive: true, force: true })
})

const digest = (name: string) => {
  const connection = openForReading(join(directory, name))
  try {
    return digestRows(connection)
  } finally {
    connection.close()
  }
}
const listDifferences = () => listDifferentTables(digest('writer.db'), digest('follower.db'))
const typeRow = (name: string) => ({ id: name, createdAt: 1, updatedAt: 1, tags: '{}', name })
const change = (id: string): Change => ({ operation: 'create', audit: 'event', resource: 'identity-types', id, at: 1 })
const add = async (tx: TransactionScope, name: string) => {
  await tx.db.insertInto('identity_types').values(typeRow(name)).execute()
  tx.record(change(name))
}

/** Adds a session whose key SQLite may not give again, with the identity that it needs. */
async function addApiSession(db: TransactionScope['db'], id: string): Promise<void> {
  await insertAny(db, 'identities', {
    id: `of ${id}`,
    name: id,
    externalId: id,
    typeId: 'Default',
    authPolicyId: 'default',
  })
  await insertAny(db, 'api_sessions', { id, identityId: `of ${id}` })
}

/** Inserts a row that has these values, and 0 or null where they say nothing. */
async function insertAny(db: TransactionScope['db'], table: string, values: Record<string, string>): Promise<void> {
  const info = sql<{
    name: string
    notnull: number
    pk: number
  }>`select name, "notnull", pk from pragma_table_info(${table})`
  const columns = (await info.execute(db)).rows.filter(({ pk }) => pk === 0)
  const row = columns.map(({ name, notnull }) => values[name] ?? (notnull ? 0 : null))
  const names = sql.join(columns.map(({ name }) => sql.ref(name)))
  await sql`insert into ${sql.table(table)} (${names}) values (${sql.join(row)})`.execute(db)
}

describe('the rows of a commit', () => {
  it('lead another database to the same rows', async () => {
    await writer.write((tx) => add(tx, 'first'), ORIGIN)
    await writer.write(async (tx) => {
      await add(tx, 'second')
      await tx.db.updateTable('identity_types').set({ name: 'renamed' }).where('id', '=', 'first').execute()
    }, ORIGIN)
    await writer.write(({ db }) => db.deleteFrom('identity_types').where('id', '=', 'first').execute(), ORIGIN)
    await follower.catchUp()

    expect(commits.map(({ position }) => position)).toEqual([1, 2, 3])
    expect(commits.map(({ rows }) => rows.map(({ operation, table }) => `${operation} ${table}`))).toEqual([
      ['insert identity_types', 'insert audit_records'],
      ['insert identity_types', 'update identity_types', 'insert audit_records'],
      ['delete identity_types'],
    ])
    expect(listDifferences()).toEqual([])
  })

  it('hold of an update only the columns that it changed, and nothing of one that changed none', async () => {
    await writer.write((tx) => add(tx, 'first'), ORIGIN)
    await writer.write(async ({ db }) => {
      const update = db.updateTable('identity_types').where('id', '=', 'first')
      await update.set({ tags: '{}', name: 'first' }).execute()
      await update.set({ tags: '{"a":null}', name: 'first' }).execute()
    }, ORIGIN)

    expect(commits[1]?.rows).toEqual([
      { operation: 'update', table: 'identity_types', key: { n: expect.any(Number) }, row: { tags: '{"a":null}' } },
    ])
  })

  it('hold nothing of what a statement, a transaction or a group took back', async () => {
    const results = await Promise.allSettled([
      writer.write((tx) => add(tx, 'kept'), ORIGIN),
      writer.write(async (tx) => {
        await add(tx, 'taken back')
        throw new Error('on purpose')
      }, ORIGIN),
      writer.write(async ({ db }) => {
        const both = [typeRow('half written'), typeRow('kept')]
        await db
          .insertInto('identity_types')
          .values(both)
          .execute()
          .catch(() => undefined)
        await db.insertInto('identity_types').values(typeRow('afterwards')).execute()
      }, ORIGIN),
    ])
    await writer
      .write(async ({ db }) => {
        await db.insertInto('identity_types').values(typeRow('lost')).execute()
        await sql`insert or rollback into identity_types (id, "createdAt", "updatedAt", tags, name) values ('lost', 1, 1, '{}', 'x')`.execute(
          db,
        )
      }, ORIGIN)
      .catch(() => undefined)
    await writer.write((tx) => add(tx, 'last'), ORIGIN)
    await follower.catchUp()

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    const inserted = commits.flatMap(({ rows }) => rows).filter(({ table }) => table === 'identity_types')
    expect(inserted.map((row) => row.operation === 'insert' && row.row.id)).toEqual(['kept', 'afterwards', 'last'])
    expect(listDifferences()).toEqual([])
  })

  it('hold values that unique columns have for a moment only, and rows that others replace', async () => {
    await writer.write(async (tx) => {
      for (const name of ['a', 'b']) await add(tx, name)
    }, ORIGIN)
    await writer.write(async ({ db }) => {
      const rename = (id: string, name: string) =>
        db.updateTable('identity_types').set({ name }).where('id', '=', id).execute()
      await rename('a', 'between')
      await rename('b', 'a')
      await rename('a', 'b')
    }, ORIGIN)
    await writer.write(async ({ db }) => {
      await sql`insert or replace into identity_types (id, "createdAt", "updatedAt", tags, name) values ('c', 1, 1, '{}', 'a')`.execute(
        db,
      )
    }, ORIGIN)
    await follower.catchUp()

    expect(listDifferences()).toEqual([])
  })

  it('lead to the same next keys, also if the newest row is gone', async () => {
    await writer.write(async ({ db }) => {
      await addApiSession(db, 'first')
      await addApiSession(db, 'second')
      await db.deleteFrom('api_sessions').execute()
    }, ORIGIN)
    await follower.catchUp()
    await writer.write(({ db }) => addApiSession(db, 'third'), ORIGIN)
    await follower.catchUp()

    expect(await follower.db.selectFrom('api_sessions').select(['n', 'id']).execute()).toEqual([{ n: 3, id: 'third' }])
    expect(listDifferences()).toEqual([])
  })

  it('hold any text as it is', async () => {
    const names = ['a\u0000b', '"quoted" \\ and \u2028', '\u{1f600}', "it's", '\u007f\u0001', '{"a":[1]}', ' ']
    await writer.write(async (tx) => {
      for (const name of names) await add(tx, name)
    }, ORIGIN)
    await follower.catchUp()

    const rows = await follower.db.selectFrom('identity_types').select('name').orderBy('n').execute()
    expect(rows.map(({ name }) => name).slice(-names.length)).toEqual(names)
    expect(listDifferences()).toEqual([])
  })

  it('are captured only while another store follows', async () => {
    await writer.write((tx) => add(tx, 'followed'), ORIGIN)
    stopFollowing()
    await writer.write((tx) => add(tx, 'alone'), ORIGIN)
    const isCapturing = async () =>
      (await sql<{ n: number }>`select count(*) as n from sqlite_temp_schema`.execute(writer.db)).rows[0]?.n
    const alone = await isCapturing()
    stopFollowing = log.follow((commit) => commits.push(commit))
    await writer.write((tx) => add(tx, 'followed again'), ORIGIN)

    expect(alone).toBe(0)
    expect(await isCapturing()).toBeGreaterThan(0)
    expect(commits.map(({ position }) => position)).toEqual([1, 3])
  })
})

describe('a follower', () => {
  it('continues the audit of the commits that it applied', async () => {
    for (const name of ['first', 'second']) await writer.write((tx) => add(tx, name), ORIGIN)
    clock.advance(5_000)
    await writer.write((tx) => add(tx, 'third'), ORIGIN)
    await follower.catchUp()

    expect(follower.auditElapsed()).toBe(writer.auditElapsed())
  })

  it('goes on where it was after it has been closed', async () => {
    await writer.write((tx) => add(tx, 'first'), ORIGIN)
    await follower.catchUp()
    await follower.close()
    await writer.write((tx) => add(tx, 'second'), ORIGIN)
    follower = await open('follower.db', followed)
    await follower.catchUp()

    expect(listDifferences()).toEqual([])
  })

  it.each([
    ['lacks a commit', () => commits.splice(0, 1)],
    ['lacks a row', () => commits.splice(1, 1, { ...commits[1]!, rows: commits[1]!.rows.slice(1) })],
  ])('that %s serves nothing more, and keeps what it had', async (_what, damage) => {
    await writer.write((tx) => add(tx, 'first'), ORIGIN)
    await writer.write((tx) => add(tx, 'second'), ORIGIN)
    await writer.write(({ db }) => db.deleteFrom('identity_types').where('id', '=', 'second').execute(), ORIGIN)
    damage()

    await expect(follower.catchUp()).rejects.toThrow()
    await expect(follower.write(async () => {}, ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(() => follower.requireUsable()).toThrow('the rows differ from those of the log')
    expect(failures.map(({ message }) => message)).toEqual(['the rows differ from those of the log'])
    const rows = await follower.db
      .selectFrom('identity_types')
      .select('id')
      .where('id', 'in', ['first', 'second'])
      .execute()
    expect(rows).toEqual([])
  })
})

describe('the digests of rows', () => {
  it('name the tables that differ', async () => {
    await writer.write((tx) => add(tx, 'only here'), ORIGIN)

    expect(listDifferences()).toEqual(['identity_types', 'audit_records'])
  })
})
