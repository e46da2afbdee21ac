// The lease: what is granted follows the contact with the log, by both clocks.
import { afterEach, describe, expect, it, vi } from 'vitest'
import { Lease } from '../../src/storage/cluster/lease.ts'
import { LogConnection } from '../../src/storage/postgres/log-connection.ts'
import { TestCluster } from '../world/cluster.ts'
import { TestClock, type TestController } from '../world/controller.ts'
import { allowFaults } from '../world/faults.ts'
import { TcpProxy } from '../world/tcp-proxy.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

// OpenZiti's commands give up a request after this time, and say only that it took too long.
const MAX_PATIENCE_MS = 5_000

describe('a lease', () => {
  afterEach(() => {
    vi.useRealTimers()
  })

  const create = () => {
    const clock = new TestClock()
    const lease = new Lease({ clock, durationMs: 3_000, seekContact: () => undefined })
    return { clock, lease }
  }

  it('is not held before the first contact', () => {
    expect(create().lease.isHeld).toBe(false)
  })

  it('ends when its time has passed since the contact began', () => {
    const { clock, lease } = create()
    lease.renew(lease.now())
    clock.advance(2_999)
    expect(lease.isHeld).toBe(true)
    clock.advance(1)
    expect(lease.isHeld).toBe(false)
  })

  it('is not held by a contact that took longer than its time', () => {
    const { clock, lease } = create()
    const from = lease.now()
    clock.advance(3_000)
    lease.renew(from)
    expect(lease.isHeld).toBe(false)
  })

  it('ends while the machine is suspended, when only the wall clock goes on', () => {
    const { clock, lease } = create()
    lease.renew(lease.now())
    clock.set(10_000)
    expect(lease.isHeld).toBe(false)
  })

  it('ends in its time if the wall clock is set back', () => {
    const { clock, lease } = create()
    lease.renew(lease.now())
    clock.set(-3_600_000)
    clock.advance(3_000)
    expect(lease.isHeld).toBe(false)
  })

  it('lets those who wait go on with the next contact, and tells its listeners of each change', async () => {
    const { clock, lease } = create()
    const changes: boolean[] = []
    lease.onChange((isHeld) => changes.push(isHeld))
    lease.renew(lease.now())
    clock.advance(5_000)
    lease.notice()
    const waiting = lease.waitForContact()
    lease.renew(lease.now())
    await waiting
    expect(changes).toEqual([true, false, true])
  })

  it("refuses those who wait before OpenZiti's commands give up", async () => {
    vi.useFakeTimers()
    const { lease } = create()
    let refusal: unknown
    lease.waitForContact().catch((error: unknown) => {
      refusal = error
    })
    await vi.advanceTimersByTimeAsync(MAX_PATIENCE_MS - 500)
    expect(refusal).toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })
})

describe('a controller among several', () => {
  const world = useClusterPerTest(TestCluster)

  const leaseOf = ({ controller }: TestController) => {
    if (!controller.cluster) throw new Error('the controller is alone')
    return controller.cluster.lease
  }

  const end = async (node: TestController) => {
    world.cluster.nodes.splice(world.cluster.nodes.indexOf(node), 1)
    await node.close()
  }

  it('holds the lease once it has begun, and holds it again after its machine was suspended', async () => {
    const node = await world.cluster.open('first')
    await leaseOf(node).waitForContact()
    node.clock.set(60_000)
    expect(leaseOf(node).isHeld).toBe(false)
    await leaseOf(node).waitForContact()
    expect(leaseOf(node).isHeld).toBe(true)
  })

  it('has applied what others had committed when it is in contact', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    await first.signIn({ name: 'made at the first' })
    // A contact that has begun before does not count any more.
    second.clock.advance(10_000)
    await leaseOf(second).waitForContact()
    expect(second.controller.store.position).toBeGreaterThanOrEqual(first.controller.store.position)
  })

  it('loses the lease while packets to the database are lost in either direction, and has it again by itself', async () => {
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/)
    const { proxy, url } = await TcpProxy.before(world.cluster.url)
    const node = await world.cluster.open('first', { settings: { 'cluster.database': url } })
    await leaseOf(node).waitForContact()
    for (const direction of ['isHolding', 'isHoldingRequests', 'isHoldingResponses'] as const) {
      proxy[direction] = true
      node.clock.advance(3_000)
      await expect(leaseOf(node).waitForContact()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
      proxy[direction] = false
      await leaseOf(node).waitForContact()
    }
    await end(node)
    proxy.close()
  }, 60_000)

  it('does not hold the lease by a log that does not lead on from what it has applied', async () => {
    allowFaults(/the log of the cluster/, /no contact/)
    const node = await world.cluster.open('first')
    await leaseOf(node).waitForContact()
    const connection = new LogConnection({ url: world.cluster.url, isPlain: true })
    await connection.run((client) => client.query("update controller.head set chain = 'of another commit'"))
    connection.end()
    node.clock.advance(3_000)
    await expect(leaseOf(node).waitForContact()).rejects.toMatchObject({ code: 'STORAGE_UNAVAILABLE' })
  })

  it('is in contact again by itself after the database was restarted', async () => {
    allowFaults(/the log of the cluster cannot be read/, /a duty could not be proven/)
    const node = await world.cluster.open('first')
    await leaseOf(node).waitForContact()
    await world.server.restart()
    node.clock.advance(3_000)
    await leaseOf(node).waitForContact()
    expect(leaseOf(node).isHeld).toBe(true)
  })

  it('refuses to begin under the name of one that runs, and begins once that has ended', async () => {
    const settings = { 'cluster.lease': '6s' }
    const first = await world.cluster.open('first', { settings })
    await expect(world.cluster.open('first', { settings })).rejects.toThrow(
      'another controller runs under the name first',
    )
    await end(first)
    await world.cluster.open('first', { settings })
  })

  it('lists all controllers, how far each has followed, and which of them run', async () => {
    const [first, second] = [await world.cluster.open('first'), await world.cluster.open('second')]
    await end(second)
    first.clock.advance(10_000)
    await leaseOf(first).waitForContact()
    const { nodes } = first.controller.cluster as NonNullable<typeof first.controller.cluster>
    expect(nodes.list().map(({ name, isLive }) => [name, isLive])).toEqual([
      ['first', true],
      ['second', false],
    ])
    expect(nodes.liveCount).toBe(1)
  })
})
