// The clocks of several controllers: whatever the clock of one machine shows, all of them have the time of the database.
import { describe, expect, it } from 'vitest'
import { systemClock } from '../../src/foundation/clock.ts'
import { NetworkClock } from '../../src/storage/cluster/network-clock.ts'
import { bearer, OIDC_SETTINGS, OpenIdClient, readClaims } from '../openid-connect/client.ts'
import { TestCluster } from '../world/cluster.ts'
import { CLIENT, MANAGEMENT, TestClock, type TestController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useClusterPerTest } from '../world/use-cluster.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const MAX_DIFFERENCE_MS = 250

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
    return world.cluster.open(name, { clock, followsDatabaseTime: true, settings: OIDC_SETTINGS })
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

  it('by a minute each way accept the tokens of each other at once, and end them at one time', async () => {
    const [behind, ahead] = [await open('behind', -MINUTE_MS), await open('ahead', MINUTE_MS)]
    const people = await People.in(ahead)
    const person = await people.person()
    await behind.controller.cluster?.catchUp()
    const issuedAt: number[] = []
    for (const [issuer, other] of [
      [behind, ahead],
      [ahead, behind],
    ] as const) {
      const { access_token: token } = await new OpenIdClient(issuer).signIn(person)
      for (const node of [other, issuer]) {
        const path = `${CLIENT}/current-identity`
        expect((await node.send({ method: 'GET', path, headers: bearer(token) })).status).toBe(200)
      }
      const { exp, iat, nbf, z_asid: id } = readClaims(token)
      expect(nbf).toBe(iat)
      issuedAt.push(iat)
      // A controller accepts a token before it has read the commit that came with it.
      for (const { controller } of [behind, ahead]) await controller.cluster?.catchUp()
      const ends = [behind, ahead].map(({ controller }) => controller.auth.apiSessions.get(id)?.endsAt)
      expect(ends[0]).toBe(ends[1])
      expect(exp * 1_000).toBeLessThanOrEqual(ends[0] as number)
    }
    // Each had a minute of its own otherwise.
    expect(Math.abs(issuedAt[1]! - issuedAt[0]!)).toBeLessThan(MINUTE_MS / 1_000)
  })

  it('by a minute each way record the audit in order, and hold their leases', async () => {
    const nodes = [await open('behind', -MINUTE_MS), await open('ahead', MINUTE_MS)]
    const tokens = [await nodes[0]!.admin(), await nodes[1]!.admin()]
    for (let number = 0; number < 10; number += 1) {
      const [node, token] = [nodes[number % 2]!, tokens[number % 2]!]
      const body = { name: `service ${number}`, encryptionRequired: true }
      expect((await node.send({ method: 'POST', path: `${MANAGEMENT}/services`, token, body })).status).toBe(201)
    }
    for (const { controller } of nodes) {
      await controller.cluster?.catchUp()
      const records = await controller.store.db
        .selectFrom('audit_records')
        .select(['at', 'elapsed', 'resource'])
        .orderBy('n')
        .execute()
      const changes = records.filter(({ resource }) => resource === 'services')
      expect(changes).toHaveLength(10)
      // The time of each controller may differ from that of the database by a quarter of a second, and not by the minute of its machine.
      for (const [index, { at }] of changes.entries())
        expect(at - (changes[index - 1]?.at ?? at)).toBeGreaterThan(-2 * MAX_DIFFERENCE_MS)
      expect(records.map(({ elapsed }) => elapsed)).toEqual(
        records.map(({ elapsed }) => elapsed).toSorted((a, b) => a - b),
      )
      await expect(controller.cluster?.lease.waitForContact()).resolves.toBeUndefined()
      expect(controller.cluster?.lease.isHeld).toBe(true)
    }
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
