// The clocks of several controllers: whatever the clock of one machine shows, all of them have the time of the database.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { NetworkClock } from '../../src/storage/cluster/network-clock.ts'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, TestClock, type TestController } from '../world/controller.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const HOUR_MS = 3_600_000

/** A clock that goes on, and can be set. */
class RunningClock extends TestClock {
  #setMs = 0

  override now(): number {
    return systemClock.now() + this.#setMs
  }

  override monotonic(): number {
    return systemClock.monotonic()
  }

  override set(milliseconds: number): void {
    this.#setMs += milliseconds
  }
}

describe('the time of a network', () => {
  const follow = (clock: NetworkClock, offsetMs: number, roundTripMs = 0) => clock.follow({ offsetMs, roundTripMs })

  it('is that of the machine before the first contact, then that of the database, by the monotonic clock', () => {
    const own = new TestClock(1_000_000)
    const clock = new NetworkClock(own)
    expect(clock.now()).toBe(1_000_000)
    follow(clock, 5_000)
    expect(clock.now()).toBe(1_005_000)
    own.set(HOUR_MS)
    own.advance(2_000)
    expect(clock.now()).toBe(1_007_000)
    follow(clock, 5_000 - HOUR_MS)
    expect(clock.now()).toBe(1_007_000)
  })

  it('follows a clock of the database that was set, but no difference that the way of a response explains', () => {
    const own = new TestClock(1_000_000)
    const clock = new NetworkClock(own)
    follow(clock, 0)
    follow(clock, 100)
    follow(clock, 900, 1_000)
    expect(clock.now()).toBe(1_000_000)
    follow(clock, 900, 10)
    expect(clock.now()).toBe(1_000_900)
  })

  it('goes on after a suspension of the machine with the next contact', () => {
    const own = new TestClock(1_000_000)
    const clock = new NetworkClock(own)
    follow(clock, 0)
    own.set(HOUR_MS)
    follow(clock, 0)
    expect(clock.now()).toBe(1_000_000 + HOUR_MS)
  })
})

describe('controllers whose clocks differ', () => {
  const world = useClusterPerTest(TestCluster)

  const open = async (name: string, setMs: number) => {
    const clock = new RunningClock()
    clock.set(setMs)
    return world.cluster.open(name, { clock, followsDatabaseTime: true })
  }
  const readSession = ({ send }: TestController, token: string) =>
    send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
  const readRow = ({ controller }: TestController, identityId: string) =>
    controller.store.db.selectFrom('api_sessions').selectAll().where('identityId', '=', identityId).executeTakeFirst()

  it('agree on when a session ends, which lives at all of them', async () => {
    const [behind, ahead] = [await open('behind', -HOUR_MS), await open('ahead', HOUR_MS)]
    const { id, token } = await behind.signIn()
    for (const node of [ahead, behind]) expect((await readSession(node, token)).status).toBe(200)
    await ahead.controller.auth.apiSessions.termination.deleteExpired(ahead.system)
    const row = await readRow(ahead, id)

    expect(Math.abs(row!.lastActivityAt - systemClock.now())).toBeLessThan(HOUR_MS / 2)
    expect((await readSession(behind, token)).status).toBe(200)
  })

  it('do not move the times of sessions, nor report a jump, when the clock of one is set', async () => {
    const [first, second] = [await open('first', 0), await open('second', 0)]
    const { id, token } = await first.signIn()
    await readSession(second, token)
    const before = await readRow(second, id)
    second.clock.set(2 * HOUR_MS)
    expect((await readSession(second, token)).status).toBe(200)
    await second.controller.cluster?.lease.waitForContact()
    for (const { controller, system } of [second, first]) {
      expect(controller.clock.takeJumps()).toEqual([])
      await controller.auth.apiSessions.flush(system)
    }
    const after = await readRow(second, id)

    expect(after!.authenticatedAt).toBe(before!.authenticatedAt)
    expect(after!.lastActivityAt - before!.lastActivityAt).toBeLessThan(HOUR_MS)
    expect((await readSession(first, token)).status).toBe(200)
  })
})
