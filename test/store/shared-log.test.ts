// Stores that share a log: what was acknowledged is in it once, without gaps, whatever fails, and all of them end with the same rows.
import type { Database, RunResult } from 'better-sqlite3'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { ChainVerifier } from '../../src/storage/audit/audit-chain.ts'
import type { LogPosition } from '../../src/storage/commit-log.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import type { TransactionScope } from '../../src/storage/store.ts'
import { add, auditSealer, change, type LogNode, LogNodes, ORIGIN, readIds } from '../world/log-nodes.ts'
import { type Fault, type FaultSource, MemoryLog } from '../world/memory-log.ts'
import { type Random, random } from '../world/random.ts'
import { Sqlite } from '../world/sqlite.ts'

let log: MemoryLog
let nodes: LogNodes

const openNode = (name: string, findFault?: FaultSource) => nodes.open(name, log.connect(name, findFault))

beforeEach(() => {
  log = new MemoryLog()
  nodes = new LogNodes()
})
afterEach(async () => {
  vi.restoreAllMocks()
  await nodes.close()
})

/** The value of SQLite's setting `synchronous` with which a commit waits for the disk. */
const FULL = 2

describe('a store on a log that others share', () => {
  it('commits after what the others have committed, and sees it in rows and in memory', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)
    const observed = await second.store.write(
      async ({ db }) => ({ rows: await readIds(db), memory: [...second.ids.ids] }),
      ORIGIN,
    )
    await second.store.write(add('b'), ORIGIN)
    await first.store.catchUp()

    expect(observed.rows).toContain('a')
    expect(observed.memory).toContain('a')
    expect([...first.ids.ids]).toContain('b')
    expect(log.commits.map(({ position, node }) => [position, node])).toEqual([
      [1, 'first'],
      [2, 'second'],
      [3, 'second'],
    ])
  })

  it('applies what others have committed while a transaction waits for its turn', async () => {
    const [first, second] = [await openNode('first'), await openNode('second')]
    await first.store.write(add('a'), ORIGIN)
    const turn = await log.connect('third').acquire(log.commits.at(-1) as LogPosition)
    const waiting = second.store.write(add('b'), ORIGIN)
    await new Promise((resolve) => setImmediate(resolve))

    await second.store.catchUp()
    expect(await readIds(second.store.db)).toContain('a')
    await turn.abandon()
    await waiting
    expect(log.commits.map(({ position, node }) => [position, node])).toEqual([
      [1, 'first'],
      [2, 'second'],
    ])
  })

  it.each(['lost', 'replaced by another one'])(
    'commits nothing after a commit that it applied while it waited, and that was %s in the log',
    async (fate) => {
      const calls: string[] = []
      const second = await openNode('second', (call) => {
        calls.push(call)
        return undefined
      })
      const first = await openNode('first')
      await first.store.write(add('a'), ORIGIN)
      const turn = await log.connect('third').acquire(log.commits.at(-1) as LogPosition)
      const waiting = second.store.write(add('b'), ORIGIN)
      await new Promise((resolve) => setImmediate(resolve))

      await second.store.catchUp()
      log.loseLast()
      if (fate !== 'lost') await turn.publish({ position: 1, at: 1, changes: [], tables: [], rows: [] })
      await turn.abandon()
      await expect(waiting).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      expect(calls).not.toContain('publish')
    },
  )

  it('shows nothing that the log has not taken, also to reads while it waits', async () => {
    let publishes = 0
    const readMeanwhile: string[][] = []
    const node = await openNode('first', (call) => {
      if (call === 'publish' && ++publishes === 1) return 'refused'
      return undefined
    })
    const failed = node.store.write(add('refused'), ORIGIN)
    let isOver = false
    const settled = failed.then(
      () => undefined,
      (error) => {
        isOver = true
        return error
      },
    )
    while (!isOver) {
      await new Promise((resolve) => setImmediate(resolve))
      readMeanwhile.push(await readIds(node.store.db))
    }

    expect(await settled).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(readMeanwhile.flat()).not.toContain('refused')
    expect(node.ids.ids).not.toContain('refused')
    await node.store.write(add('later'), ORIGIN)
    expect(log.commits.map(({ changes }) => changes.map(({ id }) => id))).toEqual([['later']])
  })

  it('follows its own commit whose outcome it did not learn', async () => {
    let publishes = 0
    const node = await openNode('first', (call) => (call === 'publish' && ++publishes === 1 ? 'unknown' : undefined))

    await expect(node.store.write(add('unknown'), ORIGIN)).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      status: 503,
    })
    await expect(node.store.write(add('unknown'), ORIGIN)).rejects.toMatchObject({ name: 'UniqueViolationError' })

    expect(log.commits).toHaveLength(1)
    expect(node.ids.ids).toContain('unknown')
  })

  it('offers the log nothing if no transaction of a group succeeds', async () => {
    const node = await openNode('first')
    const failure = node.store.write(async () => Promise.reject(new Error('on purpose')), ORIGIN)
    await expect(failure).rejects.toThrow('on purpose')
    await node.store.write(add('a'), ORIGIN)

    expect(log.commits.map(({ position }) => position)).toEqual([1])
  })

  it('refuses transactions while the log is out of reach, and reads on', async () => {
    let isReachable = true
    const node = await openNode('first', () => (isReachable ? undefined : 'refused'))
    await node.store.write(add('a'), ORIGIN)
    isReachable = false

    await expect(node.store.write(add('b'), ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE', status: 503 })
    await expect(node.store.catchUp()).rejects.toThrow()
    expect(await readIds(node.store.db)).toContain('a')
    isReachable = true
    await node.store.write(add('b'), ORIGIN)
    expect(await readIds(node.store.db)).toContain('b')
  })

  it('waits for the disk only with rows that files follow, because the log has the others', async () => {
    const durable: unknown[] = []
    const { prepare } = Sqlite.prototype
    vi.spyOn(Sqlite.prototype, 'prepare').mockImplementation(function (this: Database, text: string) {
      const statement = prepare.call(this, text)
      if (text !== 'commit') return statement
      const run = statement.run.bind(statement) as () => RunResult
      statement.run = () => {
        durable.push(this.pragma('synchronous', { simple: true }) === FULL)
        return run()
      }
      return statement
    })
    const node = await openNode('first')
    durable.length = 0

    await node.store.write(add('a'), ORIGIN)
    await node.store.write(async ({ db }) => {
      const file = { id: 'f', createdAt: 1, updatedAt: 1, tags: '{}', name: 'file', sealedContent: '' }
      await db.insertInto('shared_files').values(file).execute()
    }, ORIGIN)
    await node.store.write(add('b'), ORIGIN)

    expect(durable).toEqual([false, true, false])
  })

  it('refuses a log that does not lead on from its rows', async () => {
    const node = await openNode('first')
    await node.store.write(add('a'), ORIGIN)
    await node.store.close()
    log = new MemoryLog()
    await openNode('first')

    await expect(node.store.write(add('b'), ORIGIN)).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
    expect(log.commits).toEqual([])
  })
})

