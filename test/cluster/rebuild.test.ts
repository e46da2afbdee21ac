// A controller whose rows are not those of the log keeps them aside, and takes those of the log.
import { existsSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { listRebuilds, requestRebuild } from '../../src/storage/cluster/rebuild.ts'
import { openForReading, openForWriting } from '../../src/storage/sqlite/connection.ts'
import { ClusterDirectories } from '../world/cluster-directories.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const world = useClusterPerTest(ClusterDirectories)

const listNames = async ({ controller }: TestController) =>
  (await controller.store.db.selectFrom('identities').select('name').execute()).map(({ name }) => name)

/** The database is that of a standby which lacks what came after a position. */
async function promoteStandby(position: number): Promise<void> {
  await world.cluster.sql('delete from controller.commits where position > $1', [position])
  await world.cluster.sql(
    `update controller.head set position = $1,
       chain = (select chain from controller.commits where position = $1)`,
    [position],
  )
}

async function readHead(): Promise<number> {
  const [head] = await world.cluster.sql('select position::int from controller.head')
  return head?.position as number
}

/** Waits for something that the product does by itself. */
async function waitFor<T>(find: () => T | undefined): Promise<T> {
  for (;;) {
    const value = find()
    if (value !== undefined) return value
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

/** A cluster whose database has lost what its first controller committed last. */
async function loseCommits() {
  const first = await world.cluster.begin()
  const second = await world.cluster.join(first, 'two')
  const one = await world.cluster.open(first)
  const { token } = await one.signIn({ name: 'known', isAdmin: true })
  const position = await readHead()
  await one.signIn({ name: 'lost' })
  await world.cluster.stop(one)
  await promoteStandby(position)
  expectFaults(/the log lacks 2 audit records/)
  return { first, second, token }
}

describe('a controller that has what the log lost', () => {
  it('starts with what the log has, and keeps its former rows', async () => {
    const { first } = await loseCommits()
    const one = await world.cluster.open(first)
    expect(await listNames(one)).toContain('known')
    expect(await listNames(one)).not.toContain('lost')
    const [rebuild] = listRebuilds(first)
    expect(rebuild).toMatchObject({ lostRecords: { count: 2 } })
    const former = openForReading(join(rebuild!.folder, 'controller.db'))
    expect(former.prepare("select count(*) from identities where name = 'lost'").pluck().get()).toBe(1)
    former.close()
  })

  it('is told by the doctor where its former rows are, until they are deleted', async () => {
    const { first } = await loseCommits()
    const one = await world.cluster.open(first)
    const diagnose = async () => {
      const { diagnoses } = await one.controller.doctor.diagnose(one.system)
      return diagnoses.filter(({ check }) => check === 'log of the cluster')
    }
    const [{ folder } = { folder: '' }] = listRebuilds(first)
    expect(await diagnose()).toMatchObject([
      { message: expect.stringContaining(folder), remedy: expect.stringContaining(`rm -r ${folder}`) },
    ])
    rmSync(folder, { recursive: true })
    expect(await diagnose()).toEqual([])
  })

  it('says in the audit what was lost', async () => {
    const { first, token } = await loseCommits()
    const one = await world.cluster.open(first)
    const query = `${MANAGEMENT}/controller/audit?filter=${encodeURIComponent('resource = "cluster" and method = \'rebuild\''.replaceAll("'", '"'))}`
    const { body } = await one.send({ method: 'GET', path: query, token })
    expect(body.data).toHaveLength(1)
    expect(body.data[0]).toMatchObject({
      id: expect.anything(),
      reason: expect.stringMatching(/lacks 2 audit records/),
    })
  })

  it('goes on by the log with the others, and commits', async () => {
    const { first, second } = await loseCommits()
    const two = await world.cluster.open(second, { settings: { advertise: ['two.example:1280'] } })
    await two.signIn({ name: 'made since' })
    const one = await world.cluster.open(first)
    expect(await listNames(one)).toContain('made since')
    await one.signIn({ name: 'made after' })
    await two.controller.store.catchUp()
    expect(await listNames(two)).toContain('made after')
    expect(listRebuilds(second)).toEqual([])
  })

  it('ends its process if it runs, so that its next start rebuilds it', async () => {
    const first = await world.cluster.begin()
    expectFaults(/the log of the cluster cannot be read/, /the log lacks 2 audit records/)
    const failures: Error[] = []
    const one = await world.cluster.open(first, { fail: (error) => failures.push(error) })
    await one.signIn({ name: 'known' })
    const position = await readHead()
    await one.signIn({ name: 'lost' })
    await promoteStandby(position)
    const failure = await waitFor(() => failures[0])
    expect(failure.message).toMatch(
      /does not lead on from this controller: the log ends at .*; the next start of this controller rebuilds its rows/,
    )
    await world.cluster.stop(one)
    expect(await listNames(await world.cluster.open(first))).not.toContain('lost')
  })
})

describe('a controller that the log has left behind', () => {
  it('is rebuilt although the log lacks the commits after its own', async () => {
    const first = await world.cluster.begin()
    const second = await world.cluster.join(first, 'two')
    const one = await world.cluster.open(first)
    for (const name of ['a', 'b', 'c']) await one.signIn({ name })
    await one.controller.cluster?.snapshots.make(one.system)
    await world.cluster.sql(
      'delete from controller.commits where position <= (select max(position) from controller.snapshots)',
    )
    const two = await world.cluster.open(second, { settings: { advertise: ['two.example:1280'] } })
    expect(await listNames(two)).toEqual(expect.arrayContaining(['a', 'b', 'c']))
    expect(listRebuilds(second)).toMatchObject([{ lostRecords: { count: 0 } }])
  })
})

describe('a controller whose rows were changed past it', () => {
  it('ends its process at the first commit that does not fit, and is rebuilt by its next start', async () => {
    expectFaults(/the log of the cluster cannot be read err=RowsDifferError/)
    const first = await world.cluster.begin()
    const second = await world.cluster.join(first, 'two')
    const one = await world.cluster.open(first)
    const { id } = await one.signIn({ name: 'before' })
    const failures: Error[] = []
    const settings = { advertise: ['two.example:1280'] }
    const two = await world.cluster.open(second, { settings, fail: (error) => failures.push(error) })
    await world.cluster.stop(two)
    const connection = openForWriting(getDataPaths(second).database)
    connection.pragma('foreign_keys = off')
    connection.prepare('delete from identities where id = ?').run(id)
    connection.close()
    const changed = await world.cluster.open(second, { settings, fail: (error) => failures.push(error) })
    const token = await one.admin()
    await one.send({ method: 'PATCH', path: `${MANAGEMENT}/identities/${id}`, token, body: { name: 'after' } })
    expect((await waitFor(() => failures[0])).message).toMatch(/the rows differ from those of the log/)
    await world.cluster.stop(changed)
    expect(await listNames(await world.cluster.open(second, { settings }))).toContain('after')
    expect(listRebuilds(second)[0]?.reason).toMatch(/identities has no row to update/)
  })
})

describe('a log that is damaged', () => {
  const damage =
    'update controller.commits set payload = set_byte(payload, 40, get_byte(payload, 40) # 1) where position = $1'

  it('keeps a controller from starting, which changes nothing of its own', async () => {
    const first = await world.cluster.begin()
    const second = await world.cluster.join(first, 'two')
    const one = await world.cluster.open(first)
    await one.signIn({ name: 'a' })
    const position = await readHead()
    await one.signIn({ name: 'b' })
    await world.cluster.sql(damage, [position])
    await expect(world.cluster.open(second, { settings: { advertise: ['two.example:1280'] } })).rejects.toThrow(
      `the log of the cluster is damaged: the commit ${position} of the log does not follow the one before it`,
    )
    expect(readdirSync(second).filter((name) => /rebuil/.test(name))).toEqual([])
    expect(existsSync(getDataPaths(second).database)).toBe(true)
  })

  it('keeps no connection to the database, whose process would not end, if it cannot be rebuilt', async () => {
    const first = await world.cluster.begin()
    const one = await world.cluster.open(first)
    await one.signIn()
    await world.cluster.stop(one)
    requestRebuild(first, 'the test wants it')
    await world.cluster.sql(
      'update controller.commits set chain = reverse(chain) where position = (select max(position) from controller.commits)',
    )
    await expect(world.cluster.open(first)).rejects.toThrow(/the log of the cluster is damaged/)
    const countConnections = () =>
      world.cluster.sql(
        "select count(*)::int from pg_stat_activity where datname = current_database() and application_name = 'edge-controller'",
      )
    await expect.poll(countConnections).toEqual([{ count: 0 }])
  })

  it('does not end a controller that runs, which a rebuild would not help', async () => {
    expectFaults(/the log of the cluster cannot be read/, /is damaged: this controller grants nothing/)
    const first = await world.cluster.begin()
    const failures: Error[] = []
    const lines: string[] = []
    const note = (_: unknown, text: string) => void lines.push(text)
    const log = { trace: note, debug: note, info: note, warn: note, error: note, fatal: note }
    const one = await world.cluster.open(first, { fail: (error) => failures.push(error), log: log as never })
    await one.signIn({ name: 'a' })
    await world.cluster.sql('update controller.head set position = position + 1')
    await waitFor(() => lines.find((line) => /is damaged: this controller grants nothing/.test(line)))
    expect(failures).toEqual([])
    const { diagnoses } = await one.controller.doctor.diagnose(one.system)
    expect(diagnoses).toContainEqual(expect.objectContaining({ check: 'log of the cluster', subject: 'log' }))
  })
})
