// The stream of events: what is audited arrives in order, also after a break, and only as long as the watcher may see it.
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, describe, expect, it } from 'vitest'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { type EventMessage, objectForm } from '../../src/maintenance/events/event-message.ts'
import { MANAGEMENT } from '../world/controller.ts'
import { type TestWatcher, watchEvents } from '../world/event-stream.ts'
import { managementOf } from '../world/management.ts'
import { openTls, rawTarget } from '../world/raw-requests.ts'
import { useControllerPerTest } from '../world/use-controller.ts'

const world = useControllerPerTest()
const watchers: TestWatcher[] = []
afterEach(async () => {
  for (const watcher of watchers.splice(0)) await watcher.close()
})

let address: { url: string; rootPem: string } | undefined
afterEach(() => {
  address = undefined
})

/** A watcher that follows what happens now. */
async function watch(token: string, query = '', headers: Record<string, string> = {}): Promise<TestWatcher> {
  address ??= await world.listen()
  const watcher = await watchEvents(address, token, query, headers)
  watchers.push(watcher)
  if (watcher.status === 200) await expect.poll(() => watcher.cursor).not.toBe('')
  return watcher
}

const namesOf = ({ events }: TestWatcher) => events.map(({ data }) => data.audit?.entityName)
const typesOf = ({ events }: TestWatcher) => events.map(({ type }) => type)

const service = (name: string) => ({ name, encryptionRequired: false })

describe('a watcher', () => {
  it('receives changes in their order, each with its audit record', async () => {
    const manage = await managementOf(world)
    const watcher = await watch(await world.admin())
    const id = await manage.make('services', service('web'))
    await manage.change('PATCH', `/services/${id}`, { name: 'shop' })
    await manage.change('DELETE', `/services/${id}`)

    await expect.poll(() => typesOf(watcher)).toEqual(['record-created', 'record-updated', 'record-deleted'])
    expect(watcher.contentType).toBe('text/event-stream')
    const [, updated] = watcher.events
    expect(updated!.data).toMatchObject({
      type: 'record-updated',
      audit: { resource: 'services', entityId: id, before: { name: 'web' }, after: { name: 'shop' } },
    })
    expect((await manage.get(`/controller/audit/${updated!.data.audit.id}`)).hash).toBe(updated!.data.audit.hash)
  })

  it('receives refused sign-ins', async () => {
    const watcher = await watch(await world.admin())
    const body = { username: 'unknown-person', password: 'a wrong password' }
    await world.send({ method: 'POST', path: `${MANAGEMENT}/authenticate?method=password`, body })

    await expect.poll(() => typesOf(watcher)).toEqual(['sign-in-refused'])
    expect(JSON.stringify(watcher.events)).not.toContain('unknown-person')
  })

  it('receives only the types that it selects', async () => {
    const manage = await managementOf(world)
    const watcher = await watch(await world.admin(), '?type=record-deleted&type=sign-in')
    const id = await manage.make('services', service('web'))
    await manage.change('DELETE', `/services/${id}`)

    await expect.poll(() => typesOf(watcher)).toEqual(['record-deleted'])
  })

  it('receives only events of the resource or the record that it selects', async () => {
    const manage = await managementOf(world)
    const one = await manage.make('services', service('one'))
    const token = await world.admin()
    const ofServices = await watch(token, '?subject=services')
    const ofOne = await watch(token, `?subject=${one}`)
    await manage.make('identities', { name: 'laptop', type: 'Device', isAdmin: false })
    await manage.make('services', service('two'))
    await manage.change('DELETE', `/services/${one}`)

    await expect.poll(() => namesOf(ofServices)).toEqual(['two', 'one'])
    await expect.poll(() => namesOf(ofOne)).toEqual(['one'])
  })

  it('receives no secret', async () => {
    const manage = await managementOf(world)
    const watcher = await watch(await world.admin())
    const password = 'a secret that is long enough 7'
    const id = await manage.make('identities', {
      name: 'person',
      type: 'Device',
      isAdmin: false,
      enrollment: { updb: 'person' },
    })
    await manage
      .make('authenticators', { method: 'updb', identityId: id, username: 'person', password })
      .catch(() => {})
    const { enrollment } = await manage.get(`/identities/${id}`)
    await manage.make('services', service('last'))

    await expect.poll(() => namesOf(watcher)).toContain('last')
    const text = JSON.stringify(watcher.events)
    expect(text).toContain('person')
    for (const secret of [password, enrollment?.updb?.token, enrollment?.updb?.jwt].filter(Boolean))
      expect(text).not.toContain(secret)
  })

  it('gets its cursor with each heartbeat, though it selects nothing that happens', async () => {
    const manage = await managementOf(world)
    const watcher = await watch(await world.admin(), '?type=router-online')
    const before = watcher.cursor
    await manage.make('services', service('web'))
    await expect
      .poll(() => {
        world.controller.events.beat()
        return watcher.cursor
      })
      .not.toBe(before)
    expect(watcher.events).toEqual([])
  })
})

