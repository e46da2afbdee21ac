// Streams hold a state of the database: who may open how many, and when they are cut.
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type RawBuilder, sql } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import { StreamTimeoutError } from '../../src/storage/sqlite/streams.ts'
import type { Reader, Store, StreamOptions } from '../../src/storage/store.ts'
import { lacks } from '../world/machine.ts'

let directory: string
let store: Store

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'streams-'))
  store = await openSqliteStore(join(directory, 'controller.db'), systemClock, {
    auditSealer: new AuditSealer(Buffer.alloc(32, 1)),
    reportError: (error) => {
      throw error
    },
  })
})
afterEach(async () => {
  await store.close()
  rmSync(directory, { recursive: true, force: true })
})

const client = (id: string): Reader => ({ id, isAdministrator: false })
const administrator = (id: string): Reader => ({ id, isAdministrator: true })

type NamedRow = { name: string }
const types = () => statement(sql<NamedRow>`select name from identity_types order by n`)
const statement = <Row>(text: RawBuilder<Row>) => ({ compile: () => text.compile(store.db) })

/** A stream of which one row was read. */
async function openStream(reader: Reader, more: Omit<StreamOptions, 'reader'> = {}) {
  const rows = store.stream(types(), { reader, ...more })[Symbol.asyncIterator]()
  await rows.next()
  return rows
}

const codeOf = async (attempt: Promise<unknown>) =>
  attempt.then(
    () => 'opened',
    (error) => error.code,
  )

describe('streams', () => {
  it('leave places for others when one reader takes what it can', async () => {
    await openStream(client('greedy'))
    await openStream(client('greedy'))

    expect(await codeOf(openStream(client('greedy')))).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(await codeOf(openStream(client('modest')))).toBe('opened')
  })

  it('leave places for administrators if all other callers take as many as they can', async () => {
    for (let at = 0; at < 8; at++) await openStream(client(`client ${at}`))

    expect(await codeOf(openStream(client('one more')))).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(await codeOf(openStream(administrator('admin')))).toBe('opened')
  })

  it('are refused to an administrator only for as long as all others are being read', async () => {
    const open = []
    for (let at = 0; at < 12; at++) open.push(await openStream(administrator(`administrator ${at}`)))

    await expect.poll(() => codeOf(openStream(administrator('late'))), { timeout: 10_000 }).toBe('opened')

    await expect(open[0]?.next()).rejects.toThrow(StreamTimeoutError)
    expect((await open[1]?.next())?.done).toBe(false)
    expect(store.stats().openStreams).toBe(12)
  })

  it('of an administrator give way to those that the same administrator opens later', async () => {
    const open = []
    for (let at = 0; at < 6; at++) open.push(await openStream(administrator('admin')))

    await expect.poll(() => codeOf(openStream(administrator('admin'))), { timeout: 10_000 }).toBe('opened')

    await expect(open[0]?.next()).rejects.toThrow(StreamTimeoutError)
    expect(store.stats().openStreams).toBe(6)
  })

  it('are cut once they are not read, and only then', async () => {
    const idle = await openStream(client('idle'), { idleTimeoutMs: 20 })
    const waiting = await openStream(client('waiting'), { idleTimeoutMs: 60_000 })

    await expect.poll(() => store.stats().openStreams).toBe(1)

    await expect(idle.next()).rejects.toThrow('nothing was read from it for 20 ms')
    expect((await waiting.next()).done).toBe(false)
  })

  it('are cut after their time, however eagerly they are read', async () => {
    const rows = store.stream(
      statement(sql`with recursive endless(n) as (select 1 union all select n + 1 from endless) select n from endless`),
      {
        reader: client('eager'),
        timeoutMs: 20,
      },
    )
    const readAll = async () => {
      for await (const _ of rows) await new Promise((resolve) => setImmediate(resolve))
    }

    await expect(readAll()).rejects.toThrow('it was open for more than 20 ms')
    expect(store.stats().openStreams).toBe(0)
  })

  it('that cannot begin leave nothing open, however often', async () => {
    const impossible = statement(sql<NamedRow>`select name from no_such_table`)

    for (let at = 0; at < 20; at++) {
      const rows = store.stream(impossible, { reader: client('unlucky') })[Symbol.asyncIterator]()
      await expect(rows.next()).rejects.toThrow('no such table')
    }

    expect(store.stats().openStreams).toBe(0)
    expect(await codeOf(openStream(client('unlucky')))).toBe('opened')
  })

  it.skipIf(lacks('Linux', process.platform === 'linux'))('that cannot begin keep no file open', async () => {
    const openFiles = () => readdirSync('/proc/self/fd').filter((fd) => linkOf(fd).startsWith(directory)).length
    const tryOne = () =>
      store
        .stream(statement(sql`select name from no_such_table`), { reader: client('unlucky') })
        [Symbol.asyncIterator]()
        .next()
        .catch(() => {})
    await tryOne()
    const before = openFiles()

    for (let at = 0; at < 20; at++) await tryOne()

    expect(openFiles()).toBe(before)
  })
})

/** The file of a file descriptor of this process; nothing if it was closed meanwhile. */
function linkOf(fd: string): string {
  try {
    return readlinkSync(`/proc/self/fd/${fd}`)
  } catch {
    return ''
  }
}
