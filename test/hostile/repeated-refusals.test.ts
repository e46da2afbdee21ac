// Thousands of refused sign-ins: they fill neither the audit nor memory, and do not hide those of other sources.
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { EventAggregator } from '../../src/foundation/event-aggregator.ts'
import type { Log } from '../../src/foundation/log.ts'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { PASSWORD, People } from '../world/people.ts'

const MINUTE = 60_000
const BY_CERTIFICATE = `${CLIENT}/authenticate?method=cert`
const HERE = '192.0.2.1'
const ELSEWHERE = '198.51.100.7'

let logged: string[]
const noteLine = (_fields: unknown, message: string) => void logged.push(message)
const log: Log = { debug() {}, info: noteLine, warn: noteLine, error: noteLine }

let world: TestController
let people: People

beforeEach(async () => {
  logged = []
  world = await testController({ log })
  people = await People.in(world)
})
afterEach(() => world.close())

/** The refusals in the audit, oldest first. */
async function refusals() {
  return world.controller.store.db
    .selectFrom('audit_records')
    .select(['address', 'method', 'reason', 'count', 'entityId', 'actorKind', 'actorId'])
    .where('operation', '=', 'refuse')
    .orderBy('n')
    .execute()
}

const counts = async () => (await refusals()).map(({ address, count }) => `${address}: ${count}`)

const flush = () => world.controller.auth.failedSignIns.flush(world.controller.contexts)

async function presentNothing(times: number, from: string) {
  for (let at = 0; at < times; at++) await world.send({ method: 'POST', path: BY_CERTIFICATE, from })
}

describe('repeated refusals', () => {
  it('of one source for one reason are one record a minute, with a count', async () => {
    await presentNothing(100, HERE)
    const atOnce = await counts()
    world.clock.advance(MINUTE)
    await flush()
    await presentNothing(50, HERE)
    world.clock.advance(MINUTE)
    await flush()
    world.clock.advance(MINUTE)
    await flush()

    expect(atOnce).toEqual([`${HERE}: 1`])
    expect(await counts()).toEqual([`${HERE}: 1`, `${HERE}: 99`, `${HERE}: 50`])
  })

  it('are recorded one by one where they are rare', async () => {
    for (let minute = 0; minute < 3; minute++) {
      await presentNothing(1, HERE)
      world.clock.advance(MINUTE)
      await flush()
    }

    expect(await counts()).toEqual([`${HERE}: 1`, `${HERE}: 1`, `${HERE}: 1`])
  })

  it('do not hide the refusals of another source, or for another reason', async () => {
    const person = await people.person()
    await presentNothing(200, HERE)
    await presentNothing(1, ELSEWHERE)
    await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)
    await people.signIn({ username: 'unknown user', password: PASSWORD }, {}, HERE)

    expect(await refusals()).toMatchObject([
      { address: HERE, reason: 'NO_CERTIFICATE' },
      { address: ELSEWHERE, reason: 'NO_CERTIFICATE' },
      { address: HERE, reason: 'WRONG_PASSWORD', entityId: person.authenticatorId },
      { address: HERE, reason: 'UNKNOWN_CREDENTIAL', entityId: '' },
    ])
  })

  it('of one /64 of IPv6 are those of one source', async () => {
    for (let host = 1; host <= 20; host++) await presentNothing(1, `2001:db8:1:2::${host}`)
    await presentNothing(1, '2001:db8:1:3::1')

    expect(await counts()).toEqual(['2001:db8:1:2::1: 1', '2001:db8:1:3::1: 1'])
  })

  it('by guesses at several accounts name none of them where they are counted together', async () => {
    const [one, other] = [await people.person(), await people.person()]
    for (const person of [one, one, one, other]) await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)
    for (let guess = 0; guess < 3; guess++) await people.signIn({ ...one, password: 'wrong horse' }, {}, ELSEWHERE)
    world.clock.advance(MINUTE)
    await flush()

    expect(await refusals()).toMatchObject([
      { address: HERE, count: 1, entityId: one.authenticatorId },
      { address: ELSEWHERE, count: 1, entityId: one.authenticatorId },
      { address: HERE, count: 3, entityId: '' },
      { address: ELSEWHERE, count: 2, entityId: one.authenticatorId },
    ])
  })

  it('within a session belong to its identity, not to its address', async () => {
    const person = await people.person()
    const token = await people.sessionOf(person)
    const path = `${CLIENT}/current-identity/authenticators/${person.authenticatorId}`
    await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)
    for (let guess = 0; guess < 3; guess++) {
      const body = { currentPassword: 'wrong horse', password: 'another horse' }
      await world.send({ method: 'PATCH', path, body, token, from: HERE })
    }
    world.clock.advance(MINUTE)
    await flush()

    expect(await refusals()).toMatchObject([
      { actorKind: 'anonymous', count: 1 },
      { actorKind: 'identity', actorId: person.id, count: 1 },
      { actorKind: 'identity', actorId: person.id, count: 2 },
    ])
  })

  it('still count towards a lockout, each of them', async () => {
    const person = await people.person({ authPolicyId: await people.policy({ updb: { maxAttempts: 5 } }) })
    for (let guess = 0; guess < 5; guess++) await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)

    expect((await people.manage('GET', `/identities/${person.id}`)).disabled).toBe(true)
    expect(await counts()).toEqual([`${HERE}: 1`])
  })

  it('fill the log no more than the audit, whether or not they concern a credential', async () => {
    const person = await people.person()
    await presentNothing(100, HERE)
    await people.manage('POST', `/identities/${person.id}/disable`, { durationMinutes: 0 })
    for (let at = 0; at < 20; at++) await people.signIn(person, {}, HERE)
    const atOnce = logged.length
    world.clock.advance(MINUTE)
    await flush()

    expect(atOnce).toBe(2)
    expect(logged).toEqual(Array.from({ length: 4 }, () => 'a sign-in was refused'))
  })

  it('from more sources than are tracked are counted by reason, and bound what is written', async () => {
    const total = 700
    for (let at = 0; at < total; at++) await presentNothing(2, `10.0.${at >> 8}.${at & 255}`)
    world.clock.advance(MINUTE)
    await flush()

    const rows = await refusals()
    expect(rows.length).toBeLessThanOrEqual(2 * 500 + 2)
    expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(2 * total)
    expect(rows.filter(({ address }) => address === null)).toMatchObject([{ reason: 'NO_CERTIFICATE', count: 399 }])
  })

  it('are recorded when the controller closes', async () => {
    await presentNothing(10, HERE)
    await world.stop()

    const { directory, clock } = world
    world = await testController({ directory, clock, log })

    expect(await counts()).toEqual([`${HERE}: 1`, `${HERE}: 9`])
  })

  it('leave no trace of what was typed for a username', async () => {
    await people.signIn({ username: 'my-password-by-mistake', password: 'whatever' }, {}, HERE)
    await people.signIn({ username: 'x'.repeat(60_000), password: 'whatever' }, {}, HERE)

    const rows = await world.controller.store.db.selectFrom('audit_records').selectAll().execute()
    expect(JSON.stringify(rows)).not.toMatch(/by-mistake|xxxxx/)
  })
})

