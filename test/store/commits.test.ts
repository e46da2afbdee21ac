// Commits as what follows them receives them: their positions, and what a process that did not make them can tell from them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import { continueAfter, readCommitPosition } from '../../src/storage/sqlite/commit-position.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Store, TransactionScope } from '../../src/storage/store.ts'
import type { Commit } from '../../src/storage/transactions/changes.ts'
import { TestClock } from '../world/controller.ts'

const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }

let file: string
let store: Store
let commits: Commit[]
const clock = new TestClock(1_000_000)

async function open(): Promise<void> {
  store = await openSqliteStore(file, clock, {
    auditSealer: new AuditSealer(Buffer.alloc(32, 1)),
    reportError(error) {
      throw error
    },
  })
  commits = []
  await store.projections.start({
    kind: 'side effect',
    name: 'test',
    restart: async () => {},
    apply: (commit) => commits.push(commit),
  })
}

beforeEach(async () => {
  file = join(mkdtempSync(join(tmpdir(), 'commits-')), 'controller.db')
  await open()
})
afterEach(async () => {
  await store.close()
  rmSync(dirname(file), { recursive: true, force: true })
})

const add = (name: string) =>
  store.write(async ({ db, record }: TransactionScope) => {
    await db.insertInto('identity_types').values({ id: name, createdAt: 1, updatedAt: 1, tags: '{}', name }).execute()
    record({ operation: 'create', audit: 'none', resource: 'identity-types', id: name, at: 1 })
  }, ORIGIN)

describe('a commit', () => {
  it('has the position after that of the last one, also after a restart', async () => {
    await add('first')
    await add('second')
    await store.close()
    const { position: storedPosition } = readCommitPosition(file)
    const [first, second] = commits
    await open()
    await add('third')

    expect([first?.position, second?.position, storedPosition]).toEqual([1, 2, 2])
    expect(commits.map(({ position }) => position)).toEqual([3])
  })

  it('has a later time than the last one in the same millisecond, and after a restart with the clock set back', async () => {
    const start = clock.now()
    await add('first')
    await add('second')
    await store.close()
    const { at: storedTime } = readCommitPosition(file)
    const times = commits.map(({ at }) => at)
    clock.set(-3_600_000)
    await open()
    await add('third')
    clock.set(7_200_000)
    await add('fourth')

    expect([...times, storedTime, ...commits.map(({ at }) => at)]).toEqual([
      start,
      start + 1,
      start + 1,
      start + 2,
      clock.now(),
    ])
  })

  it('takes no position if none of its transactions succeeds', async () => {
    const failure = store.write(async () => {
      throw new Error('on purpose')
    }, ORIGIN)
    await expect(failure).rejects.toThrow('on purpose')
    await add('first')

    expect(commits.at(-1)?.position).toBe(1)
  })

  it('names its changes, and the tables that it wrote to', async () => {
    await add('first')

    expect(commits).toEqual([
      {
        position: 1,
        at: expect.any(Number),
        changes: [{ operation: 'create', audit: 'none', resource: 'identity-types', id: 'first', at: 1 }],
        tables: ['identity_types'],
      },
    ])
  })
})

describe('the position of a database that is not open', () => {
  it('is raised with its time, and never lowered', async () => {
    await add('first')
    await store.close()
    const { at } = readCommitPosition(file)

    continueAfter(file, { position: 1_000, at: at + 50 }, 5)
    continueAfter(file, { position: 3, at: 3 }, 10)

    expect(readCommitPosition(file)).toEqual({ position: 1_000, at: at + 52 })
    await open()
    await add('second')
    expect(commits.at(-1)?.position).toBe(1_001)
  })

  it('counts as 0 without a database', () => {
    expect(readCommitPosition(join(dirname(file), 'nothing.db'))).toEqual({ position: 0, at: 0 })
  })
})
