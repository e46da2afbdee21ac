// The log of changes of the data model: bounded, complete between its begin and its head, and written only by what changes the model.
import { sql } from 'kysely'
import { expect, it } from 'vitest'
import { configTypes } from '../../src/definitions/resources/config-types.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { ModelLog } from '../../src/network/router-model/model-log.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import type { Change } from '../../src/storage/transactions/changes.ts'
import { type Management, managementOf } from '../world/management.ts'
import { newName } from '../world/names.ts'
import { followCommits } from '../world/projections.ts'
import { recordingLog } from '../world/recording-log.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

const HOUR_MS = 60 * 60_000
const LIMITS = { sets: 20, ageMs: 24 * HOUR_MS, bytes: 100_000, setBytes: 10_000 }

/** A log with these limits in place of that of the controller, and what changes the model. */
async function openLog(
  limits = LIMITS,
): Promise<{ log: ModelLog; manage: Management; add: (data?: string) => Promise<void> }> {
  const { access, clock, store } = world.controller
  const parts = { access, clock, log: silentLog, db: store.db, findRemovedKeys: () => [], isNeeded: () => true }
  const log = new ModelLog({ ...parts, limits })
  await log.load(store.db)
  store.recordBy(log)
  await followCommits(store, (_changes, commit) => log.apply(commit))
  const manage = await managementOf(world)
  const configTypeId = await manage.make('config-types', { name: newName('type') })
  const add = async (text = '') => {
    await manage.make('configs', { name: newName('config'), configTypeId, data: { text } })
  }
  return { log, manage, add }
}

const readPosition = async () =>
  (await world.controller.store.db.selectFrom('commit_position').select('position').executeTakeFirstOrThrow()).position

const readRows = () =>
  world.controller.store.db
    .selectFrom('model_changes')
    .select(['position', 'previous', 'events'])
    .orderBy('position')
    .execute()

it('is not written before a router of release 2 has connected', async () => {
  const { store } = world.controller
  const manage = await managementOf(world)
  const positionBefore = await readPosition()

  await manage.make('identities', { name: newName('identity'), type: 'Device', isAdmin: false })

  expect(await readPosition()).toBeGreaterThan(positionBefore)
  expect(await store.db.selectFrom('model_changes').selectAll().execute()).toEqual([])
})

it('keeps a number of sets, which lead from each of them to the head', async () => {
  const { log, add } = await openLog()
  const beforeAll = log.head
  for (let nth = 0; nth < 60; nth += 1) await add()
  const rows = await readRows()
  expect(rows.length).toBeLessThanOrEqual(LIMITS.sets)
  expect(rows.length).toBeGreaterThan(LIMITS.sets / 2)
  for (const [at, { previous }] of rows.entries()) if (at > 0) expect(previous).toBe(rows[at - 1]!.position)
  expect(rows.at(-1)!.position).toBe(log.head)
  expect(await log.readAfter(beforeAll)).toEqual([])
  for (const fresh of [log, (await openAgain()).log]) {
    const { previous } = rows[0]!
    let index = previous
    while (index !== log.head) {
      const sets = await fresh.readAfter(index)
      expect(sets[0]!.previousIndex).toBe(index)
      index = sets.at(-1)!.index
    }
    expect(await fresh.readAfter(log.head)).toEqual([])
    expect(await fresh.readAfter(log.head + 1)).toEqual([])
    expect(await fresh.readAfter(previous - 1)).toEqual([])
  }
})

/** The log as a later process reads it. */
async function openAgain() {
  const { access, clock, store } = world.controller
  const log = new ModelLog({
    access,
    clock,
    log: silentLog,
    db: store.db,
    findRemovedKeys: () => [],
    isNeeded: () => true,
    limits: LIMITS,
  })
  await log.load(store.db)
  return { log }
}

it('keeps a number of bytes', async () => {
  const { log, add } = await openLog()
  for (let nth = 0; nth < 60; nth += 1) await add('x'.repeat(9_000))
  const rows = await readRows()
  expect(rows.reduce((sum, { events }) => sum + (events?.length ?? 0), 0)).toBeLessThan(LIMITS.bytes + 20_000)
  expect(rows.at(-1)!.position).toBe(log.head)
})

