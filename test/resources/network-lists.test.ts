// The overview of administrators: the summary, the role attributes in use, the controllers and their settings.
import { beforeAll, describe, expect, it } from 'vitest'
import { listApiPaths } from '../../server/api/mount-points.ts'
import { controllerSettings } from '../../src/definitions/resources/controller-settings.ts'
import { controllers } from '../../src/definitions/resources/controllers.ts'
import { get, newEntity } from '../../src/storage/entities/entities.ts'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = (what: string) => `${what} ${++sequence}`

const attributed = [
  { list: 'identity-role-attributes', plural: 'identities', body: { type: 'User', isAdmin: false } },
  { list: 'service-role-attributes', plural: 'services', body: { encryptionRequired: true } },
  { list: 'edge-router-role-attributes', plural: 'edge-routers', body: {} },
  { list: 'posture-check-role-attributes', plural: 'posture-checks', body: { typeId: 'DOMAIN', domains: ['x'] } },
] as const

describe.each(attributed)('$list', ({ list, plural, body }) => {
  const make = (roleAttributes: string[]) => manage.make(plural, { name: newName(plural), ...body, roleAttributes })
  const ask = async (filter: string, more = '') =>
    (await manage.call('GET', `/${list}?filter=${encodeURIComponent(filter)}${more}`)).body

  it('are each named once, in order, as long as a record has them', async () => {
    const id = await make(['b', 'a'])
    await make(['b', 'C'])

    const before = await manage.call('GET', `/${list}`)
    await manage.change('DELETE', `/${plural}/${id}`)

    expect(before.body.data).toEqual(['C', 'a', 'b'])
    expect(before.body.meta).toMatchObject({
      filterableFields: ['id', 'name'],
      pagination: { limit: -1, offset: 0, totalCount: 3 },
    })
    expect(await manage.get(`/${list}`)).toEqual(['C', 'b'])
  })

  it('can be filtered, sorted and paged', async () => {
    await make(['page-1', 'page-2', 'page-3', 'other'])

    expect((await ask('id contains "page" sort by id desc')).data).toEqual(['page-3', 'page-2', 'page-1'])
    expect((await ask('id contains "page"', '&limit=1&offset=1')).data).toEqual(['page-2'])
    expect((await ask('name contains "page"', '&sort=name%20desc&limit=1')).data).toEqual(['page-3'])
    expect((await ask('id contains "page" limit 2')).meta.pagination).toEqual({ limit: 2, offset: 0, totalCount: 3 })
  })

  it('are sorted by name as consoles ask for them', async () => {
    const sorted = await manage.get(`/${list}?limit=30&offset=0&sort=name%20asc`)

    expect(sorted).toEqual(await manage.get(`/${list}`))
  })

  it('know no other field, and refuse a filter that is none', async () => {
    expect(await manage.refusal('GET', `/${list}?filter=${encodeURIComponent('createdAt = "a"')}`)).toMatchObject({
      status: 400,
      code: 'INVALID_FILTER',
    })
    expect(await manage.refusal('GET', `/${list}?filter=${encodeURIComponent('id =')}`)).toMatchObject({
      status: 400,
      code: 'INVALID_FILTER',
    })
  })
})

describe('the summary', () => {
  it('counts what there is, edge routers among all routers', async () => {
    const before = await manage.get('/summary')
    await manage.make('routers', { name: newName('router') })
    await manage.make('edge-routers', { name: newName('router'), isTunnelerEnabled: true })

    const after = await manage.get('/summary')

    const more = (key: string) => after[key] - before[key]
    expect(more('routers')).toBe(2)
    expect(more('routers.edge')).toBe(1)
    expect(more('enrollments')).toBe(2)
    expect(more('identities')).toBe(1)
    expect(more('edgeRouterPolicies')).toBe(1)
    expect(more('services')).toBe(0)
  })

  it('has every count that clients know', async () => {
    const keys = [
      'apiSessionCertificates',
      'apiSessions',
      'authPolicies',
      'authenticators',
      'cas',
      'configTypes',
      'configs',
      'controllers',
      'edgeRouterPolicies',
      'enrollments',
      'eventualEvents',
      'externalJwtSigners',
      'identities',
      'identityTypes',
      'mfas',
      'postureCheckTypes',
      'postureChecks',
      'revocations',
      'routers',
      'routers.edge',
      'serviceEdgeRouterPolicies',
      'servicePolicies',
      'services',
      'services.edge',
      'sessions',
      'terminators',
    ]

    const summary = await manage.get('/summary')

    expect(Object.keys(summary).sort()).toEqual(keys.sort())
    expect(Object.values(summary).every((count) => Number.isInteger(count))).toBe(true)
  })
})

