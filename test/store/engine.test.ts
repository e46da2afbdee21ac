// The storage engine: what it promises of transactions, and what it refuses.
import { mkdtempSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { ChainVerifier } from '../../src/storage/audit/audit-chain.ts'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import { openForWriting } from '../../src/storage/sqlite/connection.ts'
import { copyDatabaseInto } from '../../src/storage/sqlite/copy-database.ts'
import { DirectoryLockedError, lockDirectory } from '../../src/storage/sqlite/directory-lock.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { type AuditOrigin, type Store, StoreMisuseError, type TransactionScope } from '../../src/storage/store.ts'
import type { Change } from '../../src/storage/transactions/changes.ts'
import { followCommits } from '../world/projections.ts'
import { Sqlite } from '../world/sqlite.ts'

const auditSealer = new AuditSealer(Buffer.alloc(32, 1))
const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }

let file: string
let store: Store

beforeEach(async () => {
  file = join(mkdtempSync(join(tmpdir(), 'store-')), 'controller.db')
  store = await openSqliteStore(file, systemClock, {
    auditSealer,
    reportError(error) {
      throw error
    },
  })
})
afterEach(() => store.close())

const typeRow = (name: string) => ({ id: name, createdAt: 1, updatedAt: 1, tags: '{}', name })
const addType =
  (name: string) =>
  async ({ db }: TransactionScope) => {
    await db.insertInto('identity_types').values(typeRow(name)).execute()
    return name
  }
const addAudited = (name: string) => async (tx: TransactionScope) => {
  await addType(name)(tx)
  tx.record({ operation: 'create', audit: 'event', resource: 'identity-types', id: name, at: 1 })
}
/** Of what the audit knows, and what is wrong with its chain. */
const audited = async () => {
  const check = new ChainVerifier(auditSealer)
  const records = await store.db.selectFrom('audit_records').selectAll().orderBy('n').execute()
  for (const record of records) check.add(record)
  return { entities: records.map(({ entityId }) => entityId), findings: check.report().findings }
}
const names = async () =>
  (await store.db.selectFrom('identity_types').select('name').orderBy('n').execute()).map(({ name }) => name).slice(5)

describe('a store', () => {
  it('puts every commit on disk before the caller resumes, also when it is opened again', async () => {
    await store.close()
    const again = openForWriting(file)
    const names = ['synchronous', 'journal_mode', 'foreign_keys', 'temp_store', 'journal_size_limit', 'busy_timeout']
    const pragmas = names.map((name) => again.pragma(name, { simple: true }))
    again.close()
    store = await openSqliteStore(file, systemClock, { auditSealer, reportError() {} })

    expect(pragmas).toEqual([2, 'wal', 1, 2, 8 * 1024 * 1024, 0])
  })

  it('refuses changes outside a transaction', async () => {
    await expect(store.db.insertInto('identity_types').values(typeRow('x')).execute()).rejects.toBeInstanceOf(
      StoreMisuseError,
    )
    await expect(
      store.db.insertInto('identity_types').values(typeRow('x')).returning('n').execute(),
    ).rejects.toBeInstanceOf(StoreMisuseError)
    await expect(store.db.deleteFrom('identity_types').execute()).rejects.toBeInstanceOf(StoreMisuseError)
  })

  it('shows a caller its own write', async () => {
    for (let at = 0; at < 200; at++) {
      await store.write(addType(`type ${at}`), ORIGIN)

      expect((await names()).at(-1)).toBe(`type ${at}`)
    }
  })

  it('lets one process at a time work on a directory', () => {
    const directory = mkdtempSync(join(tmpdir(), 'locked-'))
    const unlock = lockDirectory(directory)

    expect(() => lockDirectory(directory)).toThrow(DirectoryLockedError)
    unlock()
    lockDirectory(directory)()
  })
})

