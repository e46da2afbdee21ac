// The queue of transactions: how many may wait, for how long, and when those that are refused may come again.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import { openSqliteStore, type SqliteStoreOptions } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Store, TransactionScope } from '../../src/storage/store.ts'
import { TestClock } from '../world/controller.ts'
import { MemoryLog } from '../world/memory-log.ts'

const auditSealer = new AuditSealer(Buffer.alloc(32, 1))
const ORIGIN: AuditOrigin = { actor: { kind: 'anonymous', id: null, name: null }, requestId: 'test', address: null }
const ADMINISTRATOR: AuditOrigin = { ...ORIGIN, isPrivileged: true }

let clock: TestClock
let store: Store
let sequence = 0

async function open(options: Partial<SqliteStoreOptions> = {}) {
  clock = new TestClock()
  const file = join(mkdtempSync(join(tmpdir(), 'store-')), 'controller.db')
  store = await openSqliteStore(file, clock, {
    auditSealer,
    reportError(error) {
      throw error
    },
    ...options,
  })
}
afterEach(() => store.close())

/** A transaction that takes so long. */
const lasting = (milliseconds: number) => async (tx: TransactionScope) => {
  const name = `type ${sequence++}`
  await tx.db.insertInto('identity_types').values({ id: name, createdAt: 1, updatedAt: 1, tags: '{}', name }).execute()
  clock.advance(milliseconds)
}

/** Begins so many transactions at the same moment. Returns the seconds after which each of those that were refused may come again. */
async function writeAtOnce(count: number, milliseconds: number, origin = ORIGIN): Promise<number[]> {
  const outcomes = await Promise.allSettled(
    Array.from({ length: count }, () => store.write(lasting(milliseconds), origin)),
  )
  return outcomes.flatMap((outcome) => {
    if (outcome.status === 'fulfilled') return []
    expect(outcome.reason).toMatchObject({ code: 'SERVER_TOO_MANY_REQUESTS', status: 429 })
    return outcome.reason.retryAfterSeconds as number
  })
}

describe('the queue of transactions', () => {
  it('takes as many as it may while it does not know how long they take', async () => {
    await open({ maxQueueLength: 50, maxQueueMs: 5_000 })

    expect(await writeAtOnce(50, 100)).toEqual([])
    expect(await writeAtOnce(53, 0)).toHaveLength(3)
  })

  it('refuses those that would wait for too long, and tells them to come one after the other once it has had time for the others', async () => {
    await open({ maxQueueLength: 1_000, maxQueueMs: 5_000 })
    await writeAtOnce(20, 100)

    const seconds = await writeAtOnce(120, 100)

    // Fifty wait for five seconds; the ones after them come in the time that each takes.
    expect(seconds).toHaveLength(70)
    expect(seconds.slice(0, 21)).toEqual([...Array(10).fill(6), ...Array(10).fill(7), 8])
    expect(seconds.at(-1)).toBe(12)
  })

  it('takes twice as many of administrators', async () => {
    await open({ maxQueueLength: 1_000, maxQueueMs: 5_000 })
    await writeAtOnce(20, 100)

    expect(await writeAtOnce(120, 100, ADMINISTRATOR)).toHaveLength(20)
  })

  it('takes as many as before once transactions take less time again', async () => {
    await open({ maxQueueLength: 1_000, maxQueueMs: 5_000 })
    await writeAtOnce(20, 1_000)
    expect(await writeAtOnce(20, 1_000)).toHaveLength(15)

    for (let round = 0; round < 30; round++) await writeAtOnce(5, 5)

    expect(await writeAtOnce(500, 5)).toEqual([])
  })

  it('lets transactions of administrators take turns with all others', async () => {
    await open()
    const order: string[] = []
    const write = (name: string, origin: AuditOrigin) => store.write(lasting(10), origin).then(() => order.push(name))
    const others = Array.from({ length: 6 }, (_, at) => write(`client ${at}`, ORIGIN))
    const administrators = Array.from({ length: 3 }, (_, at) => write(`administrator ${at}`, ADMINISTRATOR))

    await Promise.all([...others, ...administrators])

    expect(order).toEqual([
      ...['administrator 0', 'client 0', 'administrator 1', 'client 1', 'administrator 2', 'client 2'],
      ...['client 3', 'client 4', 'client 5'],
    ])
  })

  it('begins with those of administrators whenever it was empty', async () => {
    await open()
    await store.write(lasting(0), ORIGIN)
    const order: string[] = []
    const write = (name: string, origin: AuditOrigin) => store.write(lasting(0), origin).then(() => order.push(name))

    await Promise.all([write('client', ORIGIN), write('administrator', ADMINISTRATOR)])

    expect(order).toEqual(['administrator', 'client'])
  })

  it('says beforehand whether it would refuse a transaction', async () => {
    await open({ maxQueueLength: 2 })
    const writing = [store.write(lasting(0), ORIGIN), store.write(lasting(0), ORIGIN)]

    expect(() => store.requireRoom()).toThrow(expect.objectContaining({ code: 'SERVER_TOO_MANY_REQUESTS' }))
    await Promise.all(writing)
    expect(() => store.requireRoom()).not.toThrow()
  })
})