describe('the controllers of the network', () => {
  const announce = () =>
    world.controller.membership.announce(world.system, {
      'edge-client': '/edge/client/v1',
      'edge-management': '/edge/management/v1',
    })

  it('are this one, as it last joined, and those that share its database', async () => {
    await announce()
    const values = { name: 'elsewhere', publicKeyPrint: 'another', lastJoinedAt: world.clock.now() }
    await world.system.write((tx) =>
      world.controller.entities.insert(tx, controllers, newEntity(tx, controllers, values)),
    )
    world.clock.advance(1000)
    await announce()

    const matches = await manage.get(`/controllers?filter=${encodeURIComponent('true sort by name')}`)

    expect(matches.map(({ name, isOnline }: { name: string; isOnline: boolean }) => [name, isOnline])).toEqual([
      ['127.0.0.1', true],
      ['elsewhere', false],
    ])
    expect(matches[0]).toMatchObject({
      id: world.controller.membership.ownId,
      certPem: expect.stringContaining('BEGIN CERTIFICATE'),
      fingerprint: expect.stringMatching(/^[0-9a-f]{40}$/),
      ctrlAddress: 'tls:127.0.0.1:1280',
      lastJoinedAt: new Date(world.clock.now()).toISOString(),
      apiAddresses: {
        'edge-client': [{ url: 'https://127.0.0.1:1280/edge/client/v1', version: 'v1' }],
        'edge-management': [{ url: 'https://127.0.0.1:1280/edge/management/v1', version: 'v1' }],
      },
    })
    expect(matches[0]).not.toHaveProperty('publicKeyPrint')
  })

  it('are shown to every signed-in identity', async () => {
    await announce()
    const { token } = await world.signIn()

    for (const base of [CLIENT, MANAGEMENT]) {
      const response = await world.send({ method: 'GET', path: `${base}/controllers`, token })

      expect(response.status).toBe(200)
      expect(response.body.data[0].name).toBe('127.0.0.1')
      expect(response.body.data[0]).toHaveProperty('ctrlAddress', 'tls:127.0.0.1:1280')
    }
  })

  it('show clients the APIs that are for them alone', async () => {
    const listeners = [
      { ...world.controller.config.listeners[0]!, apis: ['client', 'management', 'fabric', 'oidc'] as const },
    ]
    await world.controller.membership.announce(world.system, listApiPaths({ listeners }))
    const { token } = await world.signIn()
    const read = async (base: string) =>
      (await world.send({ method: 'GET', path: `${base}/controllers`, token })).body.data[0]
    const toAddress = (path: string) => [{ url: `https://127.0.0.1:1280${path}`, version: 'v1' }]
    const ofClients = { 'edge-client': toAddress(CLIENT), 'edge-oidc': toAddress('/oidc') }

    const ofClient = await read(CLIENT)

    expect(ofClient.apiAddresses).toEqual(ofClients)
    expect(await read(MANAGEMENT)).toMatchObject({
      ctrlAddress: 'tls:127.0.0.1:1280',
      apiAddresses: { ...ofClients, 'edge-management': toAddress(MANAGEMENT), fabric: toAddress('/fabric/v1') },
    })
  })
})

