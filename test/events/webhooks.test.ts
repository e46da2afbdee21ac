// Webhooks: events are delivered in order, signed, again until they are accepted, and only while their owner may receive them.
import { createHmac } from 'node:crypto'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { objectForm } from '../../src/maintenance/events/event-message.ts'
import { MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { authorityFile } from '../world/endpoints.ts'
import { type Management, managementOf } from '../world/management.ts'
import { People } from '../world/people.ts'
import { openReceiver, type Receiver } from '../world/webhook-receiver.ts'

const SECRET = 'a secret that both of them know'
const authority = authorityFile()
afterAll(() => authority.remove())
const settings = { 'webhooks.allowPrivate': true, 'webhooks.caFile': authority.path, 'webhooks.timeout': '1m' }

let world: TestController
let manage: Management
let receiver: Receiver
beforeEach(async () => {
  world = await testController({ settings })
  manage = await managementOf(world)
  receiver = await openReceiver()
})
afterEach(async () => {
  await receiver.close()
  await world.close()
})

const tick = () => world.controller.webhooks.tick(world.system)
const service = (name: string) => manage.make('services', { name, encryptionRequired: false })
const webhook = (values: object = {}) =>
  manage.make('controller/webhooks', { name: 'hook', address: receiver.url, secret: SECRET, ...values })
const read = (id: string) => manage.get(`/controller/webhooks/${id}`)
const namesOf = ({ accepted }: Receiver) =>
  accepted.flatMap(({ event }) => (event.audit?.resource === 'services' ? event.audit.entityName : []))

describe('a webhook', () => {
  it('receives every event after its creation, in order, signed over id, time and body', async () => {
    await webhook()
    for (const name of ['one', 'two', 'three']) await service(name)
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['one', 'two', 'three'])
    expect(receiver.accepted[0]!.event.audit).toMatchObject({ resource: 'webhooks', operation: 'create' })
    for (const { headers, body } of receiver.accepted) {
      const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
      const signature = createHmac('sha256', SECRET).update(signed).digest('base64')
      expect(headers['webhook-signature']).toBe(`v1,${signature}`)
      expect(headers['content-type']).toBe('application/json')
    }
    expect(new Set(receiver.accepted.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
    expect(JSON.stringify(receiver.accepted)).not.toContain(SECRET)
  })

  it('receives only the types that it selects', async () => {
    await webhook({ types: ['record-deleted'] })
    await manage.change('DELETE', `/services/${await service('web')}`)
    await tick()

    await expect.poll(() => receiver.accepted.map(({ event }) => event.type)).toEqual(['record-deleted'])
  })

  it('receives what happens while the receiver fails once it accepts events again, each under the id of its first attempt', async () => {
    await webhook({ types: ['record-created'] })
    receiver.respond = (_request, response) => response.writeHead(500).end()
    await service('one')
    await service('two')
    await tick()
    await expect.poll(() => receiver.attempts.length).toBeGreaterThan(1)
    receiver.respond = undefined

    await expect.poll(() => namesOf(receiver)).toEqual(['one', 'two'])
    expect(receiver.accepted[0]!.headers['webhook-id']).toBe(receiver.attempts[0]!.headers['webhook-id'])
  })

  it('goes on behind what was delivered after a restart, and loses nothing', async () => {
    await webhook({ types: ['record-created'] })
    await service('one')
    await tick()
    await expect.poll(() => namesOf(receiver)).toContain('one')
    const { directory, clock } = world
    await world.stop()
    world = await testController({ settings, directory, clock })
    manage = await managementOf(world)
    await service('two')
    await tick()

    // An event of which the controller has not seen the response comes once more.
    await expect.poll(() => [...new Set(namesOf(receiver))]).toEqual(['one', 'two'])
  })

  it('receives what happened while it was disabled', async () => {
    const id = await webhook({ types: ['record-created'] })
    await manage.change('PATCH', `/controller/webhooks/${id}`, { enabled: false })
    await tick()
    await service('meanwhile')
    expect((await read(id)).delivery.state).toBe('disabled')
    await manage.change('PATCH', `/controller/webhooks/${id}`, { enabled: true })
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['meanwhile'])
  })

  it('is paused after a day of failures, is named by the doctor, and goes on after a change', async () => {
    const id = await webhook({ types: ['record-created'] })
    receiver.respond = (_request, response) => response.writeHead(503).end()
    await service('one')
    await tick()
    await expect.poll(async () => (await read(id)).delivery).toMatchObject({ state: 'failing', failure: 'status 503' })
    world.clock.advance(24 * 60 * 60_000)
    manage = await managementOf(world)
    await expect.poll(async () => (await read(id)).delivery.state).toBe('paused')
    const attempts = receiver.attempts.length
    await tick()
    const { diagnoses } = await manage.get('/controller/doctor')
    expect(diagnoses).toContainEqual(
      expect.objectContaining({ subject: 'webhook hook', remedy: 'controller webhook update hook --enabled' }),
    )
    expect(receiver.attempts).toHaveLength(attempts)
    receiver.respond = undefined
    await manage.change('PATCH', `/controller/webhooks/${id}`, { enabled: true })
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['one'])
    expect(await read(id)).toMatchObject({ pausedAt: null, delivery: { state: 'delivering' } })
  })

  it('is paused after a day of failures, though the one that changed it last signs in with other software meanwhile', async () => {
    const people = await People.in(world)
    const owner = await people.person({ isAdmin: true })
    const body = { name: 'hook', address: receiver.url, secret: SECRET, types: ['record-created'] }
    const token = await people.sessionOf(owner)
    await world.send({ method: 'POST', path: `${MANAGEMENT}/controller/webhooks`, token, body })
    receiver.respond = (_request, response) => response.writeHead(503).end()
    await service('one')
    await tick()
    const [{ id }] = await manage.get('/controller/webhooks')
    await expect.poll(async () => (await read(id)).delivery.state).toBe('failing')
    const { failingSince } = (await read(id)).delivery
    world.clock.advance(12 * 60 * 60_000)
    manage = await managementOf(world)
    expect((await people.signIn(owner, { sdkInfo: { type: 'another' } })).status).toBe(200)
    await tick()

    expect((await read(id)).delivery).toMatchObject({ state: 'failing', failingSince })
    world.clock.advance(12 * 60 * 60_000)
    manage = await managementOf(world)
    await expect.poll(async () => (await read(id)).delivery.state).toBe('paused')
  })

  it('receives nothing once the one that changed it last is not an administrator any more', async () => {
    const owner = await world.signIn({ isAdmin: true })
    const body = { name: 'hook', address: receiver.url, secret: SECRET, types: ['record-created'] }
    await world.send({ method: 'POST', path: `${MANAGEMENT}/controller/webhooks`, token: owner.token, body })
    await tick()
    await manage.change('PATCH', `/identities/${owner.id}`, { isAdmin: false })
    await service('secret')
    await tick()
    const [{ id, ownerId }] = await manage.get('/controller/webhooks')
    await expect.poll(async () => (await read(id)).delivery.state).toBe('not-permitted')
    expect([ownerId, namesOf(receiver)]).toEqual([owner.id, []])
    await manage.change('PATCH', `/controller/webhooks/${id}`, { tags: {} })
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['secret'])
  })

  it('does not wait for another one whose receiver does not respond', async () => {
    const stuck = await openReceiver()
    stuck.respond = () => {}
    await webhook({ name: 'stuck', address: stuck.url })
    await webhook({ types: ['record-created'] })
    await service('one')
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['one'])
    await expect.poll(() => stuck.attempts.length).toBeGreaterThan(0)
    expect(stuck.accepted).toEqual([])
    await stuck.close()
  })
})

