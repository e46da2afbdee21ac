// Identities: types, names, hosting, being disabled, traced and looked at.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = () => `identity ${++sequence}`
const body = (more: object = {}) => ({ name: newName(), type: 'Device', isAdmin: false, ...more })
const make = (more: object = {}) => manage.make('identities', body(more))

describe('an identity', () => {
  it.each(['User', 'Device', 'Service', 'Router', 'Default'])('of the type %s stays of that type', async (type) => {
    const id = await make({ type })

    expect(await manage.get(`/identities/${id}`)).toMatchObject({
      typeId: type,
      type: { entity: 'identity-types', id: type, name: type },
    })
  })

  it('becomes another type when it is told so, unless it belongs to a router', async () => {
    const id = await make({ type: 'User' })

    await manage.change('PATCH', `/identities/${id}`, { type: 'Router' })
    await manage.change('PUT', `/identities/${id}`, body({ type: 'Service' }))

    expect((await manage.get(`/identities/${id}`)).typeId).toBe('Service')
  })

  it('is found by its type as clients of the peer know it', async () => {
    const [device, router] = [await make(), await make({ type: 'Router' })]
    const findMatches = async (type: string) => {
      const filter = `type = "${type}" and (id = "${device}" or id = "${router}")`
      const list = await manage.get(`/identities?filter=${encodeURIComponent(filter)}`)
      return list.map(({ id }: { id: string }) => id)
    }

    expect(await findMatches('Default')).toEqual([device])
    expect(await findMatches('Router')).toEqual([router])
  })

  it('is created disabled if asked, in the transaction of its creation, and enabled later', async () => {
    const id = await make({ disabled: true, enrollment: { ott: true } })

    const created = await manage.get(`/identities/${id}`)
    expect(created).toMatchObject({ disabled: true, disabledAt: created.createdAt })
    expect(created).not.toHaveProperty('disabledUntil')
    const audited = await manage.get(`/controller/audit?filter=${encodeURIComponent(`entityId = "${id}"`)}`)
    expect(audited).toHaveLength(1)
    await manage.change('POST', `/identities/${id}/enable`, {})
    expect(await manage.get(`/identities/${id}`)).toMatchObject({ disabled: false })
    expect(await manage.get(`/identities/${await make()}`)).toMatchObject({ disabled: false })
    expect((await manage.call('POST', '/identities', body({ disabled: 'maybe' }))).status).toBe(400)
  })

  it('has blank for nothing where that is meant: external id and auth policy', async () => {
    const id = await make({ externalId: 'me', authPolicyId: ' ' })

    await manage.change('PATCH', `/identities/${id}`, { externalId: ' ' })

    expect(await manage.get(`/identities/${id}`)).toMatchObject({ externalId: null, authPolicyId: 'default' })
  })

  it('keeps an app datum, or a tag, that is made as null; a patch takes it away by null, and all by an empty map', async () => {
    const id = await make({ appData: { a: 1, b: null }, tags: { a: true, c: null } })
    const created = await manage.get(`/identities/${id}`)

    await manage.change('PATCH', `/identities/${id}`, { appData: {}, tags: { b: 'new', a: null } })

    expect(created).toMatchObject({ appData: { a: 1, b: null }, tags: { a: true, c: null } })
    expect(await manage.get(`/identities/${id}`)).toMatchObject({ appData: {}, tags: { b: 'new' } })
  })

  it.each([
    [{ appData: { nested: { a: 1 } } }, 400, 'COULD_NOT_PARSE_BODY', 'appData.nested'],
    [{ tags: { list: [1] } }, 400, 'COULD_NOT_PARSE_BODY', 'tags.list'],
    [{ type: 'Toaster' }, 400, 'COULD_NOT_VALIDATE', 'type'],
    [{ authPolicyId: 'nope' }, 404, 'NOT_FOUND', 'authPolicyId'],
    [{ serviceHostingCosts: { nope: 1 } }, 404, 'NOT_FOUND', 'serviceHostingCosts'],
    [{ serviceHostingPrecedences: { nope: 'default' } }, 404, 'NOT_FOUND', 'serviceHostingCosts'],
    [{ serviceHostingCosts: { nope: 70000 } }, 400, 'COULD_NOT_VALIDATE', 'serviceHostingCosts.nope'],
    [{ serviceHostingPrecedences: { nope: 'x' } }, 400, 'COULD_NOT_VALIDATE', 'serviceHostingPrecedences.nope'],
    [{ defaultHostingCost: -1 }, 400, 'COULD_NOT_VALIDATE', 'defaultHostingCost'],
    [{ roleAttributes: ['#a'] }, 400, 'COULD_NOT_VALIDATE', 'roleAttributes'],
  ])('is not made with %j', async (wrong, status, code, field) => {
    expect(await manage.refusal('POST', '/identities', body(wrong))).toMatchObject({ status, code, field })
  })

  it('does not take the external id of another, at any time', async () => {
    await make({ externalId: 'taken' })
    const id = await make()

    const refusal = { status: 400, code: 'COULD_NOT_VALIDATE', field: 'externalId', value: 'taken' }
    expect(await manage.refusal('POST', '/identities', body({ externalId: 'taken' }))).toEqual(refusal)
    expect(await manage.refusal('PATCH', `/identities/${id}`, { externalId: 'taken' })).toEqual(refusal)
  })

  it('takes a patch without content, even in the moment in which it was made', async () => {
    const id = await make()

    await manage.change('PATCH', `/identities/${id}`, {})
  })

  it('leaves the policies that name it, with what is its own', async () => {
    const id = await make({ enrollment: { ott: true } })
    const roles = { semantic: 'AnyOf', identityRoles: [`@${id}`, '#staff'] }
    const dial = await manage.make('service-policies', { name: newName(), type: 'Dial', ...roles })
    const router = await manage.make('edge-router-policies', { name: newName(), ...roles })

    await manage.change('DELETE', `/identities/${id}`)

    expect((await manage.get(`/service-policies/${dial}`)).identityRoles).toEqual(['#staff'])
    expect((await manage.get(`/edge-router-policies/${router}`)).identityRoles).toEqual(['#staff'])
    const { db } = world.controller.store
    expect(await db.selectFrom('enrollments').select('id').where('identityId', '=', id).execute()).toEqual([])
  })
})