describe('controller settings', () => {
  let own: string

  beforeAll(async () => {
    await world.controller.membership.announce(world.system, {})
    own = world.controller.membership.ownId ?? ''
  })

  const effective = async (id: string) => {
    const { effective: inForce, instance } = await manage.get(`/controller-settings/${id}/effective`)
    return { effective: inForce.oidc, instance: instance.oidc }
  }

  it('are in force at once: the global ones, and member by member those of this controller', async () => {
    const { registeredUris } = world.controller
    const inForce = () => [registeredUris.redirectUris, registeredUris.postLogoutUris]
    await manage.change('PATCH', '/controller-settings/global/effective', {
      oidc: { redirectUris: ['https://a'], postLogoutUris: ['https://b'] },
    })
    expect(inForce()).toEqual([['https://a'], ['https://b']])
    await manage.make('controller-settings', { controllerId: own, oidc: { redirectUris: ['https://c'] } })
    expect(inForce()).toEqual([['https://c'], ['https://b']])
    await manage.change('DELETE', `/controller-settings/${own}/effective`)
    expect(inForce()).toEqual([['https://a'], ['https://b']])
    await manage.change('PATCH', '/controller-settings/global/effective', {
      oidc: { redirectUris: [], postLogoutUris: [] },
    })
    expect(inForce()).toEqual([[], []])
  })

  it('are the global ones where a controller has none of its own', async () => {
    await manage.change('PATCH', '/controller-settings/global/effective', { oidc: { redirectUris: ['https://a'] } })

    expect(await manage.get('/controller-settings/global')).toMatchObject({
      id: 'global',
      oidc: { postLogoutUris: [], redirectUris: ['https://a'] },
    })
    expect(await effective(own)).toEqual({
      effective: { postLogoutUris: [], redirectUris: ['https://a'] },
      instance: {},
    })
  })

  it('of a controller win member by member', async () => {
    const id = await manage.make('controller-settings', { controllerId: own, oidc: { postLogoutUris: ['https://b'] } })

    const before = await effective(own)
    await manage.change('PATCH', `/controller-settings/${own}/effective`, { oidc: { redirectUris: ['https://c'] } })
    const patched = await effective(own)
    await manage.change('PUT', `/controller-settings/${own}/effective`, { oidc: { redirectUris: [] } })

    expect(id).toBe(own)
    expect((await manage.get(`/controller-settings/${own}`)).oidc).toEqual({ redirectUris: [] })
    expect(before).toEqual({
      effective: { postLogoutUris: ['https://b'], redirectUris: ['https://a'] },
      instance: { postLogoutUris: ['https://b'] },
    })
    expect(patched.effective).toEqual({ postLogoutUris: ['https://b'], redirectUris: ['https://c'] })
    expect((await effective(own)).effective).toEqual({ postLogoutUris: [], redirectUris: [] })
  })

  it('are one record a controller, of a controller that exists', async () => {
    const again = await manage.refusal('POST', '/controller-settings', { controllerId: own })
    const unknown = await manage.refusal('POST', '/controller-settings', { controllerId: 'nope' })
    const none = await manage.refusal('POST', '/controller-settings', { oidc: {} })

    expect(again).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'controllerId' })
    expect(unknown).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'controllerId' })
    expect(none).toMatchObject({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'controllerId' })
  })

  it.each([
    '',
    'not a uri',
    'app.example.com/callback',
    '//app.example.com/callback',
    '/auth/callback',
    'https:',
    ' https://app.example.com/callback',
    'https://app.example.com/call back',
    'https://app.example.com/callback\n',
    'https://app.example.com/callback#',
    'https://app.example.com/#/callback',
    'javascript:alert(1)',
    'JavaScript://app.example.com/%0aalert(1)',
    'data:text/html,<script>alert(1)</script>',
  ])('send clients nowhere but to absolute URIs: %j is refused', async (uri) => {
    for (const member of ['redirectUris', 'postLogoutUris']) {
      const oidc = { [member]: ['https://a', uri] }
      expect(await manage.refusal('PATCH', '/controller-settings/global', { oidc })).toEqual({
        status: 400,
        code: 'COULD_NOT_VALIDATE',
        field: `oidc.${member}`,
        ...(uri && { value: uri }),
      })
    }
  })

  it('that an earlier version stored stay readable, and other members can change', async () => {
    const oidc = { redirectUris: ['https://a/#b'], postLogoutUris: [] }
    await world.system.write(async (tx) => {
      const previous = await get(tx, controllerSettings, 'global')
      await world.controller.entities.update(tx, controllerSettings, previous, { oidc })
    })
    const read = await manage.get('/controller-settings/global')
    await manage.change('PATCH', '/controller-settings/global', { oidc: { postLogoutUris: ['https://b'] } })

    expect(read.oidc).toEqual(oidc)
    expect((await manage.get('/controller-settings/global')).oidc).toEqual({ ...oidc, postLogoutUris: ['https://b'] })
  })

  it('may send clients to applications of any other scheme, and hold wildcards, which are compared as they are', async () => {
    const redirectUris = [
      'com.example.app:/callback',
      'http://127.0.0.1:*/auth/callback',
      'http://[::1]:8080/auth/callback?x=y',
      'https://*.example.org/cb',
      'openziti://auth/callback',
    ]
    await manage.change('PATCH', '/controller-settings/global', { oidc: { redirectUris } })

    expect((await manage.get('/controller-settings/global')).oidc.redirectUris).toEqual(redirectUris)
  })

  it('can be sent back as they were read', async () => {
    const global = await manage.get('/controller-settings/global')

    await manage.change('PUT', '/controller-settings/global/effective', global)

    const { oidc, controllerId } = await manage.get('/controller-settings/global')
    expect({ oidc, controllerId }).toEqual({ oidc: global.oidc, controllerId: null })
  })

  it('can be taken away from a controller, and not from all of them', async () => {
    await manage.change('DELETE', `/controller-settings/${own}/effective`)

    expect(await manage.refusal('GET', `/controller-settings/${own}`)).toMatchObject({ status: 404 })
    expect(await manage.refusal('DELETE', '/controller-settings/global')).toMatchObject({
      status: 409,
      code: 'CAN_NOT_DELETE_REFERENCED_ENTITY',
    })
    expect((await effective(own)).instance).toEqual({})
    expect(await manage.refusal('GET', '/controller-settings/nope/effective')).toMatchObject({ status: 404 })
  })
})
