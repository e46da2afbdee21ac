// Holders of permissions, and callers by tokens, who try to learn of what they may not read, or to find a way in by it.
import { beforeAll, describe, expect, it } from 'vitest'
import { permissivePolicy } from '../../src/definitions/resources/auth-policies.ts'
import { COMMON_NAME_CLAIM, makeAuthority } from '../world/authorities.ts'
import { CLIENT, MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let sequence = 0

beforeAll(async () => {
  people = await People.in(world)
})

const newName = () => `of a disclosure ${++sequence}`
const later = () => new Date(world.clock.now() + 3_600_000).toISOString()
const reason = ({ status, body }: TestResponse) => [status, body.error?.cause?.code]
const DENIED = [401, 'PERMISSION_DENIED']

type Ask = (method: string, path: string, body?: unknown) => Promise<TestResponse>

function askWith(credential: object): Ask {
  return (method, path, body) =>
    world.send({
      method,
      path: path.startsWith('/edge/') ? path : MANAGEMENT + path,
      ...credential,
      ...(body === undefined ? {} : { body }),
    })
}

async function holderOf(...permissions: string[]): Promise<Ask> {
  const { token } = await world.signIn({ name: newName(), permissions })
  return askWith({ token })
}

async function tokenOf(identityId: string, permissions: readonly string[]): Promise<Ask> {
  const body = { name: newName(), identityId, permissions, expiresAt: later() }
  const { token } = await people.manage('POST', '/controller/tokens', body)
  return askWith({ headers: { authorization: `Bearer ${token}` } })
}

describe('a record that others need', () => {
  it('is not deleted, and its deletion names them to those who may read them', async () => {
    const name = newName()
    const { id } = await people.manage('POST', '/config-types', { name: newName(), schema: {} })
    const config = await people.manage('POST', '/configs', { name, configTypeId: id, data: {} })

    const some = await (await holderOf('config-type'))('DELETE', `/config-types/${id}`)
    const owner = await (await holderOf('config-type', 'config.read:team=web'))('DELETE', `/config-types/${id}`)
    const reader = await (await holderOf('config-type', 'config.read'))('DELETE', `/config-types/${id}`)

    expect([some.status, owner.status, reader.status]).toEqual([409, 409, 409])
    for (const { text } of [some, owner]) {
      expect(text).not.toContain(name)
      expect(text).not.toContain(config.id)
      expect(text).toContain('in use by configs')
    }
    expect(reader.text).toContain(name)
  })
})

// Routers receive the tokens of all API sessions, those of administrators included.
describe('the enrollment of a router', () => {
  const newRouter = async (values: object = {}) =>
    (await people.manage('POST', '/edge-routers', { name: newName(), isTunnelerEnabled: false, ...values }))
      .id as string

  it.each(['admin_readonly', 'help-desk', 'router.delete'])(
    'is not shown to a holder of %s, who could enroll in its place',
    async (word) => {
      const id = await newRouter()
      const ask = await holderOf(word, 'router.read', 'enrollment')
      const { enrollmentToken: secret } = await people.manage('GET', `/edge-routers/${id}`)
      const enrollment = (await people.manage('GET', `/enrollments?filter=edgeRouter="${id}"`))[0]

      for (const path of [`/edge-routers/${id}`, '/edge-routers', `/routers/${id}`, '/routers', '/transit-routers']) {
        const { status, text } = await ask('GET', `${path}${path.endsWith(id) ? '' : '?limit=500'}`)
        expect([status, text.includes(secret), text.includes('"enrollmentJwt":"')], path).toEqual([200, false, false])
      }
      expect((await ask('GET', '/enrollments?limit=500')).text).not.toContain(secret)
      expect((await ask('GET', `/enrollments/${enrollment.id}`)).status).toBe(404)
      expect((await ask('POST', `/enrollments/${enrollment.id}/refresh`, { expiresAt: later() })).status).toBe(404)
      expect((await ask('DELETE', `/enrollments/${enrollment.id}`)).status).toBe(404)
    },
  )

  it('is shown to those who may enroll it anew, and to its owner', async () => {
    const id = await newRouter({ roleAttributes: ['web'] })
    const other = await newRouter({ roleAttributes: ['mail'] })
    const operator = await holderOf('router-operator', 'enrollment')
    const owner = await holderOf('router:#web')
    const mixed = await holderOf('router.read', 'router.update:#web')
    const read = async (ask: Ask, path: string) => (await ask('GET', path)).body.data.enrollmentToken

    const secret = await read(people.ask.bind(people), `/edge-routers/${id}`)
    expect(secret).toEqual(expect.any(String))
    expect(await read(operator, `/edge-routers/${id}`)).toBe(secret)
    expect((await operator('GET', '/enrollments?limit=500')).text).toContain(secret)
    expect(await read(owner, `/edge-routers/${id}`)).toBe(secret)
    expect(await read(mixed, `/edge-routers/${other}`)).toBeNull()
  })

  it('leaves the list of routers that clients read as it is', async () => {
    await newRouter()
    const { token } = await world.signIn({ name: newName() })
    const { body } = await askWith({ token })('GET', `${CLIENT}/current-identity/edge-routers`)

    expect(body.error).toBeUndefined()
    for (const router of body.data) expect(Object.keys(router)).not.toContain('enrollmentToken')
  })
})

describe('a caller by a token with all rights of its identity', () => {
  const WORDS = ['identity', 'auth-policy', 'ca', 'external-jwt-signer']

  it('lets its identity sign in by no other way', async () => {
    const externalId = newName()
    const authPolicyId = await people.policy({})
    const id = await people.identity({ permissions: WORDS, externalId, authPolicyId })
    const ask = await tokenOf(id, WORDS)
    const { pem: certPem } = await makeAuthority()
    const authority = {
      ...{ name: newName(), certPem, isAuthEnabled: true, isAutoCaEnrollmentEnabled: false },
      ...{ isOttCaEnrollmentEnabled: false, identityRoles: [], externalIdClaim: COMMON_NAME_CLAIM },
    }
    const signer = {
      ...{ name: newName(), issuer: `https://issuer-${++sequence}.example`, audience: 'network', enabled: true },
      ...{ kid: 'key', certPem: (await makeAuthority()).pem, useExternalId: true },
    }
    const policy = { name: newName(), ...permissivePolicy }

    for (const [method, path, body] of [
      ['PATCH', `/identities/${id}`, { externalId: newName() }],
      ['PATCH', `/identities/${id}`, { authPolicyId: 'default' }],
      ['PATCH', `/auth-policies/${authPolicyId}`, { secondary: { requireTotp: false } }],
      ['PUT', `/auth-policies/${authPolicyId}`, policy],
      ['POST', '/cas', authority],
      ['POST', '/external-jwt-signers', signer],
    ] as const)
      expect(reason(await ask(method, path, body)), `${method} ${path}`).toEqual(DENIED)
    expect((await ask('POST', '/auth-policies', policy)).status).toBe(201)
    expect((await ask('PATCH', `/identities/${id}`, { roleAttributes: ['web'] })).status).toBe(200)
  })

  it('does not, also if that administers, move its own identity to another auth policy', async () => {
    const { id } = await world.signIn({ name: newName(), isAdmin: true })
    const body = { name: newName(), identityId: id, isAdmin: true, expiresAt: later() }
    const { token } = await people.manage('POST', '/controller/tokens', body)
    const ask = askWith({ headers: { authorization: `Bearer ${token}` } })

    expect(reason(await ask('PATCH', `/identities/${id}`, { externalId: newName() }))).toEqual(DENIED)
    expect((await ask('PATCH', `/identities/${id}`, { tags: { site: 'north' } })).status).toBe(200)
  })
})