it('begins anew with a commit whose set would be too long', async () => {
  const { log, add } = await openLog()
  await add()
  const index = log.head
  await add('x'.repeat(20_000))
  expect(log.hasSets).toBe(false)
  expect(await log.readAfter(index)).toEqual([])
  const cut = log.head
  await add()
  expect((await log.readAfter(cut)).map(({ previousIndex }) => previousIndex)).toEqual([cut])
  const { log: later } = await openAgain()
  expect([later.head, later.timeline]).toEqual([log.head, log.timeline])
  expect(await later.readAfter(index)).toEqual([])
  expect(await later.readAfter(cut)).toHaveLength(1)
})

it('does not lead on from what is older than a day', async () => {
  const { log, add } = await openLog()
  await add()
  const index = log.head
  await add()
  expect(await log.readAfter(index)).toHaveLength(1)
  world.clock.advance(25 * HOUR_MS)
  expect(await log.readAfter(index)).toEqual([])
})

it('is not concerned by changes that routers are not told', () => {
  const at = 0
  const concerns = (change: Pick<Change, 'resource' | 'operation'>) =>
    new ModelLog({ limits: LIMITS, isNeeded: () => true } as never).concerns([
      { id: 'id', audit: 'none', at, ...change } as Change,
    ])
  for (const resource of [
    'sessions',
    'api-sessions',
    'edge-routers',
    'terminators',
    'enrollments',
    'machines',
  ] as const)
    expect(concerns({ resource, operation: 'create' })).toBe(false)
  expect(concerns({ resource: 'identities', operation: 'update' })).toBe(true)
})

it('does not grow by a change that leaves what routers know as it is', async () => {
  const { manage } = await openLog()
  const id = await manage.make('identities', { name: newName('identity'), type: 'Device', isAdmin: false })
  const before = await readRows()
  await manage.change('PATCH', `/identities/${id}`, { externalId: newName('external'), tags: { floor: '2' } })
  expect(await readRows()).toEqual(before)
})

it('begins anew with a change that cannot be described, which is made all the same', async () => {
  const { access, clock, store } = world.controller
  const lines = recordingLog()
  const findRemovedKeys = () => {
    throw new Error('a defect')
  }
  const log = new ModelLog({
    access,
    clock,
    log: lines,
    db: store.db,
    findRemovedKeys,
    isNeeded: () => true,
    limits: LIMITS,
  })
  await log.load(store.db)
  store.recordBy(log)
  await followCommits(store, (_changes, commit) => log.apply(commit))
  const manage = await managementOf(world)
  const name = newName('identity')
  await manage.make('identities', { name, type: 'Device', isAdmin: false })
  expect(log.hasSets).toBe(false)
  expect((await readRows()).at(-1)).toMatchObject({ position: log.head, events: null })
  expect(lines.lines.map(({ level }) => level)).toContain('error')
  expect(await manage.names(`/identities?filter=name="${encodeURIComponent(name)}"`)).toEqual([name])
})

it('does not grow by a commit that fails, whatever commit comes next', async () => {
  const { log, manage, add } = await openLog()
  await add()
  const index = log.head
  const { controller, system } = world
  const failure = system.write(async (tx) => {
    const record = newEntity(tx, configTypes, { name: newName('type'), schema: {} })
    await controller.entities.insert(tx, configTypes, record)
    // The mistake shows on the way to the disk, and not before.
    await sql`pragma defer_foreign_keys = on`.execute(tx.db)
    await tx.db.updateTable('configs').set({ configTypeId: 'none' }).execute()
  })
  await expect(failure).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  const roles = { identityRoles: [], edgeRouterRoles: [] }
  await manage.make('edge-router-policies', { name: newName('policy'), semantic: 'AnyOf', ...roles })
  const rows = await readRows()
  expect(log.head).toBe(rows.at(-1)!.position)
  expect((await log.readAfter(index)).map((set) => set.index)).toEqual(
    rows.filter(({ position }) => position > index).map(({ position }) => position),
  )
})
