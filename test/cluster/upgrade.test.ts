// Upgrades of a network while it is served: a release with a newer schema takes over once no controller of an older one runs.
import type { Kysely } from 'kysely'
import { sql } from 'kysely'
import { describe, expect, it } from 'vitest'
import { MIGRATIONS, type Migration } from '../../src/storage/migrate.ts'
import { listDifferentTables } from '../../src/storage/sqlite/row-digest.ts'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { digestFile } from '../world/shadow.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 20_000, interval: 20 }

/** Adds a column that it fills, as the next release may. */
const notes: Migration = {
  name: '0002-notes',
  async up(db: Kysely<unknown>) {
    await db.schema
      .alterTable('services')
      .addColumn('note', 'text', (column) => column.notNull().defaultTo(''))
      .execute()
    await sql`update services set note = 'was ' || name`.execute(db)
  },
}
const newer = { migrations: [...MIGRATIONS, notes], waitsForOlder: true }

const world = useClusterPerTest(TestCluster)

async function createService(at: TestController, token: string, name: string): Promise<void> {
  const body = { name, encryptionRequired: true }
  expect((await at.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body })).status).toBe(201)
}

async function readNotes({ system }: TestController): Promise<string[]> {
  const { rows } = await sql<{ note: string }>`select note from services order by name`.execute(system.db)
  return rows.map(({ note }) => note)
}

async function listStates(at: TestController, token: string): Promise<Record<string, string>> {
  const { body } = await at.send({ method: 'GET', path: `${MANAGEMENT}/controller/nodes`, token })
  return Object.fromEntries(body.data.map(({ name, state }: { name: string; state: string }) => [name, state]))
}

/** Opens a controller of the newer release, which is ready once no other runs. */
function openNewer(name: string, directory: string) {
  let opened: TestController | undefined
  const opening = world.cluster.open(name, { ...newer, directory }).then((node) => {
    opened = node
    return node
  })
  return { opening, isOpen: () => opened !== undefined }
}