describe('transactions that wait together', () => {
  it('share commits', async () => {
    const before = store.stats().commits

    await Promise.all(Array.from({ length: 30 }, (_, at) => store.write(addType(`type ${at}`), ORIGIN)))

    // A group ends after some milliseconds, so a slow machine commits more than once.
    expect(store.stats().commits - before).toBeLessThan(30)
    expect(await names()).toHaveLength(30)
  })

  it('fail one by one', async () => {
    const results = await Promise.allSettled([
      store.write(addType('a'), ORIGIN),
      store.write(addType('a'), ORIGIN),
      store.write(async () => Promise.reject(new Error('my own')), ORIGIN),
      store.write(addType('b'), ORIGIN),
    ])

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
    expect(await names()).toEqual(['a', 'b'])
  })

  it('fail one by one in the audit too, whose chain stays whole', async () => {
    const results = await Promise.allSettled([
      store.write(addAudited('a'), ORIGIN),
      store.write(async (tx) => {
        await addAudited('b')(tx)
        throw new Error('taken back')
      }, ORIGIN),
      store.write(addAudited('c'), ORIGIN),
    ])

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(await audited()).toEqual({ entities: ['a', 'c'], findings: [] })
  })

  it('let others have their turn, however many they are', async () => {
    const before = store.stats().commits
    let isOver = false
    let readMeanwhile = 0
    const writes = Promise.all(Array.from({ length: 200 }, (_, at) => store.write(addType(`type ${at}`), ORIGIN)))
    void writes.then(() => {
      isOver = true
    })

    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve))
      await names()
      readMeanwhile += 1
    }

    // A group holds at most 64, and between two of them there is a turn of the loop.
    expect(store.stats().commits - before).toBeGreaterThanOrEqual(4)
    expect(readMeanwhile).toBeGreaterThanOrEqual(4)
  })

  it('announce what they changed in the order of their commits, and only that', async () => {
    const observations: string[] = []
    await followCommits(store, (changes) => observations.push(...changes.map(({ id }) => id)))
    const change = (id: string): Change => ({
      operation: 'create',
      audit: 'none',
      resource: 'identity-types',
      id,
      at: 1,
    })
    const write = (id: string, isGood: boolean) =>
      store.write(async (tx) => {
        tx.record(change(id))
        if (!isGood) throw new Error('taken back')
      }, ORIGIN)

    await Promise.allSettled([write('1', true), write('2', false), write('3', true)])

    expect(observations).toEqual(['1', '3'])
  })

  it('tell their callers after the projections', async () => {
    const order: string[] = []
    await followCommits(store, () => {
      order.push('projection')
    })
    const change: Change = { operation: 'create', audit: 'none', resource: 'identity-types', id: 'x', at: 1 }

    await store.write(async (tx) => tx.record(change), ORIGIN).then(() => order.push('caller'))

    expect(order).toEqual(['projection', 'caller'])
  })
})

describe('a transaction', () => {
  it.each([
    ['a timer', () => new Promise((resolve) => setTimeout(resolve, 5))],
    ['an immediate', () => new Promise((resolve) => setImmediate(resolve))],
    ['a file', () => readFile(import.meta.filename)],
    ['WebCrypto', () => crypto.subtle.digest('SHA-256', new Uint8Array(8))],
    ['a promise that never settles', () => new Promise(() => {})],
  ])('that awaits %s is refused and rolled back, and the group goes on', async (_what, foreign) => {
    const results = await Promise.allSettled([
      store.write(addType('before'), ORIGIN),
      store.write(async (tx) => {
        await addType('foreign')(tx)
        await foreign()
      }, ORIGIN),
      store.write(addType('after'), ORIGIN),
    ])

    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect((results[1] as PromiseRejectedResult).reason.name).toBe('NonQueryAwaitError')
    expect(await names()).toEqual(['before', 'after'])
  })

  it('may await as many of its own queries as it likes', async () => {
    await store.write(async (tx) => {
      for (let at = 0; at < 300; at++) await addType(`type ${at}`)(tx)
    }, ORIGIN)

    expect(await names()).toHaveLength(300)
  })

  it('cannot be used after its end', async () => {
    let leaked: TransactionScope | undefined
    await store.write(async (tx) => {
      leaked = tx
    }, ORIGIN)

    await expect(addType('late')(leaked as TransactionScope)).rejects.toBeInstanceOf(StoreMisuseError)
  })

  it('cannot be begun inside another', async () => {
    const outer = store.write(async () => {
      await store.write(addType('inner'), ORIGIN)
    }, ORIGIN)

    await expect(outer).rejects.toBeInstanceOf(StoreMisuseError)
    expect(await names()).toEqual([])
  })

  it('reads through its own handle', async () => {
    const outer = store.write(async () => {
      await store.db.selectFrom('identity_types').selectAll().execute()
    }, ORIGIN)

    await expect(outer).rejects.toBeInstanceOf(StoreMisuseError)
  })

  it('refuses values that SQLite would turn into NULL', async () => {
    const write = store.write(
      ({ db }) =>
        db
          .insertInto('identity_types')
          .values({ ...typeRow('x'), createdAt: Number.NaN })
          .execute(),
      ORIGIN,
    )

    await expect(write).rejects.toBeInstanceOf(StoreMisuseError)
  })
})