describe('many webhooks and watchers', () => {
  const { administrator } = Rights
  const rightOf = (ownerId: string) => ({ ownerId, findRights: () => administrator, noteActivity() {} })

  it('leave a webhook its events, though as many watchers are connected as there may be', async () => {
    const { events } = world.controller
    for (let n = 0; n < 1_000; n++)
      await events.watch(rightOf(`watcher ${Math.floor(n / 20)}`), { types: ['audit-cut'] }, undefined, objectForm)
    await expect(events.watch(rightOf('one more'), {}, undefined, objectForm)).rejects.toThrow()
    await webhook({ types: ['record-created'] })
    await service('one')
    await tick()

    await expect.poll(() => namesOf(receiver)).toEqual(['one'])
  })

  it('deliver hundreds of events in order to one receiver, while the other one fails', async () => {
    const dead = await openReceiver()
    dead.respond = (_request, response) => response.writeHead(500).end()
    await webhook({ name: 'dead', address: dead.url, types: ['record-updated'] })
    const id = await webhook({ types: ['record-updated'] })
    await service('one')
    const { store } = world.controller
    const newest = await store.db.selectFrom('audit_records').selectAll().orderBy('n', 'desc').executeTakeFirstOrThrow()
    await world.system.write(async (tx) => {
      for (let n = 1; n <= 300; n++)
        await tx.db
          .insertInto('audit_records')
          .values({ ...newest, n: newest.n + n, operation: 'update', entityName: `update ${n}` })
          .execute()
    })
    await tick()

    const names = () => receiver.accepted.map(({ event }) => event.audit?.entityName)
    await expect.poll(() => names().length, { timeout: 20_000 }).toBe(300)
    expect(names()).toEqual(Array.from({ length: 300 }, (_, at) => `update ${at + 1}`))
    expect(dead.accepted).toEqual([])
    expect((await read(id)).delivery.state).toBe('delivering')
    await dead.close()
  })

  it('deliver nothing of a webhook that is deleted while its receiver responds', async () => {
    let release = () => {}
    const released = new Promise<void>((resolve) => {
      release = resolve
    })
    receiver.respond = async (_request, response) => {
      await released
      response.end()
    }
    const id = await webhook({ types: ['record-created'] })
    await service('one')
    await service('two')
    await tick()
    await expect.poll(() => receiver.attempts.length).toBe(1)
    await manage.change('DELETE', `/controller/webhooks/${id}`)
    release()
    await tick()
    await service('three')
    await tick()

    const other = await openReceiver()
    await webhook({ name: 'other', address: other.url, types: ['record-created'] })
    await service('four')
    await tick()
    await expect.poll(() => namesOf(other)).toEqual(['four'])
    expect(receiver.attempts).toHaveLength(1)
    await other.close()
  })

  it('are signed by the secret that they have when an event is sent again', async () => {
    const id = await webhook({ types: ['record-created'] })
    receiver.respond = (_request, response) => response.writeHead(500).end()
    await service('one')
    await tick()
    await expect.poll(() => receiver.attempts.length).toBeGreaterThan(0)
    const secret = 'another secret of both of them'
    await manage.change('PATCH', `/controller/webhooks/${id}`, { secret })
    await tick()
    // One that was on its way during the change still has the former secret, and must not be accepted.
    const before = receiver.attempts.length
    await expect.poll(() => receiver.attempts.length).toBeGreaterThan(before)
    receiver.respond = undefined

    await expect.poll(() => namesOf(receiver)).toEqual(['one'])
    const [{ headers, body }] = receiver.accepted as [Receiver['accepted'][number]]
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', secret).update(signed).digest('base64')}`)
    expect(headers['webhook-id']).toBe(receiver.attempts[0]!.headers['webhook-id'])
  })

  it('are told about a gap if their cursor is of another history of the audit', async () => {
    const id = await webhook({ types: ['record-created'] })
    await service('one')
    const { cursor } = await world.controller.store.db.selectFrom('webhooks').select('cursor').executeTakeFirstOrThrow()
    const [n] = cursor.split('-')
    await world.system.write((tx) =>
      tx.db
        .updateTable('webhooks')
        .where('id', '=', id)
        .set({ cursor: `${n}-ffffffffffff-00000000-0` })
        .execute(),
    )
    await tick()
    await expect.poll(() => receiver.accepted.map(({ event }) => event)).toEqual([{ type: 'gap', missed: ['audit'] }])
    await service('two')

    await expect.poll(() => namesOf(receiver)).toEqual(['two'])
  })
})

