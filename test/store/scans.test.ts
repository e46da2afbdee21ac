// Reads that look at many records: they run in a thread, and end when their time is up.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import { DatabaseFiles } from '../../src/storage/sqlite/database-files.ts'
import { Scans } from '../../src/storage/sqlite/scans.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Reader, Store } from '../../src/storage/store.ts'

const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }
const client: Reader = { id: 'client', isAdministrator: false }
const administrator: Reader = { id: 'administrator', isAdministrator: true }

let directory: string
let file: string
let store: Store
let scans: Scans | undefined

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'scans-'))
  file = join(directory, 'controller.db')
  store = await openSqliteStore(file, systemClock, {
    auditSealer: new AuditSealer(Buffer.alloc(32, 1)),
    reportError: (error) => {
      throw error
    },
  })
})
afterEach(async () => {
  await scans?.close()
  scans = undefined
  await store.close()
  rmSync(directory, { recursive: true, force: true })
})

const compiled = <Row>(text: RawBuilder<Row>) => text.compile(store.db)
const scansWith = (milliseconds?: number, maxWaitMs?: number) => {
  scans = new Scans(file, new DatabaseFiles(file), milliseconds, maxWaitMs)
  return scans
}

// A long series of numbers, each of which costs so many units.
const endless = (units: number, text = 'endless') =>
  sql<{ n: number }>`with recursive endless(n) as (select 1 union all select n + 1 from endless)
    select n from ${sql.raw(text)} where likelihood(spend(${units}), 1.0) and n < 0`

const codeOf = (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'done',
    (error) => error.code,
  )

