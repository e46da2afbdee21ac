// The doctor at a controller among several: what endangers the log, its database, or that the controllers agree.
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import {
  type ClusterFacts,
  checkContact,
  checkDigests,
  checkLogSize,
  checkReleases,
  checkServer,
} from '../../src/maintenance/doctor/check-cluster.ts'
import type { NodeState } from '../../src/storage/cluster/node-states.ts'
import type { LogFacts, ServerFacts } from '../../src/storage/postgres/server-facts.ts'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 20_000, interval: 50 }
const DAY_MS = 24 * 3_600_000

const world = useClusterPerTest(TestCluster)

interface Finding {
  readonly check: string
  readonly subject: string
  readonly message: string
  readonly remedy: string
}

/** The diagnoses of one check. */
async function diagnose(at: TestController, check: string, token: string): Promise<string[]> {
  const { status, body } = await at.send({ method: 'GET', path: `${MANAGEMENT}/controller/doctor`, token })
  expect(status).toBe(200)
  const diagnoses = body.data.diagnoses as Finding[]
  return diagnoses.filter((each) => each.check === check).map(({ subject, message }) => `${subject}: ${message}`)
}

async function query(...statements: readonly string[]): Promise<void> {
  const client = new pg.Client({ connectionString: world.cluster.url })
  await client.connect()
  for (const statement of statements) await client.query(statement)
  await client.end()
}

describe('the doctor at one of several controllers', () => {
  it('finds what a server lacks that keeps no second copy, and nothing else', async () => {
    const one = await world.cluster.open('one')
    await one.controller.cluster?.lease.waitForContact()
    const token = await one.admin()
    const { body } = await one.send({ method: 'GET', path: `${MANAGEMENT}/controller/doctor`, token })
    // Not the clocks, because that of a test stands still.
    const names = ['log', 'log size', 'nodes', 'releases', 'equal settings', 'digests']
    const outcomes = Object.fromEntries(
      body.data.checks.map(({ name, outcome }: { name: string; outcome: string }) => [name, outcome]),
    )
    expect(outcomes).toMatchObject({
      ...Object.fromEntries(names.map((name) => [name, 'passed'])),
      'log database': 'failed',
    })
    expect(await diagnose(one, 'log database', token)).toEqual([
      expect.stringMatching(/^synchronous_standby_names: there is no standby/),
      expect.stringMatching(/^tcp_user_timeout, tcp_keepalives_idle: /),
    ])
  })

  it('names a controller that is not in contact any more, but not one that was stopped today', async () => {
    // On a busy machine a second can pass without contact.
    allowFaults(/cannot be read|could not be proven|no contact/)
    const settings = { 'cluster.lease': '1s' }
    const one = await world.cluster.open('one', { settings })
    const two = await world.cluster.open('two', { settings })
    const token = await one.admin()
    await world.cluster.stop(two)
    expect(await diagnose(one, 'nodes', token)).toEqual([])
    await query("update controller.nodes set instance = 'gone without farewell' where name = 'two'")
    await expect
      .poll(() => diagnose(one, 'nodes', token), SOON)
      .toEqual([
        expect.stringMatching(/^controller two: it has not been in contact for \d seconds, and lacks \d+ commits$/),
      ])
    await query("update controller.nodes set instance = '', seen_at = now() - interval '50 hours' where name = 'two'")
    await expect
      .poll(() => diagnose(one, 'nodes', token), SOON)
      .toEqual([expect.stringContaining('controller two: it has not been in contact for 2 days')])
  }, 90_000)

  it('names a controller whose clock is not that of the database', async () => {
    const one = await world.cluster.open('one')
    const token = await one.admin()
    one.clock.set(Date.now() - one.clock.now() + 60_000)
    await expect
      .poll(() => diagnose(one, 'clocks', token), SOON)
      .toEqual([expect.stringMatching(/^controller one: its clock is \d+\.\d seconds ahead of that of PostgreSQL$/)])
  })

  it('names settings that this controller has otherwise, and controllers that have others than it', async () => {
    const one = await world.cluster.open('one')
    const token = await one.admin()
    await one.system.write(async ({ db }) => {
      await db.insertInto('shared_settings').values({ name: 'session.timeout', value: '"1h"' }).execute()
    })
    expect(await diagnose(one, 'equal settings', token)).toEqual([
      'session.timeout: it is 30m at this controller, and 1h for the network',
    ])
    await one.system.write(async ({ db }) => {
      await db.deleteFrom('shared_settings').execute()
    })
    await world.cluster.open('two', { settings: { 'session.timeout': '1h' } })
    await expect
      .poll(() => diagnose(one, 'equal settings', token), SOON)
      .toEqual(['controller two: it decides rights or expiry by other settings than this controller'])
  })

  it('names the positions at which controllers had other rows than others', async () => {
    const one = await world.cluster.open('one')
    const token = await one.admin()
    await query(
      "insert into controller.digests (position, node, digest) values (7, 'one', 'a'), (7, 'two', 'b'), (7, 'three', 'a')",
      "insert into controller.digests (position, node, digest) values (8, 'one', 'c'), (8, 'two', 'c')",
    )
    const [difference, ...others] = await diagnose(one, 'digests', token)
    expect(others).toEqual([])
    expect(difference).toMatch(/^commit 7: after it the rows of /)
    expect(difference).toContain('one and three')
  })

  it('says that the log is out of reach, and nothing of what it would tell', async () => {
    allowFaults(/cannot be read|could not be proven|no contact/)
    const one = await world.cluster.open('one')
    const { contexts, doctor } = one.controller
    await world.server.stopServing()
    try {
      const { checks, diagnoses } = await doctor.diagnose(contexts.create({ kind: 'system' }))
      expect(diagnoses.filter(({ check }) => check === 'log')).toMatchObject([
        { subject: 'controller one', message: expect.stringContaining('grants nothing') },
      ])
      const unknown = checks.filter(({ outcome }) => outcome === 'unknown').map(({ name }) => name)
      expect(unknown).toEqual(expect.arrayContaining(['log database', 'log size', 'digests']))
    } finally {
      await world.server.restart()
    }
  })
})