describe('the receiver of a webhook', () => {
  const failureOf = async (respond: Receiver['respond'], at = receiver) => {
    at.respond = respond
    const id = await webhook({ name: `hook ${receiver.attempts.length}`, address: at.url })
    const { body } = await manage.call('POST', `/controller/webhooks/${id}/test`)
    return body.data.failure as string | null
  }

  it('accepts a test by any status of success', async () => {
    expect(await failureOf((_request, response) => response.writeHead(204).end())).toBe(null)
  })

  it('leads nowhere else', async () => {
    const other = await openReceiver()
    const failure = await failureOf((_request, response) => response.writeHead(307, { location: other.url }).end())
    expect([failure, other.attempts]).toEqual(['status 307', []])
    await other.close()
  })

  it('has a limited time for its response, however slowly it arrives', async () => {
    const trickle: NonNullable<Receiver['respond']> = (_request, response) => {
      const timer = setInterval(() => response.socket?.write('H'), 50)
      response.on('close', () => clearInterval(timer))
    }
    await world.stop()
    world = await testController({ settings: { ...settings, 'webhooks.timeout': '300ms' } })
    manage = await managementOf(world)
    expect(await failureOf(trickle)).toMatch(/^no complete response|^what listens there does not speak HTTP$/)
  })

  it('is not read beyond its status', async () => {
    let isCut = false
    const endless: NonNullable<Receiver['respond']> = (_request, response) => {
      response.writeHead(200)
      const pump = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536)));
      }
      response.on('drain', pump).on('error', () => {})
      response.on('close', () => {
        isCut = true
      })
      pump()
    }
    expect(await failureOf(endless)).toBe(null)
    await expect.poll(() => isCut).toBe(true)
  })

  it('has a certificate of an authority that the controller trusts', async () => {
    await world.stop()
    world = await testController({ settings: { 'webhooks.allowPrivate': true } })
    manage = await managementOf(world)
    expect(await failureOf(undefined)).toBe('its certificate is not from an authority that is trusted')
  })

  it('does not respond: that is said in plain words, and what the system says of it is in the log', async () => {
    const lines: { err?: Error }[] = []
    const note = (fields: object) => void lines.push(fields)
    await world.stop()
    world = await testController({ settings, log: { debug: note, info: note, warn: note, error: note } })
    manage = await managementOf(world)
    const id = await webhook({ types: ['record-created'] })
    await receiver.close()
    const { body } = await manage.call('POST', `/controller/webhooks/${id}/test`)
    expect(body.data).toEqual({ isDelivered: false, failure: 'connection refused' })
    const listCauses = () => lines.flatMap(({ err }) => (err?.cause as NodeJS.ErrnoException | undefined)?.code ?? [])
    expect(listCauses()).toEqual(['ECONNREFUSED'])

    await service('one')
    await tick()
    await expect.poll(async () => (await read(id)).delivery).toMatchObject({ failure: 'connection refused' })
    expect(listCauses()).toEqual(['ECONNREFUSED', 'ECONNREFUSED'])
  })

  it('is named by no certificate file that cannot be read: the controller does not start', async () => {
    await world.stop()
    await expect(testController({ settings: { ...settings, 'webhooks.caFile': '/none.pem' } })).rejects.toThrow(
      'webhooks.caFile names /none.pem, which cannot be read: no such file or directory',
    )
    world = await testController({ settings })
  })

  it('is at a public address unless the setting allows others, also if a name leads to it', async () => {
    await world.stop()
    world = await testController({ settings: { 'webhooks.caFile': authority.path } })
    manage = await managementOf(world)
    const { port } = new URL(receiver.url)
    for (const host of ['127.0.0.1', '10.1.2.3', '169.254.169.254', '[::1]', '[::ffff:127.0.0.1]', '2130706433']) {
      const body = { name: 'hook', address: `https://${host}:${port}/`, secret: SECRET }
      expect(await manage.refusal('POST', '/controller/webhooks', body)).toMatchObject({
        status: 400,
        field: 'address',
      })
    }
    const id = await webhook({ address: `https://localhost:${port}/` })
    const { body } = await manage.call('POST', `/controller/webhooks/${id}/test`)
    expect(body.data.failure).toBe('localhost has a private address, and the setting webhooks.allowPrivate is off')
    expect(receiver.attempts).toEqual([])
  })

  it('speaks TLS unless the setting allows http', async () => {
    const body = { name: 'hook', address: 'http://receiver.example/', secret: SECRET }
    expect(await manage.refusal('POST', '/controller/webhooks', body)).toMatchObject({ status: 400, field: 'address' })
  })
})

