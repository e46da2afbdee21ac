// A log in PostgreSQL: stores commit one after another, lose nothing that was acknowledged, and read only what the cluster key has made.
import type { Client, QueryResultRow } from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { LogCipher } from '../../src/storage/postgres/log-cipher.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { createLog, requireClusterKey, requireLog, requireNetwork } from '../../src/storage/postgres/log-tables.ts'
import { LogUnavailableError, PostgresLog } from '../../src/storage/postgres/postgres-log.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { add, type LogNode, LogNodes, ORIGIN, readIds } from '../world/log-nodes.ts'
import { CLUSTER_KEY, LOG_START, logCipher } from '../world/log-start.ts'
import { TestPostgres } from '../world/postgres.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'

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
  await createLog(await database.open(), LOG_START, logCipher)
  nodes = new LogNodes()
})
afterEach(async () => {
  vi.restoreAllMocks()
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
  const { key = CLUSTER_KEY, ...where } = options
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

const nameDatabase = () => new URL(url).pathname.slice(1)

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

  it('decrypt a commit once, also if they apply it while a transaction waits for its turn', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)
    const holder = await connect(url)
    await holder.query('begin; select from controller.head for update')
    const open = vi.spyOn(LogCipher.prototype, 'open')
    const waiting = second.store.write(add('b'), ORIGIN)
    const listWaiting = () =>
      read(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)
    await expect.poll(async () => (await listWaiting()).length).toBe(1)

    await second.store.catchUp()
    await holder.query('rollback')
    await waiting
    expect(open).toHaveBeenCalledTimes(1)
    expect(await readIds(second.store.db)).toEqual(expect.arrayContaining(['a', 'b']))
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
    // More than one, if the response of the first one was lost, too.
    expect(head?.proof, 'a later commit proves that standbys have it').toBeGreaterThanOrEqual(1)
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
    const { node, proxy } = await openNodeBehindProxy('first', { responseTimeoutMs: 2_000 })
    const other = await openNode('second')
    await node.store.write(add('a'), ORIGIN)
    proxy.isHolding = true

    await expect(node.store.write(add('b'), ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    await other.store.write(add('c'), ORIGIN)
    proxy.isHolding = false
    await node.store.write(add('b'), ORIGIN)
    await expectSameRows()
  })

  it('is refused, and not of unknown outcome, while another one has the lock', async () => {
    const [waiting, responding] = [await openNode('first'), await openNode('second')]
    await waiting.store.write(add('a'), ORIGIN)
    const holder = await connect(url)
    await holder.query('begin; select from controller.head for update')

    const refused = { code: 'STORAGE_UNAVAILABLE', status: 503, retryAfterSeconds: expect.any(Number) }
    await expect(waiting.store.write(add('b'), ORIGIN)).rejects.toMatchObject(refused)
    await holder.query('rollback')
    await responding.store.write(add('c'), ORIGIN)
    await waiting.store.write(add('b'), ORIGIN)
    await expectSameRows()
    expect(await listCommits()).toHaveLength(3)
  }, 60_000)

  it('whose session the database has ended is refused at once, although another one has the lock since', async () => {
    const log = new PostgresLog({ database: { url, isPlain: true }, cipher: logCipher, node: 'first' })
    cleanUps.push(() => log.close())
    const turn = await log.acquire(LOG_START)
    await read(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
    const holder = await connect(url)
    await holder.query('begin; select from controller.head for update')

    const draft = { position: LOG_START.position + 1, at: 1, changes: [], tables: [], rows: [] }
    await expect(turn.publish(draft)).rejects.toThrow(LogUnavailableError)
    await holder.query('rollback')
    expect(await listCommits()).toEqual([])
  })

  it('that the database refuses is not looked up', async () => {
    const log = new PostgresLog({ database: { url, isPlain: true }, cipher: logCipher, node: 'first' })
    cleanUps.push(() => log.close())
    const turn = await log.acquire(LOG_START)
    const draft = { position: LOG_START.position + 1, at: Number.NaN, changes: [], tables: [], rows: [] }
    const refused = expect(turn.publish(draft)).rejects.toThrow(LogUnavailableError)
    const holder = await connect(url)
    await holder.query('begin; select from controller.head for update')

    await refused
    await holder.query('rollback')
  })

  it('is of unknown outcome if it was sent, and the database does not respond any more', async () => {
    const { node, proxy } = await openNodeBehindProxy('first', { responseTimeoutMs: 2_000 })
    await node.store.write(add('a'), ORIGIN)
    proxy.lostResponse = 'COMMIT'
    const unknown = expect(node.store.write(add('b'), ORIGIN)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    while ((await listCommits()).length < 2) await new Promise((resolve) => setTimeout(resolve, 5))
    proxy.isHolding = true

    await unknown
    proxy.lostResponse = undefined
    proxy.isHolding = false
    proxy.breakConnections()
    await node.store.catchUp().catch(() => node.store.catchUp())
    expect(node.ids.ids).toContain('b')
  }, 60_000)

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
    const log = new PostgresLog({
      database: { url, isPlain: true },
      cipher: new LogCipher(CLUSTER_KEY),
      node: 'stopped',
    })
    cleanUps.push(() => log.close())
    const other = await openNode('first')
    const turn = await log.acquire(LOG_START)
    await read(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
    const write = () => other.store.write(add('a'), ORIGIN)
    await write().catch(write)

    const late = turn.publish({ position: 1, at: 1, changes: [], tables: [], rows: [] })
    await expect(late).rejects.toThrow()
    expect((await listCommits()).map(({ node }) => node)).toEqual(['first'])
  })
})

describe('a commit without the lock', () => {
  it('is refused if others have committed, also if the log has deleted what is in its place', async () => {
    const { proxy, url: behind } = await TcpProxy.before(url)
    cleanUps.unshift(() => proxy.close())
    const database = { url: behind, isPlain: true }
    const log = new PostgresLog({ database, cipher: new LogCipher(CLUSTER_KEY), node: 'without lock' })
    cleanUps.unshift(() => log.close())
    const other = await openNode('first')
    proxy.replaced = { text: 'select from controller.head for update', by: 'select from controller.head' }
    const turn = await log.acquire(LOG_START)
    for (const name of ['a', 'b']) await other.store.write(add(name), ORIGIN)
    await read('delete from controller.commits where position = 1')

    const late = turn.publish({ position: 1, at: 1, changes: [], tables: [], rows: [] })
    await expect(late).rejects.toThrow('another controller has committed meanwhile')
    expect(await read('select position::int from controller.head')).toEqual([{ position: 2 }])
    expect((await listCommits()).map(({ position }) => Number(position))).toEqual([2])
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

  it('leads on under a new cluster key, and not under the one before it', async () => {
    const [newer, older] = [Buffer.alloc(32, 8), CLUSTER_KEY]
    const log = (...keys: Buffer[]) => {
      const sharedLog = new PostgresLog({
        database: { url, isPlain: true },
        cipher: new LogCipher(...keys),
        node: 'a node',
      })
      cleanUps.push(() => sharedLog.close())
      return sharedLog
    }
    const draft = (position: number) => ({ position, at: position, changes: [], tables: [], rows: [] })
    const first = await (await log(older).acquire(LOG_START)).publish(draft(1))
    const second = await (await log(newer, older).acquire(first)).publish(draft(2))
    await (await log(newer).acquire(second)).publish(draft(3))

    expect(await log(newer, older).readAfter(LOG_START, 9)).toHaveLength(3)
    expect(await log(newer).readAfter(first, 9)).toHaveLength(2)
    await expect(log(older).readAfter(LOG_START, 9)).rejects.toThrow(/another cluster key/)
    await (await log(older, newer).acquire(second)).abandon()
    const last = (await log(newer).readAfter(second, 9)).at(-1)!
    await (await log(older, newer).acquire(last)).publish(draft(4))
    await expect(log(newer, older).readAfter(last, 9)).rejects.toThrow(/does not follow/)
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
    await expect(createLog(await connect(url), LOG_START, logCipher)).rejects.toThrow(/has the log of a network/)
  })

  it('without a log is refused with the command that creates one', async () => {
    const empty = await connect(await server.createDatabase())

    await expect(requireLog(empty)).rejects.toThrow(/controller cluster init/)
  })

  it('whose log proves another cluster key is refused with where to find the right one', async () => {
    const head = await requireLog(await connect(url))

    requireClusterKey(head, new LogCipher(Buffer.alloc(32, 9), CLUSTER_KEY))
    expect(() => requireClusterKey(head, new LogCipher(Buffer.alloc(32, 9)))).toThrow(/copy cluster\.key from another/)
  })

  it('with the log of another network is refused', async () => {
    const head = await requireLog(await connect(url))

    requireNetwork(head, 'a network')
    expect(() => requireNetwork(head, 'another')).toThrow(/log of the network a network, .* belongs to another/)
    expect(() => requireNetwork(head, '')).toThrow(/belongs to none.* controller cluster join/)
  })

  it('whose log is of a later release is refused with that release', async () => {
    await read("update controller.head set log_version = 2, release = '7.0.0'")

    await expect(requireLog(await connect(url))).rejects.toThrow(/install release 7\.0\.0 or later/)
  })

  it('that takes no changes is refused', async () => {
    await read(`alter database ${nameDatabase()} set default_transaction_read_only = on`)

    await expect(requireLog(await connect(url))).rejects.toThrow(/read-only: set default_transaction_read_only/)
  })

  it('is refused to accounts without rights to the log, with what to grant', async () => {
    await read('drop role if exists stranger')
    await read('create role stranger login')
    const asStranger = await connect(url.replace('test@', 'stranger@'))
    const elsewhere = await connect((await server.createDatabase()).replace('test@', 'stranger@'))

    await expect(requireLog(asStranger)).rejects.toThrow(/grant it usage on schema controller/)
    await expect(createLog(elsewhere, LOG_START, logCipher)).rejects.toThrow(/grant it the right to create on database/)
    await read('grant usage on schema controller to stranger')
    await read('grant select, insert, update, delete on all tables in schema controller to stranger')
    await requireLog(asStranger)
  })

  it('that acknowledges what a crash loses is refused', async () => {
    await read(`alter database ${nameDatabase()} set synchronous_commit = off`)

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