const SAFE: ServerFacts = {
  release: 18,
  synchronousCommit: 'on',
  synchronousStandbys: 'standby',
  standbys: 1,
  hasFsync: true,
  userTimeoutMs: 3_000,
  keepaliveIdleSeconds: 60,
}
const LOG: LogFacts = { commits: 0, bytes: 0, commitsSinceSnapshot: 0, snapshotAgeMs: 0, differences: [] }

const facts = (others: Partial<ClusterFacts>): ClusterFacts => ({
  own: 'one',
  nodes: [],
  isInContact: true,
  isPooledByStatement: false,
  server: SAFE,
  log: LOG,
  ...others,
})

describe('the checks of the database of the log', () => {
  const subjects = (server: Partial<ServerFacts>) =>
    checkServer(facts({ server: { ...SAFE, ...server } }))?.map(({ subject }) => subject)

  it.each<[string, Partial<ServerFacts>, readonly string[]]>([
    ['a server with a synchronous standby', {}, []],
    ['one whose standby is not synchronous', { synchronousStandbys: '' }, ['synchronous_standby_names']],
    ['one that does not wait for its standby', { synchronousCommit: 'local' }, ['synchronous_commit']],
    ['one that does not wait for its disk', { synchronousCommit: 'off' }, ['synchronous_commit']],
    ['one that does not write through', { hasFsync: false }, ['fsync']],
    [
      'one that keeps dead connections',
      { userTimeoutMs: 0, keepaliveIdleSeconds: 7_200 },
      ['tcp_user_timeout, tcp_keepalives_idle'],
    ],
    ['one that probes connections', { userTimeoutMs: 0, keepaliveIdleSeconds: 60 }, []],
  ])('judge %s', (_name, server, expected) => {
    expect(subjects(server)).toEqual(expected)
  })

  it('name a pooler that gives each statement another session', () => {
    expect(checkContact(facts({ isPooledByStatement: true }))).toMatchObject([
      { subject: 'the pooler before PostgreSQL', remedy: expect.stringContaining('pool_mode') },
    ])
  })

  it('name a log that grows without a snapshot, once there is something to keep', () => {
    const old = { ...LOG, snapshotAgeMs: 3 * DAY_MS, commits: 20_000, bytes: 10_000_000 }
    expect(checkLogSize(facts({ log: { ...old, commitsSinceSnapshot: 20_000 } }))).toMatchObject([
      { message: expect.stringContaining('no snapshot for 3 days, so that 20000 commits (10 MiB) are kept') },
    ])
    expect(checkLogSize(facts({ log: { ...old, commitsSinceSnapshot: 100 } }))).toEqual([])
  })

  it('name the controllers of a network that is being upgraded', () => {
    const node = (name: string, version: string, migration: string): NodeState => ({
      ...{ name, version, address: '', position: 0, behind: 0, startedAt: 0, silentMs: 0, duties: [], state: 'live' },
      details: { migration },
    })
    const upgraded = node('two', '2.0.0', '0002')
    expect(checkReleases(facts({ nodes: [node('one', '1.0.0', '0001'), upgraded] }))).toMatchObject([
      { subject: 'controller one', message: 'it is of release 1.0.0, and not all are' },
      { subject: 'controller two' },
    ])
    expect(checkReleases(facts({ nodes: [upgraded] }))).toEqual([])
    expect(checkDigests(facts({}))).toEqual([])
  })
})
