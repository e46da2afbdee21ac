// The controllers of a network as operators see them: listed, drained before a stop, and removed.
import { describe, expect, it } from 'vitest'
import { TestCluster } from '../world/cluster.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const SOON = { timeout: 20_000, interval: 20 }
const NODES = `${MANAGEMENT}/controller/nodes`

const world = useClusterPerTest(TestCluster)

interface NodeRecord {
  readonly name: string
  readonly state: string
  readonly version: string
  readonly position: number
  readonly behind: number
  readonly duties: readonly string[]
}

async function listNodes(at: TestController, token: string): Promise<NodeRecord[]> {
  const { status, body } = await at.send({ method: 'GET', path: NODES, token })
  expect(status).toBe(200)
  return body.data
}

const listStates = async (at: TestController, token: string) =>
  Object.fromEntries((await listNodes(at, token)).map(({ name, state }) => [name, state]))

const act = (at: TestController, token: string, method: string, path: string) =>
  at.send({ method, path: `${NODES}/${path}`, token })

const holdsTimers = async (node: TestController) =>
  expect.poll(() => node.controller.cluster?.hasTimers, SOON).toBe(true)

describe('the list of controllers', () => {
  it('says of each that it runs, how far it has followed, and what it does for all', async () => {
    const one = await world.cluster.open('one')
    await holdsTimers(one)
    const two = await world.cluster.open('two')
    const token = await one.admin()
    await two.controller.store.catchUp()
    await expect
      .poll(() => listNodes(two, token), SOON)
      .toMatchObject([
        { name: 'one', state: 'live', duties: ['timers'], behind: 0, position: two.controller.store.position },
        { name: 'two', state: 'live', duties: [], behind: 0, position: two.controller.store.position },
      ])
  })

  it('tells one that has ended from one that does not say so', async () => {
    // On a busy machine a second can pass without contact.
    allowFaults(/cannot be read|could not be proven|no contact/)
    const one = await world.cluster.open('one', { settings: { 'cluster.lease': '1s' } })
    const two = await world.cluster.open('two', { settings: { 'cluster.lease': '1s' } })
    const three = await world.cluster.open('three', { settings: { 'cluster.lease': '1s' } })
    const token = await one.admin()
    await world.cluster.stop(two)
    // It goes without its farewell.
    const { nodes } = three.controller.cluster as NonNullable<typeof three.controller.cluster>
    nodes.release = async () => undefined
    await world.cluster.stop(three)
    await expect.poll(() => listStates(one, token), SOON).toEqual({ one: 'live', two: 'stopped', three: 'silent' })
  })

  it('is shown as it was last while the log is out of reach', async () => {
    allowFaults(/cannot be read|could not be proven|no contact/)
    const one = await world.cluster.open('one', { settings: { 'cluster.lease': '1s' } })
    const token = await one.admin()
    await world.server.stopServing()
    try {
      await expect.poll(() => listStates(one, token), SOON).toEqual({ one: 'silent' })
    } finally {
      await world.server.restart()
    }
  })

  it('does not say of one that it was in contact for long if it said so before its report was held up', async () => {
    const one = await world.cluster.open('one')
    const two = await world.cluster.open('two')
    const { nodes } = one.controller.cluster as NonNullable<typeof one.controller.cluster>
    const { cluster } = two.controller
    nodes.describeBy(() => ({ heldMs: 600_000 }))
    const report = nodes.report.bind(nodes)
    // The controller's own reports would take the place of those of the test.
    nodes.report = async () => {
      await nodes.refresh()
      return nodes.head
    }
    const readHeldMs = async () => {
      await cluster?.nodes.refresh()
      return cluster?.nodes.list().find(({ name }) => name === 'one')?.details.heldMs
    }
    const now = () => one.clock.now()
    await report(one.controller.store.position, now)
    expect(await readHeldMs()).toBe(600_000)
    const HELD_UP_MS = 10_000
    await report(one.controller.store.position, () => now() - HELD_UP_MS)
    expect(await readHeldMs()).toBe(0)
  })

  it('has one controller while it is alone, which cannot be drained', async () => {
    const alone = await testController()
    try {
      const token = await alone.admin()
      expect(await listNodes(alone, token)).toMatchObject([{ name: '127.0.0.1', state: 'live', behind: 0, duties: [] }])
      for (const [method, path] of [
        ['POST', '127.0.0.1/drain'],
        ['POST', '127.0.0.1/resume'],
        ['DELETE', '127.0.0.1'],
      ] as const) {
        const { status, body } = await act(alone, token, method, path)
        expect([status, body.error.code]).toEqual([409, 'CONTROLLER_ALONE'])
      }
    } finally {
      await alone.close()
    }
  })
})

