// Snapshots that controllers begin with: how often one is made, what the log lacks then, and that none is made of wrong rows.
import { describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { compactLog } from '../../src/storage/cluster/compact-log.ts'
import { listRebuilds } from '../../src/storage/cluster/rebuild.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { openForWriting } from '../../src/storage/sqlite/connection.ts'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import type { TestController } from '../world/controller.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const AT_TWO = { settings: { advertise: ['two.example:1280'] } }

const world = useClusterPerTest(ClusterDirectories)

async function listPositions(table: 'commits' | 'snapshots'): Promise<number[]> {
  const rows = await world.cluster.sql(`select position::int from controller.${table} order by position`)
  return rows.map(({ position }) => position as number)
}

/** Makes a snapshot after a commit. */
async function makeSnapshot(node: TestController): Promise<number> {
  await node.signIn()
  await node.controller.cluster?.snapshots.make(node.system)
  return (await listPositions('snapshots')).at(-1) as number
}

/** Has all controllers say that they have applied everything. */
const followEverywhere = () =>
  world.cluster.sql('update controller.nodes set position = (select position from controller.head), seen_at = now()')

async function compact(): Promise<void> {
  const connection = new LogConnection({ url: world.cluster.url, isPlain: true })
  await connection.run(compactLog)
  connection.end()
}

const age = (days: number) =>
  world.cluster.sql(`update controller.snapshots set touched_at = now() - make_interval(days => $1)`, [days])

describe('a snapshot', () => {
  it('is made once the newest is a day old, and something has changed since', async () => {
    const one = await world.cluster.open(await world.cluster.begin())
    const { snapshots } = one.controller.cluster!
    await one.signIn()
    await snapshots.runIfDue(one.system)
    expect(await listPositions('snapshots')).toHaveLength(1)
    await age(1)
    await snapshots.runIfDue(one.system)
    expect(await listPositions('snapshots')).toHaveLength(2)
    await age(1)
    await world.cluster.sql('update controller.snapshots set position = (select position from controller.head)')
    await snapshots.runIfDue(one.system)
    expect(await listPositions('snapshots')).toHaveLength(2)
  })

  it('is made at once if there is none', async () => {
    const one = await world.cluster.open(await world.cluster.begin())
    await world.cluster.sql('delete from controller.snapshots')
    await one.controller.cluster?.snapshots.runIfDue(one.system)
    expect(await listPositions('snapshots')).toHaveLength(1)
  })

  it('lets a controller join that reads no commit before it', async () => {
    const first = await world.cluster.begin()
    const one = await world.cluster.open(first)
    const { id } = await one.signIn({ name: 'before' })
    const position = await makeSnapshot(one)
    await world.cluster.sql('delete from controller.commits where position <= $1', [position])
    const two = await world.cluster.open(await world.cluster.join(first, 'two'), AT_TWO)
    const row = await two.controller.store.db.selectFrom('identities').select('name').where('id', '=', id).execute()
    expect(row).toEqual([{ name: 'before' }])
  })
})

describe('the log', () => {
  it('has the commits since the second newest snapshot, and no older snapshots', async () => {
    const one = await world.cluster.open(await world.cluster.begin())
    const positions = [await makeSnapshot(one), await makeSnapshot(one)]
    await followEverywhere()
    await compact()
    expect(await listPositions('snapshots')).toEqual(positions)
    const commits = await listPositions('commits')
    expect(commits[0]).toBe(positions[0]! + 1)
    expect(commits.at(-1)).toBe(one.controller.store.position)
  })

  it('has what a controller lacks that was seen within a day, and not what one lacks that was not', async () => {
    const first = await world.cluster.begin()
    const second = await world.cluster.join(first, 'two')
    const one = await world.cluster.open(first)
    const lacking = one.controller.store.position - 1
    for (let nth = 0; nth < 2; nth += 1) await makeSnapshot(one)
    await followEverywhere()
    await world.cluster.sql("update controller.nodes set position = $1 where name = 'two'", [lacking])
    await compact()
    expect((await listPositions('commits'))[0]).toBe(lacking + 1)
    await world.cluster.sql("update controller.nodes set seen_at = now() - interval '25 hours' where name = 'two'")
    await compact()
    expect((await listPositions('commits'))[0]).toBeGreaterThan(lacking + 1)
    const two = await world.cluster.open(second, AT_TWO)
    expect(two.controller.store.position).toBeGreaterThanOrEqual(one.controller.store.position)
    expect(listRebuilds(second)).toHaveLength(1)
  })
})

describe('rows that differ unnoticed', () => {
  it('are found when a snapshot is made, and rebuilt by the next start', async () => {
    const first = await world.cluster.begin()
    const second = await world.cluster.join(first, 'two')
    const one = await world.cluster.open(first)
    const { id } = await one.signIn({ name: 'as all have it' })
    const opened = await world.cluster.open(second, AT_TWO)
    await world.cluster.stop(opened)
    const connection = openForWriting(getDataPaths(second).database)
    connection.prepare("update identities set name = 'changed' where id = ?").run(id)
    connection.close()
    const failures: Error[] = []
    const two = await world.cluster.open(second, { ...AT_TWO, fail: (error) => failures.push(error) })
    await makeSnapshot(one)
    await two.controller.store.catchUp()
    while (failures.length === 0) {
      await two.controller.cluster?.comparison.compare()
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    expect(String(failures[0]?.cause)).toMatch(/rows of identities differ from those of one at position/)
    await world.cluster.stop(two)
    const rebuilt = await world.cluster.open(second, AT_TWO)
    const names = rebuilt.controller.store.db.selectFrom('identities').select('name').where('id', '=', id)
    expect(await names.execute()).toEqual([{ name: 'as all have it' }])
  })
})