describe('a watcher that returns with its cursor', () => {
  it('receives everything audited since, also after a restart and more than one page', async () => {
    const token = await world.admin()
    const manage = await managementOf(world)
    const first = await watch(token)
    await manage.make('services', service('seen'))
    await expect.poll(() => namesOf(first)).toEqual(['seen'])
    await world.stop()
    await world.reopen()
    address = undefined
    const names = Array.from({ length: 120 }, (_, at) => `missed ${at}`)
    const later = await managementOf(world)
    for (const name of names) await later.make('services', service(name))

    const { token: laterToken } = await world.signIn({ isAdmin: true, name: 'the same person' })
    const second = await watch(laterToken, `?since=${first.cursor}&subject=services`)
    await expect.poll(() => namesOf(second).length).toBe(121)
    expect(namesOf(second)).toEqual([undefined, ...names])
    expect(second.events[0]).toMatchObject({ type: 'gap', data: { missed: ['network'] } })
    await later.make('services', service('now'))
    await expect.poll(() => namesOf(second).at(-1)).toBe('now')
  })

  it('lets others have their turn while the audit is read, though it selects nothing of it', async () => {
    await managementOf(world)
    const { store, events } = world.controller
    const newest = await store.db.selectFrom('audit_records').selectAll().orderBy('n', 'desc').executeTakeFirstOrThrow()
    await world.system.write(async (tx) => {
      for (let n = 1; n <= 1_000; n++)
        await tx.db
          .insertInto('audit_records')
          .values({ ...newest, n: newest.n + n })
          .execute()
    })
    const right = { ownerId: 'reader', findRights: () => Rights.administrator, noteActivity() {} }
    let turns = 0
    let counting = setImmediate(function count() {
      turns++
      counting = setImmediate(count)
    })

    const stream = await events.watch(right, { types: ['router-online'] }, '0-0-00000000-0', objectForm)
    const end = `${newest.n + 1_000}-`
    for await (const { cursor } of stream as AsyncIterable<EventMessage>) if (cursor.startsWith(end)) break
    clearImmediate(counting)

    expect(turns).toBeGreaterThan(15)
  })

  it('is told about no gap if it returns soon', async () => {
    const manage = await managementOf(world)
    const token = await world.admin()
    const first = await watch(token)
    await first.close()
    await manage.make('services', service('missed'))
    const second = await watch(token, '', { 'last-event-id': first.cursor })

    await expect.poll(() => namesOf(second)).toEqual(['missed'])
  })

  it('is told about no gap of the network if it selects no such events', async () => {
    const token = await world.admin()
    const { cursor } = await watch(token)
    const [n, mark] = cursor.split('-')
    const watcher = await watch(token, `?since=${n}-${mark}-ZZZZZZZZ-5&type=record-created`)
    await (await managementOf(world)).make('services', service('web'))

    await expect.poll(() => namesOf(watcher)).toContain('web')
    expect(typesOf(watcher)).not.toContain('gap')
  })

  it('is told that the audit is another one, as after the restore of a backup', async () => {
    const token = await world.admin()
    const { cursor } = await watch(token)
    const [n, , run, sequence] = cursor.split('-')
    const otherHistory = await watch(token, `?since=${n}-000000000000-${run}-${sequence}`)
    const notYet = await watch(token, `?since=${Number(n) + 9}-000000000000-${run}-${sequence}`)

    for (const watcher of [otherHistory, notYet])
      await expect.poll(() => watcher.events.map(({ data }) => data.missed)).toEqual([['audit']])
  })

  it('is told that audit records were pruned, and receives those that are left', async () => {
    const manage = await managementOf(world)
    const token = await world.admin()
    const { cursor } = await watch(token)
    for (const name of ['one', 'two', 'three']) await manage.make('services', service(name))
    const records = await manage.get('/controller/audit?limit=2')
    const { pruneAudit } = await import('../../src/storage/audit/audit-records.ts')
    world.clock.advance(60_000)
    await pruneAudit(world.controller.store, world.system, 1_000)
    expect(records).toHaveLength(2)
    const second = await watch(token, `?since=${cursor}`)

    await expect.poll(() => typesOf(second)).toEqual(['gap', 'record-created', 'audit-cut'])
    expect(second.events[0]!.data.missed).toEqual(['audit'])
    const third = await watch(token, `?since=${second.events[0]!.cursor}`)
    await expect.poll(() => typesOf(third)).toEqual(['record-created', 'audit-cut'])
  })

  it('is refused with 400 if it sends anything but a cursor', async () => {
    const { status, text } = await watch(await world.admin(), '?since=yesterday')
    expect([status, JSON.parse(text).error.cause.field]).toEqual([400, 'since'])
  })
})