describe('a thread for reads', () => {
  it('refuses a read that waited too long for its turn, without running it', async () => {
    const threads = scansWith(300, 0)
    const names = compiled(sql<{ name: string }>`select name from identity_types`)

    const codes = await Promise.all([
      codeOf(threads.rows(compiled(endless(1)), administrator)),
      codeOf(threads.rows(names, administrator)),
    ])

    expect(codes).toEqual(['INVALID_FILTER', 'SERVER_TOO_MANY_REQUESTS'])
  })

  it('sees what was written before it was asked, and gives the rows back', async () => {
    const threads = scansWith()
    const names = compiled(sql<{ name: string }>`select name from identity_types where name = ${'new'}`)
    const before = await threads.rows(names, client)

    await store.write(async ({ db }) => {
      await db
        .insertInto('identity_types')
        .values({ id: 'n', createdAt: 1, updatedAt: 1, tags: '{}', name: 'new' })
        .execute()
    }, ORIGIN)

    expect(before).toEqual([])
    expect(await threads.rows(names, client)).toEqual([{ name: 'new' }])
  })

  it('ends a read when its time is up, and goes on with the next', async () => {
    const threads = scansWith(50)

    expect(await codeOf(threads.rows(compiled(endless(1)), client))).toBe('INVALID_FILTER')
    expect(await threads.rows(compiled(sql`select 1 as n`), client)).toEqual([{ n: 1 }])
  })

  it('lets one reader wait for two reads, and others for theirs', async () => {
    const threads = scansWith(100)
    const another: Reader = { id: 'another', isAdministrator: false }
    const running = [1, 2].map(() => codeOf(threads.rows(compiled(endless(1)), client)))

    expect(await codeOf(threads.rows(compiled(sql`select 1`), client))).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(await threads.rows(compiled(sql`select 1 as n`), another)).toEqual([{ n: 1 }])
    expect(await Promise.all(running)).toEqual(['INVALID_FILTER', 'INVALID_FILTER'])
  })

  it('serves administrators while that of all other callers is busy', async () => {
    const threads = scansWith(2_000)
    const order: string[] = []
    const slow = codeOf(threads.rows(compiled(endless(1)), client)).then(() => order.push('client'))

    await threads.rows(compiled(sql`select 1`), administrator)
    order.push('administrator')
    await slow

    expect(order).toEqual(['administrator', 'client'])
  })

  it('lets readers take turns, however many reads one of them has waiting', async () => {
    const threads = scansWith()
    const response: string[] = []
    const read = async (reader: Reader) => {
      await threads.rows(compiled(sql`select 1 as n`), reader)
      response.push(reader.id)
    }

    const busy = Array.from({ length: 4 }, () => read(administrator))
    await Promise.all([...busy, read({ id: 'another administrator', isAdministrator: true })])

    expect(response.indexOf('another administrator')).toBe(1)
  })

  it('leaves the loop to others while it works', async () => {
    const threads = scansWith(200)
    let isDone = false
    let turns = 0
    const scan = codeOf(threads.rows(compiled(endless(1)), client)).finally(() => {
      isDone = true
    })

    while (!isDone) {
      await new Promise((resolve) => setImmediate(resolve))
      turns += 1
    }

    expect(await scan).toBe('INVALID_FILTER')
    expect(turns).toBeGreaterThan(10)
  })

  it('refuses what cannot be read with the reason, and goes on', async () => {
    const threads = scansWith()

    await expect(threads.rows(compiled(sql`select n from no_such_table`), client)).rejects.toThrow('no such table')
    expect(await threads.rows(compiled(sql`select 1 as n`), client)).toEqual([{ n: 1 }])
  })

  it('that cannot start is a storage failure, and is started again', async () => {
    const threads = new Scans(join(directory, 'missing.db'), new DatabaseFiles(file))
    scans = threads

    expect(await codeOf(threads.rows(compiled(sql`select 1`), client))).toBe('STORAGE_UNAVAILABLE')
    expect(await codeOf(threads.rows(compiled(sql`select 1`), client))).toBe('STORAGE_UNAVAILABLE')
  })

  it('keeps one state of the database for a cursor, beside other reads', async () => {
    const threads = scansWith()
    const cursor = threads.cursor(compiled(sql<{ name: string }>`select name from identity_types order by n`), client)
    const first = await cursor.next(2)

    await store.write(async ({ db }) => {
      await db
        .insertInto('identity_types')
        .values({ id: 'n', createdAt: 1, updatedAt: 1, tags: '{}', name: 'new' })
        .execute()
    }, ORIGIN)
    const count = await threads.rows(compiled(sql`select count(*) as n from identity_types`), client)
    const rest = await cursor.next(100)
    cursor.close()

    expect([first.length, rest.length, await codeOf(Promise.resolve(cursor.next(1)))]).toEqual([
      2,
      3,
      expect.anything(),
    ])
    expect(count).toEqual([{ n: 6 }])
  })

  it('refuses what waits for it when it is closed', async () => {
    const threads = scansWith(60_000)
    const waiting = [client, administrator].map((reader) => codeOf(threads.rows(compiled(sql`select 1`), reader)))

    await threads.close()

    expect(await Promise.all(waiting)).toEqual(['STORAGE_UNAVAILABLE', 'STORAGE_UNAVAILABLE'])
    expect(await codeOf(threads.rows(compiled(sql`select 1`), client))).toBe('STORAGE_UNAVAILABLE')
  })
})

describe('a guarded read', () => {
  const upTo = (last: number, units: number) =>
    compiled(sql<{
      n: number
    }>`with recursive numbers(n) as (select 1 union all select n + 1 from numbers where n < ${last})
      select count(*) as n from numbers where likelihood(spend(${units}), 1.0)`)

  it('gives the same whether it is cheap, or so costly that it moves to a thread', async () => {
    const read = (last: number, units: number) => store.scan({ compile: () => upTo(last, units) }, client)

    expect(await read(10, 1)).toEqual([{ n: 10 }])
    expect(await read(10_000, 100)).toEqual([{ n: 10_000 }])
    expect(await read(10, 1)).toEqual([{ n: 10 }])
  })

  it('asks for each row, also where no column stands in its condition', async () => {
    const costs = async (rows: number) => store.scan({ compile: () => upTo(rows, 1) }, client)

    // A guard that was called once for the whole statement would never end it.
    await expect(codeOf(costs(60_000))).resolves.toBe('done')
    expect(store.stats().scans).toBe(1)
  })
})