// A run of its own may try far more, with other seeds: each group is about six transactions.
const ROUNDS = Number(process.env.CONTROLLER_TEST_ROUNDS ?? 40)
const SEED = Number(process.env.CONTROLLER_TEST_SEED ?? 1)

const PUBLISH_FAULTS: readonly Fault[] = ['refused', 'unknown', 'looked up', 'crash before', 'crash after']

describe('three stores that share a log in which anything fails', () => {
  it('lose nothing that was acknowledged, repeat nothing, and end with the same rows', async () => {
    const dice = random(SEED)
    let isCalm = false
    const crashed = new Set<string>()
    const faultsOf =
      (name: string): FaultSource =>
      (call) => {
        if (isCalm || !dice.oneIn(8)) return undefined
        const fault = call === 'publish' ? dice.pick(PUBLISH_FAULTS) : 'refused'
        if (fault.startsWith('crash')) crashed.add(name)
        return fault
      }
    for (const name of ['first', 'second', 'third']) await openNode(name, faultsOf(name))
    const outcomes = new Map<string, 'acknowledged' | 'failed' | 'refused' | 'unknown'>()
    for (let round = 0; round < ROUNDS; round++) {
      nodes.clock.advance(dice.below(50))
      await Promise.all(nodes.all.map((node) => runGroup(node, `${round} ${node.name}`, dice, outcomes, crashed)))
      for (const node of nodes.all) {
        if (!crashed.delete(node.name)) continue
        await openNode(node.name, faultsOf(node.name))
      }
    }
    isCalm = true
    for (const { store } of nodes.all) await store.catchUp()

    const logged = log.commits.flatMap(({ changes }) =>
      changes.filter(({ operation }) => operation === 'create').map(({ id }) => id),
    )
    const withOutcome = (wanted: string) => [...outcomes].filter(([, outcome]) => outcome === wanted).map(([id]) => id)
    expect(new Set(logged).size, 'no transaction is in the log twice').toBe(logged.length)
    expect(
      withOutcome('acknowledged').filter((id) => !logged.includes(id)),
      'lost',
    ).toEqual([])
    for (const outcome of ['failed', 'refused'])
      expect(
        withOutcome(outcome).filter((id) => logged.includes(id)),
        `${outcome}, but in the log`,
      ).toEqual([])
    expect(log.commits.map(({ position }) => position)).toEqual(log.commits.map((_, at) => at + 1))
    for (const kind of ['acknowledged', 'failed', 'refused'] as const) expect(withOutcome(kind)).not.toEqual([])
    const [first, ...others] = nodes.all.map((node) => nodes.digest(node))
    for (const other of others) expect(listDifferentTables(first!, other)).toEqual([])
    for (const node of nodes.all) await expectConsistent(node)
  }, 600_000)
})

