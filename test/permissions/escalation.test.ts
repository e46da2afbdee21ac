// Holders of permissions that try to gain a right, directly or through another identity.
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { services } from '../../src/definitions/resources/services.ts'
import { sessions, sessionTypes } from '../../src/definitions/resources/sessions.ts'
import { newId, newToken } from '../../src/foundation/ids.ts'
import { newEntity } from '../../src/storage/entities/entities.ts'
import { COMMON_NAME_CLAIM, makeAuthority } from '../world/authorities.ts'
import { MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { PASSWORD, People, type Person } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let sequence = 0

/** Everything that words can grant, without being an administrator. */
const ALL_ENTITIES = [
  ...[
    'auth-policy',
    'ca',
    'config',
    'config-type',
    'edge-router-policy',
    'enrollment',
    'external-jwt-signer',
    'identity',
  ],
  ...['ops', 'posture-check', 'router', 'service', 'service-edge-router-policy', 'service-policy', 'terminator'],
]

beforeAll(async () => {
  people = await People.in(world)
})

interface Holder {
  readonly id: string
  ask(method: string, path: string, body?: unknown): Promise<TestResponse>
}

async function holderOf(...permissions: string[]): Promise<Holder> {
  const { id, token } = await world.signIn({ name: `holder ${++sequence}`, permissions })
  return {
    id,
    ask: (method, path, body) =>
      world.send({ method, path: MANAGEMENT + path, token, ...(body === undefined ? {} : { body }) }),
  }
}

const reason = ({ status, body }: TestResponse) => [status, body.error?.cause?.code]
const DENIED = [401, 'PERMISSION_DENIED']
const newName = () => `identity of a holder ${++sequence}`

describe('a holder of every permission who does not administer', () => {
  let holder: Holder

  beforeEach(async () => {
    holder = await holderOf(...ALL_ENTITIES)
  })

  it('neither creates an administrator nor promotes one', async () => {
    const created = await holder.ask('POST', '/identities', { name: newName(), type: 'Device', isAdmin: true })
    const other = await people.identity()
    const promoted = await holder.ask('PATCH', `/identities/${other}`, { isAdmin: true })
    const himself = await holder.ask('PATCH', `/identities/${holder.id}`, { isAdmin: true })

    expect([created, promoted, himself].map(reason)).toEqual([DENIED, DENIED, DENIED])
    expect((await people.manage('GET', `/identities/${other}`)).isAdmin).toBe(false)
  })

  it('grants what it holds, and nothing that it lacks', async () => {
    const own = { name: newName(), type: 'Device', isAdmin: false, permissions: ['service.read', 'service:#web'] }
    const more = { ...own, name: newName(), permissions: ['service.read', 'admin_readonly'] }

    expect((await holder.ask('POST', '/identities', own)).status).toBe(201)
    expect(reason(await holder.ask('POST', '/identities', more))).toEqual(DENIED)
    expect(reason(await holder.ask('PATCH', `/identities/${holder.id}`, { permissions: ['admin_readonly'] }))).toEqual(
      DENIED,
    )
  })

  it.each(['who may be given an external id later', 'who has an external id'])(
    'neither makes an auth policy of administrators milder nor an authority whose claim could name one %s',
    async (who) => {
      const { id: administrator } = await world.signIn({ name: newName(), isAdmin: true })
      const externalId = who === 'who has an external id' ? `admin ${++sequence}` : null
      await people.manage('PATCH', `/identities/${administrator}`, { externalId })
      const { pem: certPem } = await makeAuthority()
      const authority = {
        name: newName(),
        certPem,
        isAuthEnabled: true,
        isAutoCaEnrollmentEnabled: false,
        isOttCaEnrollmentEnabled: false,
        identityRoles: [],
      }

      const policy = await holder.ask('PATCH', '/auth-policies/default', { secondary: { requireTotp: false } })
      const claiming = await holder.ask('POST', '/cas', { ...authority, externalIdClaim: COMMON_NAME_CLAIM })
      const plain = await holder.ask('POST', '/cas', authority)
      const widened = await holder.ask('PATCH', `/cas/${plain.body.data?.id}`, { externalIdClaim: COMMON_NAME_CLAIM })

      await people.manage('PATCH', `/identities/${administrator}`, { externalId: null })
      expect([policy, claiming, widened].map(reason)).toEqual([DENIED, DENIED, DENIED])
      expect(plain.status).toBe(201)
    },
  )

  it.each([false, true])(
    'creates no signer that the auth policy of an administrator accepts, by external ids: %s',
    async (useExternalId) => {
      const { pem: certPem } = await makeAuthority()
      const signer = {
        name: newName(),
        issuer: `https://issuer-${++sequence}.example`,
        audience: 'network',
        enabled: true,
        kid: 'key',
        certPem,
        useExternalId,
      }

      expect(reason(await holder.ask('POST', '/external-jwt-signers', signer))).toEqual(DENIED)
    },
  )

  it('creates, changes and assigns auth policies that no holder of more signs in by', async () => {
    const policy = await holder.ask('POST', '/auth-policies', { name: newName(), ...permissivePolicy })
    const id = policy.body.data.id
    const identity = { name: newName(), type: 'Device', isAdmin: false, authPolicyId: id }

    expect(policy.status).toBe(201)
    expect((await holder.ask('POST', '/identities', identity)).status).toBe(201)
    expect((await holder.ask('PATCH', `/auth-policies/${id}`, { secondary: { requireTotp: true } })).status).toBe(200)
  })

  it('deletes a service that an administrator hosts and has a config for', async () => {
    const configTypeId = await people.manage('POST', '/config-types', { name: newName(), schema: {} })
    const config = await people.manage('POST', '/configs', { name: newName(), configTypeId: configTypeId.id, data: {} })
    const service = await people.manage('POST', '/services', { name: newName(), encryptionRequired: true })
    const { id } = await world.signIn({ name: newName(), isAdmin: true })
    await people.manage('PATCH', `/identities/${id}`, { serviceHostingCosts: { [service.id]: 3 } })
    await people.manage('POST', `/identities/${id}/service-configs`, [{ serviceId: service.id, configId: config.id }])

    expect((await holder.ask('DELETE', `/services/${service.id}`)).status).toBe(200)
  })
})

describe.each([
  ['an administrator', { isAdmin: true }],
  ['an auditor', { permissions: ['admin_readonly'] }],
  ['the owner of services', { permissions: ['service:#web'] }],
])('%s, to a holder who lacks its right', (_name, values) => {
  let victim: Person
  let holder: Holder
  let enrollmentId: string

  beforeEach(async () => {
    victim = await people.person(values)
    holder = await holderOf('identity', 'enrollment', 'ops', 'auth-policy', 'help-desk')
    const expiresAt = new Date(world.clock.now() + 3_600_000).toISOString()
    enrollmentId = (await people.manage('POST', '/enrollments', { identityId: victim.id, method: 'ott', expiresAt })).id
  })

  const later = () => new Date(world.clock.now() + 7_200_000).toISOString()

  it.each<[string, (id: string) => [method: string, path: string, body?: unknown]]>([
    ['renamed', (id) => ['PATCH', `/identities/${id}`, { name: newName() }]],
    ['replaced', (id) => ['PUT', `/identities/${id}`, { name: newName(), type: 'Device', isAdmin: false }]],
    ['stripped of its permissions', (id) => ['PATCH', `/identities/${id}`, { isAdmin: false, permissions: [] }]],
    ['given roles', (id) => ['PATCH', `/identities/${id}`, { roleAttributes: ['web'] }]],
    ['given an external id', (id) => ['PATCH', `/identities/${id}`, { externalId: newName() }]],
    ['disabled', (id) => ['POST', `/identities/${id}/disable`, { durationMinutes: 5 }]],
    ['enabled', (id) => ['POST', `/identities/${id}/enable`]],
    ['deleted', (id) => ['DELETE', `/identities/${id}`]],
    [
      'given an enrollment',
      (id) => ['POST', '/enrollments', { identityId: id, method: 'updb', username: newName(), expiresAt: later() }],
    ],
  ])('is not %s', async (_what, request) => {
    const response = await holder.ask(...request(victim.id))

    expect(reason(response)).toEqual(DENIED)
    expect((await people.signIn(victim)).status).toBe(200)
  })

  it('keeps its second factor', async () => {
    const token = await people.sessionOf(victim)
    await world.send({ method: 'POST', path: `${MANAGEMENT}/current-identity/mfa`, token })

    expect(reason(await holder.ask('DELETE', `/identities/${victim.id}/mfa`))).toEqual(DENIED)
  })

  it('keeps its API session', async () => {
    const token = await people.sessionOf(victim)
    const sessionId = world.controller.auth.apiSessions.use(token, world.clock.now())?.id ?? ''

    expect(reason(await holder.ask('DELETE', `/api-sessions/${sessionId}`))).toEqual(DENIED)
    expect((await world.send({ method: 'GET', path: `${MANAGEMENT}/current-identity`, token })).status).toBe(200)
  })

  it('keeps its sessions for services, however many it has, with the API session that they are of', async () => {
    const { entities } = world.controller
    const token = await people.sessionOf(victim)
    const apiSessionId = world.controller.auth.apiSessions.use(token, world.clock.now())?.id ?? ''
    const own = { apiSessionId, identityId: victim.id, hasSignedToken: false }
    const identityRoles = [`@${victim.id}`]
    for (const type of sessionTypes)
      await people.manage('POST', '/service-policies', {
        ...{ name: newName(), type, semantic: 'AnyOf', identityRoles, serviceRoles: ['#all'] },
      })
    const serviceIds = Array.from({ length: 201 }, () => newId())
    await world.system.write(async (tx) => {
      for (const id of serviceIds)
        await entities.insert(tx, services, newEntity(tx, services, { id, name: id, encryptionRequired: false }))
    })
    await world.system.write(async (tx) => {
      for (const serviceId of serviceIds)
        for (const type of sessionTypes) {
          const session = newEntity(tx, sessions, { ...own, serviceId, type, opaqueToken: newToken() })
          await entities.insert(tx, sessions, session, { audit: 'none' })
        }
    })
    const listSessions = () =>
      world.system.db.selectFrom('sessions').select('id').where('apiSessionId', '=', apiSessionId).execute()

    const refused = await holder.ask('DELETE', `/api-sessions/${apiSessionId}`)
    const left = (await listSessions()).length
    const ended = await people.ask('DELETE', `/api-sessions/${apiSessionId}`)

    expect([reason(refused), left]).toEqual([DENIED, 402])
    expect([ended.status, await listSessions()]).toEqual([200, []])
  })

  it('shows no enrollment, by which the holder could sign in in its place', async () => {
    const record = await holder.ask('GET', `/identities/${victim.id}`)
    const listed = await holder.ask('GET', `/identities?filter=id="${victim.id}"`)
    const enrollments = await holder.ask('GET', '/enrollments?limit=500')
    const ofIdentity = await holder.ask('GET', `/identities/${victim.id}/enrollments`)
    const streamed = await holder.ask('GET', '/identities?limit=-1')

    expect(record.body.data.enrollment).toEqual({})
    expect(listed.body.data[0].enrollment).toEqual({})
    expect(ofIdentity.body.data).toEqual([])
    expect(enrollments.body.data.map(({ id }: { id: string }) => id)).not.toContain(enrollmentId)
    const inStream = streamed.body.data.find(({ id }: { id: string }) => id === victim.id)
    expect(inStream.enrollment).toEqual({})
    for (const [method, path, body] of [
      ['GET', `/enrollments/${enrollmentId}`],
      ['DELETE', `/enrollments/${enrollmentId}`],
      ['POST', `/enrollments/${enrollmentId}/refresh`, { expiresAt: later() }],
    ] as const)
      expect((await holder.ask(method, path, body)).status).toBe(404)
    expect((await people.manage('GET', `/identities/${victim.id}`)).enrollment.ott.id).toBe(enrollmentId)
  })

  it('is still managed by an administrator', async () => {
    await people.manage('PATCH', `/identities/${victim.id}`, { roleAttributes: ['staff'] })
    expect((await people.manage('GET', `/enrollments/${enrollmentId}`)).id).toBe(enrollmentId)
  })
})

describe('a help desk', () => {
  it('unlocks an identity without rights: a new enrollment token, no second factor, enabled', async () => {
    const holder = await holderOf('help-desk')
    const id = await people.identity({ enrollment: { ott: true } })
    const { enrollment } = (await holder.ask('GET', `/identities/${id}`)).body.data
    const expiresAt = new Date(world.clock.now() + 3_600_000).toISOString()

    const statuses = [
      await holder.ask('POST', `/enrollments/${enrollment.ott.id}/refresh`, { expiresAt }),
      await holder.ask('POST', `/identities/${id}/disable`, { durationMinutes: 0 }),
      await holder.ask('POST', `/identities/${id}/enable`),
      await holder.ask('DELETE', `/identities/${id}/mfa`),
    ].map(({ status }) => status)

    expect(statuses).toEqual([200, 200, 200, 200])
    expect(reason(await holder.ask('PATCH', `/identities/${id}`, { name: newName() }))).toEqual(DENIED)
  })
})

describe('a holder', () => {
  it('changes its own password, although it may change no identity', async () => {
    const person = await people.person({ permissions: ['service.read'] })
    const token = await people.sessionOf(person)
    const path = `${MANAGEMENT}/current-identity/authenticators/${person.authenticatorId}`
    const body = { username: person.username, currentPassword: PASSWORD, password: 'another battery staple' }

    expect((await world.send({ method: 'PATCH', path, token, body })).status).toBe(200)
  })

  it('loses what is taken from it before its next request', async () => {
    const { id, token } = await world.signIn({ name: newName(), permissions: ['service'] })
    const list = () => world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })
    const before = await list()
    await people.manage('PATCH', `/identities/${id}`, { permissions: ['config'] })

    expect([before.status, reason(await list())]).toEqual([200, DENIED])
  })

  it('has its rights after the controller starts again', async () => {
    const { token } = await world.signIn({ name: newName(), permissions: ['service'] })
    await world.stop()
    await world.reopen()
    people = await People.in(world, newName())

    expect((await world.send({ method: 'GET', path: `${MANAGEMENT}/services`, token })).status).toBe(200)
    expect(reason(await world.send({ method: 'GET', path: `${MANAGEMENT}/configs`, token }))).toEqual(DENIED)
  })
})
