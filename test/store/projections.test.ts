// Projections that throw: each is rebuilt before the callers resume, and none makes another miss a commit, or the process stops.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Kysely } from 'kysely'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { identities } from '../../src/definitions/resources/identities.ts'
import { systemClock } from '../../src/foundation/clock.ts'
import { AuditSealer } from '../../src/storage/audit/audit-seal.ts'
import type { Database } from '../../src/storage/database.ts'
import { openSqliteStore } from '../../src/storage/sqlite/sqlite-store.ts'
import type { AuditOrigin, Store } from '../../src/storage/store.ts'
import type { Commit } from '../../src/storage/transactions/changes.ts'
import type { DerivedRows } from '../../src/storage/transactions/projection.ts'
import { testController } from '../world/controller.ts'

const ORIGIN: AuditOrigin = { actor: { kind: 'system', id: null, name: null }, requestId: 'test', address: null }

/** The names of identity types in memory; breaks when a test says so. */
class TypeNames implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name: string
  readonly failure: { apply: number; rebuild: number } = { apply: 0, rebuild: 0 }
  names: readonly string[] = []
  rebuilds = 0

  constructor(name: string) {
    this.name = name
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    if (this.failure.rebuild-- > 0) throw new Error(`${this.name} cannot be rebuilt`)
    this.rebuilds += 1
    this.names = (await db.selectFrom('identity_types').select('name').orderBy('n').execute()).map(({ name }) => name)
  }

  apply({ changes }: Commit): void {
    for (const { id } of changes) {
      if (this.failure.apply-- > 0) throw new Error(`${this.name} cannot follow`)
      this.names = [...this.names, id]
    }
  }
}

let file: string
let store: Store
let errors: unknown[]
let failures: Error[]
let first: TypeNames
let second: TypeNames
let third: TypeNames

beforeEach(async () => {
  file = join(mkdtempSync(join(tmpdir(), 'projections-')), 'controller.db')
  errors = []
  failures = []
  store = await openSqliteStore(file, systemClock, {
    auditSealer: new AuditSealer(Buffer.alloc(32, 1)),
    reportError: (error) => errors.push(error),
    fail: (error) => failures.push(error),
  })
  ;[first, second, third] = [new TypeNames('first'), new TypeNames('second'), new TypeNames('third')]
  await store.projections.start(first, second)
  await store.projections.start(third)
})
afterEach(async () => {
  await store.close()
  rmSync(dirname(file), { recursive: true, force: true })
})

const add = (name: string) =>
  store.write(async (tx) => {
    await tx.db
      .insertInto('identity_types')
      .values({ id: name, createdAt: 1, updatedAt: 1, tags: '{}', name })
      .execute()
    tx.record({ operation: 'create', audit: 'none', resource: 'identity-types', id: name, at: 1 })
  }, ORIGIN)

const added = ({ names }: TypeNames) => names.filter((name) => name.startsWith('added'))

describe('a projection', () => {
  it('follows commits in the order in which it was started, before those of the store', () => {
    expect(store.projections.names).toEqual(['first', 'second', 'third', 'result cache'])
  })

  it('that throws once is rebuilt from rows before the callers of the commit resume, and the others miss nothing', async () => {
    second.failure.apply = 1

    const names = ['added 1', 'added 2', 'added 3']
    const resumed = await Promise.all(names.map((name) => add(name).then(() => added(second))))

    for (const [at, name] of names.entries()) expect(resumed[at]).toContain(name)
    expect(added(second)).toEqual(names)
    for (const projection of [first, third]) {
      expect(added(projection)).toEqual(['added 1', 'added 2', 'added 3'])
      expect(projection.rebuilds).toBe(1)
    }
    expect(second.rebuilds).toBe(2)
    expect(errors.map(String)).toEqual(['Error: second cannot follow'])
    expect(failures).toEqual([])
  })

  it('that throws always is rebuilt at every commit', async () => {
    first.failure.apply = Number.POSITIVE_INFINITY

    for (const name of ['added 1', 'added 2']) {
      await add(name)
      expect(added(first)).toEqual(added(second))
    }

    expect(first.rebuilds).toBe(3)
    expect(errors).toHaveLength(2)
    expect(failures).toEqual([])
  })

  it('that throws beside another is rebuilt with it', async () => {
    for (const projection of [first, third]) projection.failure.apply = 1

    await add('added')

    expect([first, second, third].map(added)).toEqual([['added'], ['added'], ['added']])
  })

  it('lets no other request in while it is rebuilt', async () => {
    second.failure.apply = Number.POSITIVE_INFINITY
    const observations: { rows: Promise<unknown[]>; names: number }[] = []
    let isOver = false
    // A query runs before its call returns, so both are of one turn.
    const look = () => {
      const rows = store.db.selectFrom('identity_types').select('id').execute()
      observations.push({ rows, names: second.names.length })
      if (!isOver) setImmediate(look)
    }
    look()

    for (const name of ['added 1', 'added 2', 'added 3']) await add(name)
    isOver = true

    expect(observations.length).toBeGreaterThan(3)
    for (const { rows, names } of observations) expect(names).toBe((await rows).length)
  })

  it('that cannot be rebuilt stops the process: no caller is told about success, the others follow, and nothing is written', async () => {
    Object.assign(second.failure, { apply: 1, rebuild: 1 })

    const result = await add('added').catch((error) => error)

    expect(failures.map(String)).toEqual([
      'ProjectionError: the projection second could not be rebuilt from the database',
    ])
    expect(result).toMatchObject({ status: 503 })
    for (const projection of [first, third]) expect(added(projection)).toEqual(['added'])
    await expect(add('added later')).rejects.toMatchObject({ status: 503 })
  })

  it('that throws beside one that cannot be rebuilt is rebuilt all the same', async () => {
    Object.assign(first.failure, { apply: 1, rebuild: 1 })
    third.failure.apply = 1

    await expect(add('added')).rejects.toMatchObject({ status: 503 })

    expect(added(third)).toEqual(['added'])
    expect(failures).toHaveLength(1)
  })
})

describe('the projections of a controller', () => {
  it('begin with rights and sessions', async () => {
    const world = await testController()

    expect(world.controller.store.projections.names.slice(0, 2)).toEqual(['access', 'API sessions'])
    await world.close()
  })

  it('hold after being rebuilt what they held before, and sessions live on', async () => {
    const world = await testController()
    const { controller, clock } = world
    const { id, token } = await world.signIn({ isAdmin: true })
    const send = () => world.send({ method: 'GET', path: '/edge/client/v1/current-identity', token })
    // Most of the timeout passes, so that only memory knows of the use after it.
    clock.advance(controller.auth.apiSessions.lifetime.timeoutMs - 60_000)
    expect((await send()).status).toBe(200)
    clock.advance(controller.auth.apiSessions.lifetime.timeoutMs - 60_000)

    for (const projection of [controller.access, controller.auth.apiSessions, controller.auth.policies]) {
      await projection.rebuild(controller.store.db)
    }
    await controller.entities.patch(world.system, identities, id, { name: 'renamed' })

    const { status, body } = await send()
    expect([status, body.data.name]).toEqual([200, 'renamed'])
    await world.close()
  })
})
