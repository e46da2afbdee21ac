// A log in PostgreSQL: stores commit one after another, lose nothing that was acknowledged, and read only what the cluster key has made.
import type { Client, QueryResultRow } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { createLog, requireLog } from '../../src/storage/postgres/log-tables.ts'
import { PostgresLog } from '../../src/storage/postgres/postgres-log.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { add, type LogNode, LogNodes, ORIGIN, readIds } from '../world/log-nodes.ts'
import { TestPostgres } from '../world/postgres.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'

const KEY = Buffer.alloc(32, 7)
const START = { position: 0, chain: '' }

let server: TestPostgres
let url: string
let database: LogConnection
let nodes: LogNodes
const cleanUps: (() => unknown)[] = []

beforeAll(async () => {
  server = await TestPostgres.start()
}, 60_000)
afterAll(() => server?.stop())
beforeEach(async () => {
  url = await server.createDatabase()
  database = new LogConnection({ url, isPlain: true })
  await createLog(await database.open(), START)
  nodes = new LogNodes()
})
afterEach(async () => {
  await nodes.close()
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
  database.end()
})

interface NodeOptions {
  readonly key?: Buffer
  readonly url?: string
  readonly responseTimeoutMs?: number
}

function openNode(name: string, options: NodeOptions = {}): Promise<LogNode> {
  const { key = KEY, ...where } = options
  const log = new PostgresLog({ database: { url, isPlain: true, ...where }, cipher: new LogCipher(key), node: name })
  cleanUps.push(() => log.close())
  return nodes.open(name, log)
}

async function openNodeBehindProxy(name: string, options: NodeOptions = {}) {
  const behind = await TcpProxy.before(url)
  cleanUps.unshift(() => behind.proxy.close())
  return { node: await openNode(name, { ...options, url: behind.url }), proxy: behind.proxy }
}

async function read<Row extends QueryResultRow>(text: string): Promise<Row[]> {
  return (await (await database.open()).query<Row>(text)).rows
}

const listCommits = () =>
  read<{ position: number; node: string }>('select position, node from controller.commits order by position')

/** A connection of its own. */
function connect(url: string, isPlain = true): Promise<Client> {
  const connection = new LogConnection({ url, isPlain })
  cleanUps.push(() => connection.end())
  return connection.open()
}

async function expectSameRows(): Promise<void> {
  for (const { store } of nodes.all) await store.catchUp()
  const [first, ...others] = nodes.all.map((node) => nodes.digest(node))
  for (const other of others) expect(listDifferentTables(first!, other)).toEqual([])
  for (const { store, ids } of nodes.all) expect(ids.ids).toEqual(new Set(await readIds(store.db)))
}

describe('stores on a log in PostgreSQL', () => {
  it('commit one after another, and end with the same rows', async () => {
    for (const name of ['first', 'second', 'third']) await openNode(name)
    const writes = nodes.all.flatMap(({ name, store }) =>
      Array.from({ length: 40 }, (_, nth) => store.write(add(`${name} ${nth}`), ORIGIN)),
    )
    await Promise.all(writes)

    await expectSameRows()
    expect(nodes.all[0]!.ids.ids.size).toBeGreaterThanOrEqual(writes.length)
    const commits = await listCommits()
    expect(commits.map(({ position }) => position)).toEqual(commits.map((_, at) => at + 1))
    expect(new Set(commits.map(({ node }) => node)).size).toBe(3)
  })

  it('see in a transaction what others have committed before it', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)

    const visible = await second.store.write(
      async ({ db }) => [await readIds(db), [...second.ids.ids]] as const,
      ORIGIN,
    )

    for (const ids of visible) expect(ids).toContain('a')
  })

  it('leave no lock behind after transactions that fail', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    const failed = first.store.write(async () => Promise.reject(new Error('on purpose')), ORIGIN)

    await expect(failed).rejects.toThrow('on purpose')
    await second.store.write(add('a'), ORIGIN)
    expect(await listCommits()).toHaveLength(1)
  })
})

