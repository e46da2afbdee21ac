// The system clock is set, by mistake or on purpose: nothing ends and nothing is deleted because of it.

import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { apiSessions } from '../../src/definitions/resources/api-sessions.ts'
import { silentLog } from '../../src/foundation/log.ts'
import { getDataPaths } from '../../src/settings/data-directory.ts'
import { pruneAudit } from '../../src/storage/audit/audit-records.ts'
import { reportClockJumps } from '../../src/storage/clock-jumps.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'
import { type Management, managementOf } from '../world/management.ts'
import { Sqlite } from '../world/sqlite.ts'

const MINUTE = 60_000
const DAY = 24 * 60 * MINUTE
const YEAR = 365 * DAY
const RETENTION = 90 * DAY

let world: TestController
let admin: Management
let logged: string[]

const log = {
  ...silentLog,
  error: (_values: object, message?: string) => logged.push(message ?? ''),
} as typeof silentLog

beforeEach(async () => {
  logged = []
  world = await testController({ log })
  admin = await managementOf(world)
})
afterEach(() => world.close())

const isAlive = async (token: string, at = world) =>
  (await at.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })).status === 200
const service = (name: string) => admin.make('services', { name, encryptionRequired: true })
const audited = async (at = world) => {
  const rows = await at.controller.store.db.selectFrom('audit_records').selectAll().orderBy('n').execute()
  return rows.map(({ operation, entityName }) => (entityName ? `${operation} ${entityName}` : operation))
}
const jumps = async (at = world) => {
  await reportClockJumps(at.controller.log, at.system, at.controller.clock)
  const rows = await at.controller.store.db
    .selectFrom('audit_records')
    .select('after')
    .where('operation', '=', 'jump')
    .execute()
  return rows.map(({ after }) => JSON.parse(after ?? ''))
}
/** Does the work that the controller does in the background all the time. Returns how many sessions went. */
const sweep = async () => {
  await world.controller.auth.apiSessions.flush(world.system)
  return world.controller.auth.apiSessions.termination.deleteExpired(world.system)
}
const iso = (time: number) => new Date(time).toISOString()
/** A session that has passed a second factor now. */
async function signInWithMfa(): Promise<{ token: string; apiSessionId: string }> {
  const { id, token } = await world.signIn()
  const [session] = world.controller.auth.apiSessions.listOfIdentity(id)
  await world.system.write(async (tx) => {
    const mfa = { mfaPassedAt: world.clock.now() }
    await world.controller.entities.update(tx, apiSessions, await get(tx, apiSessions, session!.id), mfa)
  })
  return { token, apiSessionId: session!.id }
}

/** The same directory, opened again by a process that knows nothing of the one before. */
async function restart(): Promise<void> {
  await world.stop()
  world = await testController({ directory: world.directory, clock: world.clock, log })
}

it('a clock that is set shifts the second factor of a session, although memory is rebuilt before that is written', async () => {
  const { token, apiSessionId } = await signInWithMfa()
  const passedAt = world.clock.now()
  world.clock.set(DAY)
  await world.controller.store.projections.rebuild('API sessions')
  const { auth } = world.controller
  expect(auth.apiSessions.get(apiSessionId)?.mfaPassedAt).toBe(passedAt + DAY)
  await auth.apiSessions.flush(world.system)
  await restart()
  expect(world.controller.auth.apiSessions.get(apiSessionId)?.mfaPassedAt).toBe(passedAt + DAY)
  expect(await isAlive(token)).toBe(true)
})

