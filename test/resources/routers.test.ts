// Routers: one space of names for all of them, and how they enroll.
import { decodeJwt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { edgeRouters } from '../../src/definitions/resources/edge-routers.ts'
import { get } from '../../src/storage/entities/entities.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management

beforeAll(async () => {
  manage = await managementOf(world)
})

let sequence = 0
const newName = () => `router ${++sequence}`
const makeEdgeRouter = (body: object = {}) => manage.make('edge-routers', { name: newName(), ...body })

/** Stores what the enrollment of an edge router, which comes later, leaves in its record. */
async function verify(id: string) {
  const verified = { isVerified: true, fingerprint: 'ab'.repeat(20), certPem: 'certificate' }
  await world.system.write(async (tx) =>
    world.controller.entities.update(tx, edgeRouters, await get(tx, edgeRouters, id), verified),
  )
}

describe('an edge router', () => {
  it('is shown as not connected, and with a JWT to enroll by', async () => {
    const id = await makeEdgeRouter({ cost: 7, roleAttributes: ['b', 'a'], appData: { site: 'north', gone: null } })

    const router = await manage.get(`/edge-routers/${id}`)

    expect(router).toMatchObject({
      cost: 7,
      noTraversal: false,
      disabled: false,
      isTunnelerEnabled: false,
      roleAttributes: ['a', 'b'],
      appData: { site: 'north' },
      isVerified: false,
      fingerprint: null,
      certPem: null,
      unverifiedFingerprint: null,
      unverifiedCertPem: null,
      isOnline: false,
      hostname: '',
      supportedProtocols: {},
      syncStatus: 'SYNC_UNKNOWN',
      versionInfo: { arch: '', buildDate: '', os: '', revision: '', version: '' },
      enrollmentCreatedAt: new Date(world.clock.now()).toISOString(),
      enrollmentExpiresAt: new Date(world.clock.now() + 180 * 60_000).toISOString(),
    })
    expect(decodeJwt(router.enrollmentJwt)).toMatchObject({ em: 'erott', sub: id, jti: router.enrollmentToken })
    expect(Object.keys(router._links)).toEqual(['self', 'edge-router-policies'])
  })

  it.each(['edge-routers', 'routers'])('of %s enrolls until the time that its creation names', async (plural) => {
    const expiresAt = new Date(world.clock.now() + 24 * 60 * 60_000).toISOString()

    const id = await manage.make(plural, { name: newName(), enrollment: { expiresAt } })

    const router = await manage.get(`/${plural}/${id}`)
    expect(router.enrollmentExpiresAt).toBe(expiresAt)
    expect(decodeJwt(router.enrollmentJwt).exp).toBe(Date.parse(expiresAt) / 1000)
  })

  it('says nothing of enrolling once it has enrolled', async () => {
    const id = await makeEdgeRouter()

    await verify(id)

    const router = await manage.get(`/edge-routers/${id}`)
    expect(router).toMatchObject({ isVerified: true, fingerprint: 'ab'.repeat(20) })
    expect(router).not.toHaveProperty('enrollmentJwt')
  })

  it('loses its credential by enrolling again, and nothing else', async () => {
    const id = await makeEdgeRouter({ cost: 9, tags: { a: 'b' } })
    const { enrollmentToken } = await manage.get(`/edge-routers/${id}`)
    await verify(id)

    await manage.change('POST', `/edge-routers/${id}/re-enroll`)

    const router = await manage.get(`/edge-routers/${id}`)
    expect(router).toMatchObject({ isVerified: false, fingerprint: null, certPem: null, cost: 9, tags: { a: 'b' } })
    expect(router.enrollmentToken).not.toBe(enrollmentToken)
    expect(decodeJwt(router.enrollmentJwt).jti).toBe(router.enrollmentToken)
  })

  it('has one enrollment, however often it begins anew', async () => {
    const id = await makeEdgeRouter()

    await manage.change('POST', `/edge-routers/${id}/re-enroll`)
    await manage.change('POST', `/edge-routers/${id}/re-enroll`)

    const { db } = world.controller.store
    const outstanding = await db.selectFrom('enrollments').select('method').where('edgeRouterId', '=', id).execute()
    expect(outstanding).toEqual([{ method: 'erott' }])
  })

  it('cannot enroll again where there is none', async () => {
    const refused = await manage.refusal('POST', '/edge-routers/nope/re-enroll')

    expect(refused).toMatchObject({ status: 404, code: 'NOT_FOUND' })
  })

  it.each([
    [{ cost: 65536 }, 'cost', 'COULD_NOT_VALIDATE'],
    [{ cost: -1 }, 'cost', 'COULD_NOT_VALIDATE'],
    [{ cost: 1.5 }, 'cost', 'COULD_NOT_PARSE_BODY'],
    [{ name: '' }, 'name', 'COULD_NOT_VALIDATE'],
    [{ roleAttributes: ['#north'] }, 'roleAttributes', 'COULD_NOT_VALIDATE'],
    [{ disabled: 'yes' }, 'disabled', 'COULD_NOT_PARSE_BODY'],
  ])('refuses %j', async (wrong, field, code) => {
    const refused = await manage.refusal('POST', '/edge-routers', { name: newName(), ...wrong })

    expect(refused).toMatchObject({ status: 400, code, field })
  })

  it('takes null for what has a default', async () => {
    const id = await makeEdgeRouter({ cost: null, disabled: null, noTraversal: null, roleAttributes: null })

    expect(await manage.get(`/edge-routers/${id}`)).toMatchObject({ cost: 0, disabled: false, roleAttributes: [] })
  })

  it('takes its enrollment along when it is deleted', async () => {
    const id = await makeEdgeRouter()

    await manage.change('DELETE', `/edge-routers/${id}`)

    const { db } = world.controller.store
    expect(await db.selectFrom('enrollments').select('id').where('edgeRouterId', '=', id).execute()).toEqual([])
    expect(await manage.refusal('GET', `/edge-routers/${id}`)).toMatchObject({ status: 404 })
  })

  it('leaves the policies that name it', async () => {
    const id = await makeEdgeRouter()
    const roles = { semantic: 'AnyOf', edgeRouterRoles: [`@${id}`, '#north'] }
    const ofIdentities = await manage.make('edge-router-policies', { name: newName(), ...roles })
    const ofServices = await manage.make('service-edge-router-policies', { name: newName(), ...roles })

    await manage.change('DELETE', `/edge-routers/${id}`)

    const keptValues = { edgeRouterRoles: ['#north'], edgeRouterRolesDisplay: [{ name: '#north', role: '#north' }] }
    expect(await manage.get(`/edge-router-policies/${ofIdentities}`)).toMatchObject(keptValues)
    expect(await manage.get(`/service-edge-router-policies/${ofServices}`)).toMatchObject(keptValues)
  })
})

describe.each(['routers', 'transit-routers'])('%s', (plural) => {
  const make = (body: object = {}) => manage.make(plural, { name: newName(), ...body })

  it('are made with all that they are described by, and enroll by a JWT of their own', async () => {
    const id = await make({ cost: 3, noTraversal: true, disabled: true, tags: { a: 1 } })

    const router = await manage.get(`/${plural}/${id}`)

    expect(router).toMatchObject({
      _links: { self: { href: `./transit-routers/${id}` } },
      cost: 3,
      noTraversal: true,
      disabled: true,
      tags: { a: 1 },
      isVerified: false,
      isOnline: false,
      fingerprint: null,
    })
    expect(decodeJwt(router.enrollmentJwt)).toMatchObject({ em: 'trott', sub: id })
    expect(router).not.toHaveProperty('roleAttributes')
    expect(router).not.toHaveProperty('isEdge')
  })

  it('are the same under both names', async () => {
    const id = await make()

    const [here, there] = [await manage.get(`/routers/${id}`), await manage.get(`/transit-routers/${id}`)]

    expect(here).toEqual(there)
  })

  it('change in all that they are described by', async () => {
    const id = await make({ cost: 3 })

    await manage.change('PATCH', `/${plural}/${id}`, { cost: 4, disabled: true })
    await manage.change('PATCH', `/${plural}/${id}`, { noTraversal: true })

    expect(await manage.get(`/${plural}/${id}`)).toMatchObject({ cost: 4, disabled: true, noTraversal: true })
  })

  it('are no edge routers', async () => {
    const id = await make()

    expect(await manage.refusal('GET', `/edge-routers/${id}`)).toMatchObject({ status: 404 })
    expect(await manage.refusal('DELETE', `/edge-routers/${id}`)).toMatchObject({ status: 404 })
    const body = { name: newName(), semantic: 'AnyOf', edgeRouterRoles: [`@${id}`] }
    expect(await manage.refusal('POST', '/edge-router-policies', body)).toMatchObject({
      status: 400,
      field: 'edgeRouterRoles',
    })
  })

  it('count edge routers among them, by what they have in common', async () => {
    const name = newName()
    const id = await makeEdgeRouter({ name, isTunnelerEnabled: true, roleAttributes: ['north'] })
    const renamed = newName()

    expect((await manage.get(`/${plural}/${id}`)).name).toBe(name)
    await manage.change('PUT', `/${plural}/${id}`, { name: renamed, cost: 5 })

    expect(await manage.get(`/edge-routers/${id}`)).toMatchObject({
      name: renamed,
      cost: 5,
      isTunnelerEnabled: true,
      roleAttributes: ['north'],
    })
    expect((await manage.get(`/identities/${id}`)).name).toBe(renamed)
    expect((await manage.get(`/${plural}/${id}`)).name).toBe(renamed)

    await manage.change('DELETE', `/${plural}/${id}`)

    expect(await manage.refusal('GET', `/edge-routers/${id}`)).toMatchObject({ status: 404 })
    expect(await manage.refusal('GET', `/identities/${id}`)).toMatchObject({ status: 404 })
  })
})

describe('the names of routers', () => {
  it('are taken by routers of any kind', async () => {
    const name = newName()
    await manage.make('edge-routers', { name })

    for (const plural of ['edge-routers', 'routers', 'transit-routers']) {
      const refused = await manage.refusal('POST', `/${plural}`, { name })

      expect(refused).toEqual({ status: 400, code: 'COULD_NOT_VALIDATE', field: 'name', value: name })
    }
  })

  it('cannot be changed to one that is taken, or to none', async () => {
    const takenName = newName()
    await manage.make('routers', { name: takenName })
    const id = await makeEdgeRouter()

    expect(await manage.refusal('PATCH', `/edge-routers/${id}`, { name: takenName })).toMatchObject({ field: 'name' })
    expect(await manage.refusal('PUT', `/edge-routers/${id}`, { name: '' })).toMatchObject({ field: 'name' })
  })
})

describe('lists of edge routers', () => {
  it('hold edge routers only, and can be narrowed by roles and fields', async () => {
    const edge = await makeEdgeRouter({ name: 'listed edge', roleAttributes: ['listed'], cost: 11 })
    await manage.make('routers', { name: 'listed transit', cost: 11 })
    const filter = (text: string) => encodeURIComponent(text)

    expect(await manage.names(`/edge-routers?filter=${filter('name contains "listed"')}`)).toEqual(['listed edge'])
    expect(await manage.names(`/edge-routers?roleFilter=${filter('#listed')}`)).toEqual(['listed edge'])
    expect(await manage.names(`/edge-routers?filter=${filter('anyOf(roleAttributes) = "listed"')}`)).toEqual([
      'listed edge',
    ])
    expect(await manage.names(`/routers?filter=${filter('cost = 11 sort by name')}`)).toEqual([
      'listed edge',
      'listed transit',
    ])
    expect(
      (await manage.call('GET', '/edge-routers?limit=-1')).body.data.map(({ id }: { id: string }) => id),
    ).toContain(edge)
  })
})