describe('a disabled identity', () => {
  const minute = 60_000

  it('is disabled for as long as was said, and then is not', async () => {
    const id = await make()

    await manage.change('POST', `/identities/${id}/disable`, { durationMinutes: 5 })

    const { disabled, disabledAt, disabledUntil } = await manage.get(`/identities/${id}`)
    expect(disabled).toBe(true)
    expect(Date.parse(disabledUntil) - Date.parse(disabledAt)).toBe(5 * minute)
    world.clock.advance(5 * minute)
    expect(await manage.get(`/identities/${id}`)).toMatchObject({ disabled: false, disabledAt, disabledUntil })
  })

  it.each([0, -1])('is disabled without an end by %i minutes', async (durationMinutes) => {
    const id = await make()

    await manage.change('POST', `/identities/${id}/disable`, { durationMinutes })
    world.clock.advance(20 * minute)

    const identity = await manage.get(`/identities/${id}`)
    expect(identity.disabled).toBe(true)
    expect(identity).not.toHaveProperty('disabledUntil')
  })

  it('is let in again, as often as wanted', async () => {
    const id = await make()
    await manage.change('POST', `/identities/${id}/disable`, { durationMinutes: 0 })

    await manage.change('POST', `/identities/${id}/enable`)
    await manage.change('POST', `/identities/${id}/enable`, {})

    const identity = await manage.get(`/identities/${id}`)
    expect(identity.disabled).toBe(false)
    expect(identity).not.toHaveProperty('disabledAt')
  })

  it('loses its sessions at once', async () => {
    const { id, token } = await world.signIn()
    const ask = () => world.send({ method: 'GET', path: `${CLIENT}/current-identity`, token })
    const before = await ask()

    await manage.change('POST', `/identities/${id}/disable`, { durationMinutes: 1 })

    expect(before.status).toBe(200)
    expect((await ask()).status).toBe(401)
    expect((await manage.get(`/identities/${id}`)).hasApiSession).toBe(false)
  })

  it('stays disabled through changes of its record', async () => {
    const id = await make()
    await manage.change('POST', `/identities/${id}/disable`, { durationMinutes: 0 })

    await manage.change('PUT', `/identities/${id}`, body())
    await manage.change('PATCH', `/identities/${id}`, { roleAttributes: ['a'] })

    expect((await manage.get(`/identities/${id}`)).disabled).toBe(true)
  })

  it.each([
    ['nothing', {}, 'COULD_NOT_VALIDATE'],
    ['no number', { durationMinutes: 'long' }, 'COULD_NOT_PARSE_BODY'],
    ['half a minute', { durationMinutes: 0.5 }, 'COULD_NOT_PARSE_BODY'],
    ['longer than time lasts', { durationMinutes: 1e15 }, 'COULD_NOT_VALIDATE'],
  ])('is not disabled by %s', async (_what, sent, code) => {
    const id = await make()

    const refused = await manage.refusal('POST', `/identities/${id}/disable`, sent)

    expect(refused).toMatchObject({ status: 400, code, field: 'durationMinutes' })
  })

  it('has to be there', async () => {
    expect(await manage.refusal('POST', '/identities/nope/disable', { durationMinutes: 1 })).toMatchObject({
      status: 404,
    })
    expect(await manage.refusal('POST', '/identities/nope/enable')).toMatchObject({ status: 404 })
  })
})