describe.each([
  ['forward by a year', YEAR],
  ['back by a year', -YEAR],
  ['forward by eleven minutes', 11 * MINUTE],
  ['back by eleven minutes', -11 * MINUTE],
])('a clock that is set %s while the controller runs', (_what, step) => {
  it('ends no session, used before or not, written or not', async () => {
    const [used, unused] = [await world.signIn(), await world.signIn()]
    world.clock.advance(20 * MINUTE)
    await isAlive(used.token)
    world.clock.set(step)

    const endedCount = await world.controller.auth.apiSessions.termination.deleteExpired(world.system)
    const alive = [await isAlive(used.token), await isAlive(unused.token)]
    await world.controller.auth.apiSessions.flush(world.system)
    await restart()

    expect([endedCount, ...alive]).toEqual([0, true, true])
    expect([await isAlive(used.token), await isAlive(unused.token)]).toEqual([true, true])
  })

  it('leaves sessions as old as they are: they still end by the time that passes', async () => {
    const idle = await world.signIn()
    world.clock.advance(20 * MINUTE)
    const used = await world.signIn()
    world.clock.set(step)
    await sweep()
    world.clock.advance(10 * MINUTE)

    const endedCount = await sweep()

    // The administrator of the test was idle for as long.
    expect(endedCount).toBe(2)
    expect([await isAlive(idle.token), await isAlive(used.token)]).toEqual([false, true])
    world.clock.advance(31 * MINUTE)
    expect([await sweep(), await isAlive(used.token)]).toEqual([1, false])
  })

  it('cuts off no audit record, and lets the audit be cut when its time has come', async () => {
    await service('old')
    world.clock.set(step)
    const before = await audited()

    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBe(0)
    expect(await audited()).toEqual(before)
    world.clock.advance(RETENTION + MINUTE)
    const fresh = await managementOf(world)
    await fresh.make('services', { name: 'new', encryptionRequired: true })
    await pruneAudit(world.controller.store, world.system, RETENTION)

    expect(await audited()).not.toContain('create old')
    expect(await audited()).toContain('create new')
    expect((await fresh.get('/controller/audit/verify')).findings).toEqual([])
  })

  it('is reported once, in the log and in the audit', async () => {
    expectFaults(/the system clock jumped/)
    const from = world.clock.now()
    world.clock.set(step)

    const first = await jumps()
    const second = await jumps()

    expect(first).toEqual([{ from: iso(from), to: iso(from + step) }])
    expect(second).toEqual(first)
    expect(logged).toEqual([expect.stringMatching(/system clock jumped/)])
    const [record] = await admin.get('/controller/audit?limit=1')
    expect(record).toMatchObject({ operation: 'jump', resource: 'clock', actorKind: 'system', after: first[0] })
  })

  it('and back again leaves everything as it was', async () => {
    const { token } = await world.signIn()
    world.clock.set(step)
    await service('meanwhile')
    await sweep()
    world.clock.set(-step)

    expect([await sweep(), await isAlive(token)]).toEqual([0, true])
    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBe(0)
    await restart()
    expect(await isAlive(token)).toBe(true)
  })

  it('shows sessions with an end that has not come', async () => {
    const { token } = await world.signIn()
    world.clock.set(step)
    await sweep()

    const { body } = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })

    const expiresAt = Date.parse(body.data.expiresAt)
    expect(expiresAt).toBeGreaterThan(world.clock.now())
    expect(expiresAt).toBeLessThanOrEqual(world.clock.now() + 30 * MINUTE)
  })
})

describe('no jump is reported', () => {
  it('for a year that passes', async () => {
    await service('old')
    const { token } = await world.signIn()
    world.clock.advance(YEAR)
    const fresh = await managementOf(world)
    await fresh.make('services', { name: 'new', encryptionRequired: true })

    expect(await jumps()).toEqual([])
    expect([(await sweep()) > 0, await isAlive(token)]).toEqual([true, false])
    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBeGreaterThan(0)
    expect(await audited()).not.toContain('create old')
  })

  it('for a year in which the controller was stopped', async () => {
    await service('old')
    const { token } = await world.signIn()
    world.clock.advance(YEAR)
    await restart()
    admin = await managementOf(world)
    await service('new')

    expect(await jumps()).toEqual([])
    expect([(await sweep()) > 0, await isAlive(token)]).toEqual([true, false])
    await pruneAudit(world.controller.store, world.system, RETENTION)
    expect(await audited()).not.toContain('create old')
  })

  it('for a step of some minutes, but one for many of them', async () => {
    expectFaults(/the system clock jumped/)
    const reported: number[] = []
    for (let minute = 0; minute < 11; minute++) {
      world.clock.set(MINUTE)
      reported.push((await jumps()).length)
    }

    expect(reported).toEqual([...Array.from({ length: 10 }, () => 0), 1])
  })
})