describe('a stream ends', () => {
  it('when the session of the watcher is deleted, before the event of that', async () => {
    const manage = await managementOf(world)
    const { id } = await world.signIn({ isAdmin: true })
    const { apiSessionId, token } = await world.signInAgain(id)
    const watcher = await watch(token)
    await manage.change('DELETE', `/api-sessions/${apiSessionId}`)

    await expect.poll(() => watcher.hasEnded).toBe(true)
    expect(watcher.events).toEqual([])
    expect((await watch(token, `?since=${watcher.cursor}`)).status).toBe(401)
  })

  it.each([
    ['is disabled', (id: string) => ['POST', `/identities/${id}/disable`, { durationMinutes: 0 }] as const],
    ['is deleted', (id: string) => ['DELETE', `/identities/${id}`, undefined] as const],
    ['is not an administrator any more', (id: string) => ['PATCH', `/identities/${id}`, { isAdmin: false }] as const],
  ])('when the identity of the watcher %s', async (_, toChange) => {
    const manage = await managementOf(world)
    const { id, token } = await world.signIn({ isAdmin: true })
    const watcher = await watch(token)
    const [method, path, body] = toChange(id)
    await manage.change(method, path, body)

    await expect.poll(() => watcher.hasEnded).toBe(true)
    expect(watcher.events).toEqual([])
  })

  it('when the watcher signs out', async () => {
    const token = await world.admin()
    const watcher = await watch(token)
    await world.send({ method: 'DELETE', path: `${MANAGEMENT}/current-api-session`, token })

    await expect.poll(() => watcher.hasEnded).toBe(true)
  })

  it('when the controller stops, which it does not hold up', async () => {
    const watcher = await watch(await world.admin())
    const before = performance.now()
    await world.stop()
    await world.reopen()

    await expect.poll(() => watcher.hasEnded).toBe(true)
    // Connections that do not end are cut after ten seconds.
    expect(performance.now() - before).toBeLessThan(9_000)
  })
})

describe('the controller', () => {
  it('does not stream events to identities that do not administer', async () => {
    expect((await watch((await world.signIn()).token)).status).toBe(401)
  })

  it('keeps the session of a watcher alive that reads', async () => {
    const token = await world.admin()
    const watcher = await watch(token)
    for (let minutes = 0; minutes < 90; minutes += 5) {
      world.clock.advance(5 * 60_000)
      world.controller.events.beat()
      await world.controller.auth.apiSessions.termination.deleteExpired(world.system)
      // The watcher takes the heartbeat meanwhile.
      await delay(10)
    }
    expect(watcher.hasEnded).toBe(false)
    expect((await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })).status).toBe(200)
  })

  it('refuses an identity too many streams, and takes another one when one has ended', async () => {
    const token = await world.admin()
    const all: TestWatcher[] = []
    for (let n = 0; n < 20; n++) all.push(await watch(token))
    const refused = await watch(token)
    expect([refused.status, JSON.parse(refused.text).error.code]).toEqual([429, 'SERVER_TOO_MANY_REQUESTS'])
    expect((await watch(await world.admin())).status).toBe(200)
    await all[0]!.close()

    await expect.poll(async () => (await watch(token)).status).toBe(200)
  })

  it('sends each event to every watcher', async () => {
    const manage = await managementOf(world)
    const all: TestWatcher[] = []
    for (let at = 0; at < 5; at++) {
      const token = await world.admin()
      for (let n = 0; n < 20; n++) all.push(await watch(token, '?subject=services'))
    }
    for (const name of ['one', 'two', 'three']) await manage.make('services', service(name))

    for (const watcher of all) await expect.poll(() => namesOf(watcher)).toEqual(['one', 'two', 'three'])
    const cursors = new Set(all.map(({ events }) => events.map(({ cursor }) => cursor).join()))
    expect(cursors.size).toBe(1)
  })

  it('cuts a watcher that does not read, and the others receive everything', async () => {
    const manage = await managementOf(world)
    const other = await watch(await world.admin(), '?subject=services')
    const { url, rootPem } = address!
    const socket = await openTls(rawTarget(url, rootPem))
    socket.on('error', () => {})
    const token = await world.admin()
    socket.pause()
    socket.write(`GET ${MANAGEMENT}/controller/events HTTP/1.1\r\nHost: x\r\nnet-session: ${token}\r\n\r\n`)
    const countWatchers = () => world.controller.events.watcherCount
    await expect.poll(countWatchers).toBe(2)
    const tags = Object.fromEntries(Array.from({ length: 15 }, (_, at) => [`tag${at}`, 'x'.repeat(1_000)]))
    let count = 0
    while (countWatchers() === 2 && count < 2_000)
      await manage.make('services', { ...service(`service ${count++}`), tags })

    expect(countWatchers()).toBe(1)
    await expect.poll(() => namesOf(other).length).toBe(count)
    socket.destroy()
  })
})