describe('refused sign-ins by one certificate', () => {
  it('are limited, whatever the reason, so that a device that was disabled costs no more than it must', async () => {
    const at = await world.listen()
    const [device, other] = [await people.device(), await people.device()]
    await people.manage('POST', `/identities/${device.id}/disable`, { durationMinutes: 0 })
    const statuses: number[] = []
    for (let times = 0; times < 15; times++) statuses.push((await people.signInBy(at, device)).status)

    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 401), ...Array.from({ length: 5 }, () => 429)])
    const refusal = await people.signInBy(at, device)
    expect(refusal.body.error.code).toBe('SERVER_TOO_MANY_REQUESTS')
    expect(Number(refusal.headers['retry-after'])).toBeGreaterThan(0)
    expect((await people.signInBy(at, other)).status).toBe(200)
  })

  it('do not keep the device out for long once it may sign in again', async () => {
    const at = await world.listen()
    const device = await people.device()
    await people.manage('POST', `/identities/${device.id}/disable`, { durationMinutes: 0 })
    for (let times = 0; times < 11; times++) await people.signInBy(at, device)
    await people.manage('POST', `/identities/${device.id}/enable`)
    expect((await people.signInBy(at, device)).status).toBe(429)
    world.clock.advance(10_000)

    for (let times = 0; times < 20; times++) expect((await people.signInBy(at, device)).status).toBe(200)
  })

  it('are not limited for passwords, because anyone can cause those', async () => {
    const person = await people.person()
    for (let guess = 0; guess < 30; guess++) await people.signIn({ ...person, password: 'wrong horse' }, {}, HERE)

    expect((await people.signIn(person, {}, ELSEWHERE)).status).toBe(200)
  })
})

describe('aggregated events', () => {
  const aggregator = () => new EventAggregator<string>({ windowMs: 1_000, maxKeys: 2 })

  it('are removed once their window is over', async () => {
    const events = aggregator()
    for (const key of ['a', 'b', 'c']) events.admit(key, key, 0)
    await events.flush(1_000, async () => {})

    expect(events.size).toBe(0)
  })

  it('stay counted where they could not be written', async () => {
    const events = aggregator()
    for (let at = 0; at < 5; at++) events.admit('a', `event ${at}`, 0)
    const full = () => Promise.reject(new Error('disk full'))
    const written: unknown[] = []

    await expect(events.flush(1_000, full)).rejects.toThrow('disk full')
    events.admit('a', 'event 5', 1_000)
    await events.flush(1_000, async (event, count) => void written.push([event, count]))

    expect(written).toEqual([['event 5', 5]])
  })

  it('begin anew after the clock was set back', () => {
    const events = aggregator()
    events.admit('a', 'early', 10_000)

    expect(events.admit('a', 'late', 0)).toBe('first')
  })
})