describe('the secret of a webhook', () => {
  it('is neither shown, nor stored as it is, nor in the audit', async () => {
    const id = await webhook()
    const { encryptedSecret } = await world.controller.store.db
      .selectFrom('webhooks')
      .select('encryptedSecret')
      .executeTakeFirstOrThrow()
    expect(encryptedSecret).not.toContain(SECRET)
    const [shown, audit] = [await read(id), await manage.get('/controller/audit?limit=20')]
    expect(shown.secret).toBeUndefined()
    for (const text of [JSON.stringify(shown), JSON.stringify(audit)])
      for (const secret of [SECRET, encryptedSecret]) expect(text).not.toContain(secret)
  })

  it('is decoded if it is written as libraries of Standard Webhooks do', async () => {
    const key = Buffer.from('a key of bytes that is not text \u0000\u0001')
    await webhook({ secret: `whsec_${key.toString('base64')}`, types: ['record-created'] })
    await service('one')
    await tick()

    await expect.poll(() => receiver.accepted.length).toBeGreaterThan(0)
    const [{ headers, body }] = receiver.accepted as [Receiver['accepted'][number]]
    const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${body}`
    expect(headers['webhook-signature']).toBe(`v1,${createHmac('sha256', key).update(signed).digest('base64')}`)
  })

  it.each([
    ['is nothing but its prefix and spaces', `whsec_${' '.repeat(16)}`],
    ['has another character', 'whsec_!MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLawSw'],
    ['is Base64 for addresses', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa-_'],
    ['ends with a line break', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n'],
    ['has too much padding', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw=='],
    ['is cut within a byte', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwx'],
    ['decodes to 15 bytes', `whsec_${Buffer.alloc(15, 1).toString('base64')}`],
    ['is blank', ' '.repeat(16)],
    ['has 15 characters between blanks', ' fifteen letters \t'],
  ])('is refused if it %s, on creation and on change', async (_what, secret) => {
    const id = await webhook()
    const created = await manage.refusal('POST', '/controller/webhooks', {
      name: 'another hook',
      address: receiver.url,
      secret,
    })
    const changed = await manage.refusal('PATCH', `/controller/webhooks/${id}`, { secret })

    const refusal = { status: 400, code: 'COULD_NOT_VALIDATE', field: 'secret' }
    expect([created, changed]).toEqual([refusal, refusal])
  })

  it('may be the Base64 of 16 bytes, with or without padding, or text with spaces', async () => {
    const key = Buffer.alloc(16, 0xfb).toString('base64')
    for (const secret of [`whsec_${key}`, `whsec_${key.replace(/=+$/, '')}`, 'sixteen  characters'])
      await webhook({ name: secret, secret })
  })
})