describe('a group whose commit fails', () => {
  it('fails as a whole, leaves no trace, and the next one succeeds', async () => {
    // However slow the machine is, both transactions are in one group.
    const stopped = vi.spyOn(performance, 'now').mockReturnValue(0)
    const announced: unknown[] = []
    await followCommits(store, (changes) => announced.push(...changes))
    const change: Change = { operation: 'create', audit: 'event', resource: 'identity-types', id: 'x', at: 1 }
    const results = await Promise.allSettled([
      store.write(addType('lost'), ORIGIN),
      store.write(async (tx) => {
        tx.record(change)
        // Ends the whole transaction, as SQLite does if the disk is full.
        await sql`insert or rollback into identity_types (id, "createdAt", "updatedAt", tags, name) values ('lost', 1, 1, '{}', 'x')`.execute(
          tx.db,
        )
      }, ORIGIN),
    ])
    stopped.mockRestore()
    await store.write(addType('kept'), ORIGIN)

    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(announced).toEqual([])
    expect(await names()).toEqual(['kept'])
    expect(await store.db.selectFrom('audit_records').selectAll().execute()).toEqual([])
  })

  it('on the way to the disk fails as a whole too, and the audit goes on where it was', async () => {
    const announced: string[] = []
    await followCommits(store, (changes) => announced.push(...changes.map(({ id }) => id)))
    await store.write(addAudited('first'), ORIGIN)

    // On a machine that does other work, a group could end by its time after the first of them.
    const stopped = vi.spyOn(performance, 'now').mockReturnValue(0)
    const results = await Promise.allSettled([
      store.write(addAudited('lost'), ORIGIN),
      store.write(async (tx) => {
        await addAudited('also lost')(tx)
        // The mistake shows when the group is committed, and not before.
        await sql`pragma defer_foreign_keys = on`.execute(tx.db)
        await tx.db
          .insertInto('configs')
          .values({ ...typeRow('of no type'), configTypeId: 'nothing', data: '{}' })
          .execute()
      }, ORIGIN),
    ])
    stopped.mockRestore()
    await store.write(addAudited('kept'), ORIGIN)

    for (const result of results) {
      expect(result).toMatchObject({ status: 'rejected', reason: { code: 'STORAGE_UNAVAILABLE', status: 503 } })
    }
    expect(announced).toEqual(['first', 'kept'])
    expect(await names()).toEqual(['first', 'kept'])
    expect(await audited()).toEqual({ entities: ['first', 'kept'], findings: [] })
  })
})

describe('a total', () => {
  it('is counted again once its table changes, and not before', async () => {
    let counted = 0
    const query = () => {
      const built = store.db.selectFrom('identity_types').select((eb) => eb.fn.countAll<number>().as('n'))
      const compile = () => {
        counted += 1
        return built.compile()
      }
      return { compile } as typeof built
    }
    const total = () => store.count(query(), ['identity_types'])

    const first = await total()
    await store.write(addType('one more'), ORIGIN)

    expect(await total()).toBe(first + 1)
    expect(counted).toBe(2)
  })
})

describe('a stream', () => {
  it('sees one state of the database, and holds up no write', async () => {
    await store.write(async (tx) => {
      for (let at = 0; at < 50; at++) await addType(`type ${at}`)(tx)
    }, ORIGIN)
    const observations: string[] = []

    const query = store.db.selectFrom('identity_types').select('name').orderBy('n')
    for await (const { name } of store.stream(query, { reader: { id: 'a', isAdministrator: false } })) {
      observations.push(name)
      if (observations.length === 10) await store.write(addType('written meanwhile'), ORIGIN)
    }

    expect(observations).toHaveLength(55)
    expect(await names()).toHaveLength(51)
  })
})

describe('the tables', () => {
  it('are looked at again once there are many more records, so that lists are planned for them', async () => {
    const looked = async () => {
      const matches = sql<{ n: number }>`select count(*) as n from sqlite_schema where name = 'sqlite_stat1'`
      return (await matches.execute(store.db)).rows[0]?.n
    }
    await store.write(addAudited('first'), ORIGIN)
    const before = await looked()

    await store.write(async (tx) => {
      for (let at = 0; at < 1_000; at++) await addAudited(`type ${at}`)(tx)
    }, ORIGIN)

    expect(before).toBe(0)
    await expect.poll(looked).toBe(1)
  })

  it('can be copied while they are written', async () => {
    const copy = `${file}.copy`
    await store.write(addType('copied'), ORIGIN)

    await Promise.all([copyDatabaseInto(file, copy), store.write(addType('meanwhile'), ORIGIN)])

    const opened = new Sqlite(copy, { readonly: true })
    expect(opened.pragma('integrity_check', { simple: true })).toBe('ok')
    expect(opened.prepare('select name from identity_types').pluck().all()).toContain('copied')
    opened.close()
  })
})