describe('a commit', () => {
  it('whose response is lost is acknowledged once it is found in the log', async () => {
    const { node, proxy } = await openNodeBehindProxy('first')
    await node.store.write(add('before'), ORIGIN)
    proxy.lostResponse = 'COMMIT'
    const written = node.store.write(add('a'), ORIGIN)
    while ((await listCommits()).length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    proxy.lostResponse = undefined

    await written
    expect(await listCommits()).toHaveLength(2)
    expect(node.ids.ids).toContain('a')
    const [head] = await read<{ proof: number }>('select proof from controller.head')
    expect(head?.proof, 'a later commit proves that standbys have it').toBe(1)
  })

  it('that does not reach the database is refused, and leaves nothing', async () => {
    const { node, proxy } = await openNodeBehindProxy('first')
    proxy.lostRequest = 'insert into controller.commits'

    await expect(node.store.write(add('a'), ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    proxy.lostRequest = undefined
    expect(await listCommits()).toEqual([])
    await node.store.write(add('a'), ORIGIN)
    expect(await listCommits()).toHaveLength(1)
  })

  it('is refused while the database does not respond, and others go on', async () => {
    const { node, proxy } = await openNodeBehindProxy('first', { responseTimeoutMs: 300 })
    const other = await openNode('second')
    await node.store.write(add('a'), ORIGIN)
    proxy.isHolding = true

    await expect(node.store.write(add('b'), ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await other.store.write(add('c'), ORIGIN)
    proxy.isHolding = false
    await node.store.write(add('b'), ORIGIN)
    await expectSameRows()
  })

  it('is made after a restart of the database by stores that were connected before', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)
    await server.restart()

    for (const [at, { store }] of [first, second].entries()) {
      const write = () => store.write(add(`after ${at}`), ORIGIN)
      await write().catch(write)
    }
    await expectSameRows()
  })

  it('of a store whose lock has ended meanwhile follows no commit of another one', async () => {
    const log = new PostgresLog({ database: { url, isPlain: true }, cipher: new LogCipher(KEY), node: 'stopped' })
    cleanUps.push(() => log.close())
    const other = await openNode('first')
    const turn = await log.acquire(START)
    await read(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
    const write = () => other.store.write(add('a'), ORIGIN)
    await write().catch(write)

    const late = turn.publish({ position: 1, at: 1, changes: [], tables: [], rows: [] })
    await expect(late).rejects.toThrow()
    expect((await listCommits()).map(({ node }) => node)).toEqual(['first'])
  })
})

describe('a log that is not what it was', () => {
  const refused = { code: 'STORAGE_UNAVAILABLE' }

  it.each([
    [
      'whose commit was changed',
      'update controller.commits set payload = set_byte(payload, 40, get_byte(payload, 40) # 1) where position = 2',
    ],
    [
      'whose commits were exchanged',
      'update controller.commits set payload = (select payload from controller.commits where position = 1) where position = 2',
    ],
    ['that lacks a commit', 'delete from controller.commits where position = 2'],
    [
      'that lost its end',
      'delete from controller.commits where position > 1; update controller.head set position = 1, chain = (select chain from controller.commits where position = 1)',
    ],
    ['whose head was set back', 'update controller.head set position = 1'],
  ])('%s is refused', async (_, statement) => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)
    await second.store.catchUp()
    for (const id of ['b', 'c']) await first.store.write(add(id), ORIGIN)
    await read(statement)

    const isShort = statement.includes('head')
    const late = isShort ? first : second
    await expect(late.store.catchUp()).rejects.toThrow()
    await expect(late.store.write(add('d'), ORIGIN)).rejects.toMatchObject(refused)
    expect(await readIds(late.store.db)).not.toContain('d')
  })

  it('is not read with another cluster key', async () => {
    const first = await openNode('first')
    await first.store.write(add('a'), ORIGIN)
    const stranger = await openNode('stranger', { key: Buffer.alloc(32, 8) })

    await expect(stranger.store.catchUp()).rejects.toThrow()
    expect(await readIds(stranger.store.db)).not.toContain('a')
  })

  it('shows the database nothing of what it holds', async () => {
    const first = await openNode('first')
    await first.store.write(add('confidential'), ORIGIN)
    const [row] = await read<{ payload: Buffer }>('select payload from controller.commits')

    expect(row!.payload.includes('confidential')).toBe(false)
  })
})

describe('a database', () => {
  it('that has a log is not given another one', async () => {
    await expect(createLog(await connect(url), START)).rejects.toThrow(/has the log of a network/)
  })

  it('without a log is refused with the command that creates one', async () => {
    const empty = await connect(await server.createDatabase())

    await expect(requireLog(empty)).rejects.toThrow(/controller cluster init/)
  })

  it('that acknowledges what a crash loses is refused', async () => {
    await read(`alter database ${new URL(url).pathname.slice(1)} set synchronous_commit = off`)

    await expect(requireLog(await connect(url))).rejects.toThrow(/synchronous_commit/)
  })

  it('without TLS is refused unless that is stated', async () => {
    await expect(connect(url, false)).rejects.toThrow(/does not support SSL/)
  })

  it('of several hosts is the one that can be reached', async () => {
    const { host } = new URL(url)

    await requireLog(await connect(url.replace(host, `127.0.0.1:1,${host}`)))
  })
})
