// Commits as what follows them receives them: their positions, and what a process that did not make them can tell from them.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import type { Commit } from '../../src/storage/changes.ts'
import { raiseCommitPosition, readCommitPosition } from '../../src/storage/sqlite/commit-position.ts'
import { openSqliteStore } from '../../src/storage/sqlite/store.ts'
import type { AuditOrigin, Store, TransactionScope } from '../../src/storage/store.ts'

const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }

let file: string
let store: Store
let commits: Commit[]

async function open(): Promise<void> {
  store = await openSqliteStore(file, systemClock, {
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
    const storedPosition = readCommitPosition(file)
    const [first, second] = commits
    await open()
    await add('third')

    expect([first?.position, second?.position, storedPosition]).toEqual([1, 2, 2])
    expect(commits.map(({ position }) => position)).toEqual([3])
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
        changes: [{ operation: 'create', audit: 'none', resource: 'identity-types', id: 'first', at: 1 }],
        tables: ['identity_types'],
      },
    ])
  })
})

describe('the position of a database that is not open', () => {
  it('is raised, and never lowered', async () => {
    await add('first')
    await store.close()

    raiseCommitPosition(file, 1_000)
    raiseCommitPosition(file, 10)

    expect(readCommitPosition(file)).toBe(1_000)
    await open()
    await add('second')
    expect(commits.at(-1)?.position).toBe(1_001)
  })

  it('counts as 0 without a database', () => {
    expect(readCommitPosition(join(dirname(file), 'nothing.db'))).toBe(0)
  })
})