describe('the trace of an identity', () => {
  const trace = (id: string, spec: object) => manage.call('PUT', `/identities/${id}/trace`, spec)

  it('begins for a time, with an id that stands in the logs', async () => {
    const id = await make()

    const { body: response } = await trace(id, { enabled: true, duration: '1m30s', traceId: 'why', channels: ['all'] })
    const { body: unnamed } = await trace(id, { enabled: true, duration: '500ms' })

    const until = (ms: number) => new Date(world.clock.now() + ms).toISOString()
    expect(response.data).toEqual({ enabled: true, traceId: 'why', until: until(90_000) })
    expect(unnamed.data).toEqual({
      enabled: true,
      traceId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      until: until(500),
    })
  })

  it('can be ended, whether it began or not', async () => {
    const id = await make()

    const { status, body: response } = await trace(id, { enabled: false, traceId: 'why' })
    const { body: unnamed } = await trace(id, {})

    expect(status).toBe(200)
    expect(response.data).toEqual({
      enabled: false,
      traceId: 'why',
      until: new Date(world.clock.now()).toISOString(),
    })
    expect(unnamed.data.traceId).toMatch(/^[0-9a-f-]{36}$/)
  })

  it.each([undefined, '', 'soon', '10', '0s', '-5m', '99999999999h'])('has no duration %s', async (duration) => {
    const id = await make()

    const refused = await manage.refusal('PUT', `/identities/${id}/trace`, { enabled: true, duration })

    expect(refused).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'duration' })
  })

  it('is of an identity that exists', async () => {
    expect(await manage.refusal('PUT', '/identities/nope/trace', { enabled: false })).toMatchObject({ status: 404 })
  })
})

describe('what is known of an identity', () => {
  it('says that nothing was reported and nothing was refused, while that is so', async () => {
    const id = await make()

    expect(await manage.get(`/identities/${id}/failed-service-requests`)).toEqual([])
    expect(await manage.get(`/identities/${id}/posture-data`)).toEqual({
      apiSessionPostureData: {},
      domain: { lastUpdatedAt: null, postureCheckId: '', timedOut: false, domain: null },
      mac: { lastUpdatedAt: null, postureCheckId: '', timedOut: false, addresses: [] },
      os: { lastUpdatedAt: null, postureCheckId: '', timedOut: false, build: null, type: null, version: null },
      processes: [],
    })
  })

  it('lets a second factor be taken away that is not there', async () => {
    const id = await make()

    await manage.change('DELETE', `/identities/${id}/mfa`)
  })

  it.each([
    ['GET', 'failed-service-requests'],
    ['GET', 'posture-data'],
    ['DELETE', 'mfa'],
    ['GET', 'authenticators'],
    ['GET', 'enrollments'],
  ])('is not found below an identity that does not exist: %s %s', async (method, subPath) => {
    expect(await manage.refusal(method, `/identities/nope/${subPath}`)).toMatchObject({ status: 404 })
  })
})

describe('identity types', () => {
  it('are all that identities can be of', async () => {
    expect((await manage.names('/identity-types')).sort()).toEqual(['Default', 'Device', 'Router', 'Service', 'User'])
  })
})