describe('while a group is on its way to a log that is shared', () => {
  it('transactions that had no turn yet count as waiting', async () => {
    const shared = new MemoryLog().connect('first')
    const isRefused: boolean[] = []
    const noteRoom = () => {
      try {
        store.requireRoom()
        isRefused.push(false)
      } catch {
        isRefused.push(true)
      }
    }
    await open({
      maxQueueLength: 3,
      log: {
        ...shared,
        acquire: async (after) => {
          const turn = await shared.acquire(after)
          const publish: typeof turn.publish = (draft) => {
            noteRoom()
            return turn.publish(draft)
          }
          return { ...turn, publish }
        },
      },
    })

    // Each takes the time of a group.
    await Promise.all(Array.from({ length: 5 }, () => store.write(lasting(1_000), ADMINISTRATOR)))

    expect(isRefused).toEqual([true, true, false, false, false])
  })
})

describe('a group of transactions', () => {
  /** Opens the store on a log that is shared, whose every turn is waited for. */
  async function openWithSlowTurns(waitMs: number): Promise<void> {
    const shared = new MemoryLog().connect('first')
    await open({
      log: {
        ...shared,
        acquire: async (after) => {
          const turn = await shared.acquire(after)
          clock.advance(waitMs)
          return turn
        },
      },
    })
  }

  it('takes as long as what came between it and the group before, so that half of the time is left for transactions', async () => {
    await open()
    const groups: number[] = []
    store.recordBy({
      name: 'groups',
      concerns: () => true,
      record: async () => {
        // As a slow disk.
        clock.advance(40)
      },
    })
    const commits = () => store.stats().commits
    const writing = Array.from({ length: 30 }, () =>
      store.write(lasting(10), ORIGIN).then(() => groups.push(commits())),
    )
    await Promise.all(writing)

    const sizes = [...new Set(groups)].map((group) => groups.filter((other) => other === group).length)
    expect(sizes[0]).toBe(1)
    expect(sizes.slice(1, -1)).toEqual(sizes.slice(1, -1).map(() => 5))
  })

  it('takes as long as it waited for its turn, so that each turn at a log that is shared commits many', async () => {
    await openWithSlowTurns(100)

    await Promise.all(Array.from({ length: 10 }, () => store.write(lasting(10), ORIGIN)))

    expect(store.stats().commits).toBe(1)
  })

  it('begins no further transaction after a quarter of a second, however long it waited for its turn', async () => {
    await openWithSlowTurns(5_000)

    await Promise.all(Array.from({ length: 60 }, () => store.write(lasting(50), ORIGIN)))

    expect(store.stats().commits).toBe(10)
  })
})