/** Starts some transactions at once, and notes what becomes of each; those of a process that ends become nothing. */
async function runGroup(
  { name, store, ids }: LogNode,
  prefix: string,
  dice: Random,
  outcomes: Map<string, string>,
  crashed: ReadonlySet<string>,
): Promise<void> {
  let left = 1 + dice.below(8)
  const settled = new Promise<void>((resolve) => {
    const settle = () => --left === 0 && resolve()
    for (let nth = left; nth > 0; nth--) {
      const id = `${prefix} ${nth}`
      const isBad = dice.oneIn(5)
      outcomes.set(id, 'unknown')
      store.write(makeBody(id, isBad, ids, dice), ORIGIN).then(
        () => {
          outcomes.set(id, 'acknowledged')
          settle()
        },
        (error) => {
          const { code } = error as { code?: string }
          const isStorage = code === 'STORAGE_UNAVAILABLE' || code === 'OUTCOME_UNKNOWN'
          if (!isStorage && !isBad) throw error
          outcomes.set(id, isBad ? 'failed' : code === 'OUTCOME_UNKNOWN' ? 'unknown' : 'refused')
          settle()
        },
      )
    }
  })
  const ended = (async () => {
    while (!crashed.has(name)) await new Promise((resolve) => setImmediate(resolve))
  })()
  await Promise.race([settled, ended])
  if (!crashed.has(name) && dice.oneIn(3)) await store.catchUp().catch(() => undefined)
}

/** Adds a record, removes an earlier one at times, and requires that memory holds what the rows held before the group. */
function makeBody(id: string, isBad: boolean, memory: LogNode['ids'], dice: Random) {
  return async (tx: TransactionScope) => {
    const idsBefore = new Set(memory.ids)
    for (const { operation, id: changed } of tx.uncommitted.earlier)
      if (operation === 'create') idsBefore.add(changed)
      else idsBefore.delete(changed)
    expect(idsBefore).toEqual(new Set(await readIds(tx.db)))
    await add(id)(tx)
    if (dice.oneIn(3)) {
      const victim = dice.pick([...idsBefore])
      const { numDeletedRows } = await tx.db
        .deleteFrom('identity_types')
        .where('id', '=', victim)
        .executeTakeFirstOrThrow()
      expect(numDeletedRows).toBe(1n)
      tx.record({ ...change('delete', victim), count: 1 })
    }
    if (isBad) throw new Error('on purpose')
  }
}

/** Requires that memory holds what the rows hold, and that the audit is one chain. */
async function expectConsistent({ store, ids }: LogNode): Promise<void> {
  expect(ids.ids).toEqual(new Set(await readIds(store.db)))
  const verifier = new ChainVerifier(auditSealer)
  for (const record of await store.db.selectFrom('audit_records').selectAll().orderBy('n').execute())
    verifier.add(record)
  expect(verifier.report().findings).toEqual([])
}