describe('a start before the last stored time', () => {
  it('ends no session, cuts off no record, and is reported', async () => {
    expectFaults(/the system clock jumped/)
    await service('kept')
    const { token } = await world.signIn()
    const last = world.clock.now()
    world.clock.set(-YEAR)
    await world.stop()
    world = await testController({ directory: world.directory, clock: world.clock, log })

    const before = await audited()
    const removedCounts = [await sweep(), await pruneAudit(world.controller.store, world.system, RETENTION)]

    expect(removedCounts).toEqual([0, 0])
    expect(await audited()).toEqual(before)
    expect(await isAlive(token)).toBe(true)
    expect(await jumps()).toEqual([{ from: iso(last), to: iso(last - YEAR) }])
  })

  it('still lets sessions end and records be cut off in their time', async () => {
    await service('old')
    const { token } = await world.signIn()
    world.clock.set(-YEAR)
    await restart()
    await sweep()
    world.clock.advance(31 * MINUTE)

    expect([(await sweep()) > 0, await isAlive(token)]).toEqual([true, false])
    world.clock.advance(RETENTION)
    admin = await managementOf(world)
    await service('new')
    await pruneAudit(world.controller.store, world.system, RETENTION)
    expect(await audited()).not.toContain('create old')
  })

  it('keeps the server certificate, which would have expired once the clock is right again', async () => {
    const served = () => world.controller.authority.serverChainPem
    const before = served()
    world.clock.set(-YEAR)
    await restart()

    expect(served()).toBe(before)
  })

  it('by some seconds is not reported', async () => {
    await service('kept')
    world.clock.set(-30_000)
    await restart()

    expect(await jumps()).toEqual([])
  })
})

describe('the audit is cut by age', () => {
  it.each([
    ['from the future', YEAR],
    ['from the past', -10 * YEAR],
  ])('with a record %s in it: the record neither keeps what is old nor takes what is new', async (_what, step) => {
    await service('old')
    world.clock.set(step)
    await service('at a wrong time')
    world.clock.set(-step)
    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBe(0)
    world.clock.advance(RETENTION - DAY)
    admin = await managementOf(world)
    await service('new')
    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBe(0)
    world.clock.advance(2 * DAY)

    await pruneAudit(world.controller.store, world.system, RETENTION)

    const left = await audited()
    expect(left.filter((one) => /old|wrong/.test(one))).toEqual([])
    expect(left).toContain('create new')
  })

  it('and not by what another process wrote into the database', async () => {
    await service('one')
    await service('two')
    await world.stop()
    const file = new Sqlite(getDataPaths(world.directory).database)
    file.exec('update audit_records set elapsed = 9000000000000, at = 1')
    file.close()
    world = await testController({ directory: world.directory, clock: world.clock, log })

    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBe(0)
  })

  it('with a note of what was wrong with what it cuts off', async () => {
    expectFaults(/another process wrote to the database/)
    await service('one')
    await service('two')
    const file = new Sqlite(getDataPaths(world.directory).database)
    file.exec("update audit_records set actorName = 'mallory' where n = 2")
    file.close()
    world.clock.advance(RETENTION + DAY)
    admin = await managementOf(world)
    await service('new')

    expect(await pruneAudit(world.controller.store, world.system, RETENTION)).toBeGreaterThan(1)

    const { findings } = await admin.get('/controller/audit/verify')
    expect(findings).toEqual([expect.stringMatching(/were pruned: the audit record 2 was changed/)])
  })

  it('with proof that nothing was taken out between two cuts', async () => {
    expectFaults(/another process wrote to the database/)
    await service('one')
    world.clock.advance(60 * DAY)
    admin = await managementOf(world)
    await service('two')
    world.clock.advance(31 * DAY)
    await pruneAudit(world.controller.store, world.system, RETENTION)
    const file = new Sqlite(getDataPaths(world.directory).database)
    file.exec('delete from audit_records where n = (select min(n) from audit_records)')
    file.close()
    world.clock.advance(60 * DAY)
    admin = await managementOf(world)
    await pruneAudit(world.controller.store, world.system, RETENTION)

    const { findings } = await admin.get('/controller/audit/verify')

    expect(findings).toEqual([expect.stringMatching(/removed before those that record \d+ states as pruned/)])
  })
})