describe('a controller that drains', () => {
  it('gives its duties up to another, is not ready, and ends connections, until nothing is left to do', async () => {
    const one = await world.cluster.open('one')
    await holdsTimers(one)
    const two = await world.cluster.open('two')
    const token = await two.admin()
    expect((await act(two, token, 'POST', 'one/drain')).status).toBe(200)
    await holdsTimers(two)
    await expect.poll(() => listStates(two, token), SOON).toEqual({ one: 'drained', two: 'live' })
    allowFaults(/returned 503/)
    one.clock.advance(1_000)
    const { status, body, headers } = await one.send({ method: 'GET', path: '/health' })
    expect([status, headers.connection]).toEqual([503, 'close'])
    const failing = body.data.checks.filter(({ healthy }: { healthy: boolean }) => !healthy)
    expect(failing).toMatchObject([{ id: 'nodes', err: expect.stringContaining('draining') }])
    expect((await two.send({ method: 'GET', path: '/health' })).status).toBe(200)
    const audit = await two.send({
      method: 'GET',
      path: `${MANAGEMENT}/controller/audit?filter=resource="cluster"`,
      token,
    })
    expect(audit.body.data).toMatchObject([{ operation: 'update', entityName: 'one' }])
  })

  it('serves requests meanwhile, and works again when it is told to', async () => {
    const one = await world.cluster.open('one')
    const token = await one.admin()
    await act(one, token, 'POST', 'one/drain')
    await expect.poll(() => listStates(one, token), SOON).toEqual({ one: 'drained' })
    await one.signIn({ name: 'made while it drains' })
    expect((await act(one, token, 'POST', 'one/resume')).status).toBe(200)
    await holdsTimers(one)
    expect(await listStates(one, token)).toEqual({ one: 'live' })
  })

  it('does not drain any more once it is started again', async () => {
    const one = await world.cluster.open('one')
    const two = await world.cluster.open('two')
    const token = await two.admin()
    await act(two, token, 'POST', 'one/drain')
    await expect.poll(() => listStates(two, token), SOON).toMatchObject({ one: 'drained' })
    await world.cluster.stop(one)
    await world.cluster.open('one', { directory: one.directory })
    expect(await listStates(two, token)).toEqual({ one: 'live', two: 'live' })
  })

  it('has to be one of the network', async () => {
    const one = await world.cluster.open('one')
    const { status, body } = await act(one, await one.admin(), 'POST', 'other/drain')
    expect([status, body.error.cause.message]).toEqual([404, 'there is no controller of the name other'])
  })
})

describe('a controller that is gone for ever', () => {
  it('is removed, with the record by which clients know it, but not while it runs', async () => {
    const one = await world.cluster.open('one')
    const two = await world.cluster.open('two')
    const token = await one.admin()
    await two.controller.membership.announce(two.system, {})
    const refused = await act(one, token, 'DELETE', 'two')
    expect([refused.status, refused.body.error.code]).toEqual([409, 'CONTROLLER_RUNS'])
    await world.cluster.stop(two)
    expect((await act(one, token, 'DELETE', 'two')).status).toBe(200)
    expect(await listStates(one, token)).toEqual({ one: 'live' })
    expect(await one.system.db.selectFrom('controllers').select('node').execute()).toEqual([])
    expect((await act(one, token, 'DELETE', 'two')).status).toBe(404)
  })
})

describe('a controller that begins', () => {
  it('reports again if the database does not respond to its first report', async () => {
    const { proxy, url } = await TcpProxy.before(world.cluster.url)
    let lossCount = 0
    const lose = () => {
      lossCount += 1
      return false
    }
    proxy.noticed = { text: 'insert into controller.nodes', run: lose }
    try {
      const one = await world.cluster.open('one', { settings: { 'cluster.database': url } })
      expect(await listStates(one, await one.admin())).toEqual({ one: 'live' })
      expect(lossCount).toBe(1)
      await world.cluster.stop(one)
    } finally {
      proxy.close()
    }
  })
})

describe('the metrics of a controller among several', () => {
  it('tell its contact, its turns, what it has followed, and its duties', async () => {
    const one = await world.cluster.open('one')
    await holdsTimers(one)
    const two = await world.cluster.open('two')
    const token = await one.admin()
    await two.controller.store.catchUp()
    const read = async (at: TestController) => {
      const { body } = await at.send({ method: 'GET', path: `${MANAGEMENT}/controller/metrics`, token })
      const samples = body.data.samples as { name: string; labels: Record<string, string>; value: number }[]
      return Object.fromEntries(
        samples.map(({ name, labels, value }) => [[name, ...Object.values(labels)].join(' '), value]),
      )
    }
    const [first, second] = [await read(one), await read(two)]
    expect(first).toMatchObject({ cluster_lease_held: 1, 'cluster_duty_held timers': 1, cluster_draining: 0 })
    expect(second).toMatchObject({ 'cluster_duty_held timers': 0, cluster_refused_total: 0 })
    expect(second.cluster_log_position).toBe(two.controller.store.position)
    expect(first.cluster_turns_total).toBeGreaterThan(0)
    expect(first.cluster_turn_wait_seconds_total).toBeGreaterThan(0)
    expect(second.cluster_followed_commits_total).toBeGreaterThan(0)
    expect(second.cluster_catch_ups_total).toBeGreaterThan(0)
    await expect.poll(async () => (await read(two)).cluster_nodes_live, SOON).toBe(2)
  })
})