describe('a release with a newer schema', () => {
  it('waits while a controller of an older release serves, then migrates the rows of all, each at the same place', async () => {
    const one = await world.cluster.open('one')
    const two = await world.cluster.open('two')
    const three = await world.cluster.open('three')
    const token = await one.admin()
    await createService(one, token, 'before')
    await world.cluster.stop(two)
    await world.cluster.stop(three)
    const [second, third] = [openNewer('two', two.directory), openNewer('three', three.directory)]
    await expect.poll(() => listStates(one, token), SOON).toEqual({ one: 'live', two: 'waiting', three: 'waiting' })
    await createService(one, token, 'meanwhile')
    expect([second.isOpen(), third.isOpen()]).toEqual([false, false])
    expect(one.controller.cluster?.nodes.liveCount).toBe(1)
    await world.cluster.stop(one)
    const [upgradedTwo, upgradedThree] = [await second.opening, await third.opening]
    expect(await readNotes(upgradedTwo)).toEqual(['was before', 'was meanwhile'])
    await createService(upgradedTwo, token, 'new')
    const upgradedOne = await world.cluster.open('one', { ...newer, directory: one.directory })
    await upgradedThree.controller.store.catchUp()
    expect(await readNotes(upgradedThree)).toEqual(['was before', 'was meanwhile', ''])
    for (const node of world.cluster.nodes) await node.controller.store.catchUp()
    const digests = digestFile(upgradedOne.directory)
    for (const { directory } of world.cluster.nodes)
      expect(listDifferentTables(digests, digestFile(directory))).toEqual([])
  }, 120_000)

  it('loses nothing that was acknowledged while it takes over one controller after the other', async () => {
    allowFaults(/returned 503/)
    const names = ['one', 'two', 'three']
    const serving = new Map<string, TestController>()
    for (const name of names) serving.set(name, await world.cluster.open(name))
    const token = await [...serving.values()][0]!.admin()
    const acknowledged: string[] = []
    let isOver = false
    const callers = names.map(async (name) => {
      for (let at = 0; !isOver; at++) {
        const body = { name: `${name} ${at}`, encryptionRequired: true }
        const node = serving.get(name)
        // A controller that stops ends its connections; a request without a response is owed nothing.
        const response = await node
          ?.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body })
          .catch(() => undefined)
        if (response?.status === 201) acknowledged.push(body.name)
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
    })
    const stop = async (name: string) => {
      const node = serving.get(name) as TestController
      await expect.poll(() => acknowledged.some((one) => one.startsWith(name)), SOON).toBe(true)
      serving.delete(name)
      await world.cluster.stop(node)
      return node.directory
    }
    const open = (name: string, directory: string) =>
      world.cluster.open(name, { ...newer, directory }).then((node) => serving.set(name, node))
    const opening = [open('two', await stop('two')), open('three', await stop('three')), open('one', await stop('one'))]
    await Promise.all(opening)
    const before = acknowledged.length
    await expect.poll(() => acknowledged.length, SOON).toBeGreaterThan(before + 10)
    isOver = true
    await Promise.all(callers)

    for (const node of serving.values()) {
      await node.controller.store.catchUp()
      const rows = await node.system.db.selectFrom('services').select('name').execute()
      const serviceNames = rows.map(({ name }) => name)
      expect(new Set(serviceNames).size).toBe(serviceNames.length)
      expect(acknowledged.filter((name) => !serviceNames.includes(name))).toEqual([])
    }
  }, 120_000)

  it('takes over from a controller that is silent for longer than the lease, which then stops serving', async () => {
    allowFaults(/cannot be read|no contact|could not be proven|failed|was migrated|returned 503/)
    const settings = { 'cluster.lease': '1s' }
    const failures: Error[] = []
    const { proxy, url } = await TcpProxy.before(world.cluster.url)
    const old = await world.cluster.open('old', {
      settings: { ...settings, 'cluster.database': url },
      fail: (error) => failures.push(error),
    })
    const other = await world.cluster.open('other', { settings })
    const token = await old.admin()
    await createService(old, token, 'before')
    await world.cluster.stop(other)
    proxy.isHolding = true
    const migrated = await world.cluster.open('other', { ...newer, settings, directory: other.directory })
    expect(await readNotes(migrated)).toEqual(['was before'])
    proxy.isHolding = false
    await expect
      .poll(() => failures.map(({ message }) => message), SOON)
      .toContainEqual(
        expect.stringMatching(
          /^the network was migrated by release \S+ \(0002-notes\): install release \S+ or later here$/,
        ),
      )
    const refused = await old.send({
      method: 'POST',
      path: `${MANAGEMENT}/services`,
      token,
      body: { name: 'late', encryptionRequired: true },
    })
    expect(refused.status).toBe(503)
    // Its process would have ended; in this one it has something left to write.
    await world.cluster.stop(old).catch(() => undefined)
    proxy.close()
  }, 120_000)

  it('is not followed by a program that does not know it, which says what it needs', async () => {
    const one = await world.cluster.open('one')
    await world.cluster.stop(one)
    await world.cluster.stop(await world.cluster.open('one', { ...newer, directory: one.directory }))
    await expect(world.cluster.open('two')).rejects.toThrow(
      /^the log was migrated by release \S+ \(0002-notes\), and this is the older release \S+: install release \S+ or later$/,
    )
    // It has another directory, with the rows of the newer schema.
    await expect(world.cluster.open('one', { directory: one.directory })).rejects.toThrow(
      'the log was migrated by release',
    )
  }, 120_000)

  it('refuses commands on a data directory while controllers of an older release run', async () => {
    await world.cluster.open('one')
    const two = await world.cluster.open('two')
    await world.cluster.stop(two)
    await expect(
      world.cluster.open('two', { migrations: newer.migrations, directory: two.directory }),
    ).rejects.toMatchObject({ code: 'OLDER_CONTROLLERS', message: expect.stringContaining('run: one') })
  }, 120_000)
})
