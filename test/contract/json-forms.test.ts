// Empty sets and absent values, as OpenZiti's clients and clients of the documents receive them.
import { beforeAll, describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT } from '../world/controller.ts'
import { type Management, managementOf } from '../world/management.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let manage: Management
let token = ''
let sequence = 0

beforeAll(async () => {
  manage = await managementOf(world)
  token = await world.admin()
})

const newName = () => `without sets ${++sequence}`
const read = async (path: string, headers: Record<string, string>) =>
  (await world.send({ method: 'GET', path: `${MANAGEMENT}${path}`, headers })).body.data
const readNative = (path: string) => read(path, { 'net-session': token })
const readCompatible = (path: string) => read(path, { 'zt-session': token })
type Read = typeof readNative
const absent = Symbol('absent')

const policy = { semantic: 'AnyOf' }

/** By resource: a record with nothing but what must be said, and how OpenZiti shows what it does not have. */
const records: Record<string, { body: object; empty: Readonly<Record<string, unknown>>; native?: object }> = {
  identities: { body: { type: 'Device', isAdmin: false }, empty: { roleAttributes: null } },
  services: { body: { encryptionRequired: true }, empty: { roleAttributes: null, configs: null } },
  'edge-routers': {
    body: {},
    empty: { roleAttributes: null, fingerprint: absent },
    native: { roleAttributes: [], fingerprint: null },
  },
  routers: { body: {}, empty: { fingerprint: null }, native: { fingerprint: null } },
  'service-policies': {
    body: { ...policy, type: 'Dial' },
    empty: { identityRoles: null, serviceRoles: null, postureCheckRoles: null, identityRolesDisplay: [] },
  },
  'edge-router-policies': { body: policy, empty: { identityRoles: null, edgeRouterRoles: null } },
  'service-edge-router-policies': { body: policy, empty: { serviceRoles: null, edgeRouterRoles: null } },
  'external-jwt-signers': {
    body: {
      issuer: 'https://issuer.example',
      audience: 'a',
      enabled: true,
      jwksEndpoint: 'https://issuer.example/keys',
    },
    empty: { scopes: null },
  },
  'posture-checks': { body: { typeId: 'DOMAIN', domains: ['a.example'] }, empty: { roleAttributes: [] } },
  'auth-policies': {
    body: {
      primary: {
        cert: { allowed: true, allowExpiredCerts: false },
        extJwt: { allowed: true, allowedSigners: [] },
        updb: {
          allowed: true,
          lockoutDurationMinutes: 0,
          maxAttempts: 5,
          minPasswordLength: 8,
          requireMixedCase: false,
          requireNumberChar: false,
          requireSpecialChar: false,
        },
      },
      secondary: { requireTotp: false, requireExtJwtSigner: null },
    },
    empty: { 'primary.extJwt.allowedSigners': [], 'secondary.requireExtJwtSigner': absent },
    native: { 'primary.extJwt.allowedSigners': [] },
  },
}

/** The member at a path, or that it is absent. */
function memberAt(record: Record<string, unknown>, path: string): unknown {
  let value: unknown = record
  for (const name of path.split('.')) {
    if (!(name in (value as object))) return absent
    value = (value as Record<string, unknown>)[name]
  }
  return value
}

const pick = (record: Record<string, unknown>, paths: readonly string[]) =>
  Object.fromEntries(paths.map((path) => [path, memberAt(record, path)]))

describe.each(Object.entries(records))('an empty set of %s', (plural, { body, empty, native }) => {
  const documented = native ?? Object.fromEntries(Object.keys(empty).map((name) => [name, []]))
  const filter = (id: string) => encodeURIComponent(`id = "${id}"`)
  let id = ''

  beforeAll(async () => {
    id = await manage.make(plural, { name: newName(), ...body })
  })

  it.each<[string, (readAs: Read) => Promise<Record<string, unknown>>]>([
    ['by itself', (readAs) => readAs(`/${plural}/${id}`)],
    ['in a page', async (readAs) => (await readAs(`/${plural}?filter=${filter(id)}`))[0]],
    ['in a list without a limit', async (readAs) => (await readAs(`/${plural}?limit=-1&filter=${filter(id)}`))[0]],
  ])('is shown %s as the documents say, and as OpenZiti shows it', async (_how, show) => {
    expect(pick(await show(readNative), Object.keys(documented))).toEqual(documented)
    expect(pick(await show(readCompatible), Object.keys(empty))).toEqual(empty)
  })
})

describe('what only resembles an empty set', () => {
  const tricky = ',"roleAttributes":[],"configs":[] – 🚀'

  it('stays as it is, also after characters of several bytes, and in a list that is longer than one write', async () => {
    const tags = { '"roleAttributes":[]': '"configs":[]', ü: 'x'.repeat(4_000) }
    const prefix = newName()
    const bare = await manage.make('services', { name: `${prefix} ${tricky}`, encryptionRequired: true, tags })
    const rest = { encryptionRequired: true, tags, roleAttributes: ['ö', '[]'] }
    for (let at = 0; at < 20; at += 1) await manage.make('services', { name: `${prefix} ${tricky} ${at}`, ...rest })
    const list = `/services?limit=100&filter=${encodeURIComponent(`name contains "${prefix}" sort by name`)}`

    const [documented, compatible] = [await readNative(list), await readCompatible(list)]

    expect(documented).toHaveLength(21)
    expect(documented[0]).toMatchObject({
      id: bare,
      name: `${prefix} ${tricky}`,
      tags,
      roleAttributes: [],
      configs: [],
    })
    const withNulls = documented.map((service: { roleAttributes: string[] }) => ({
      ...service,
      configs: null,
      roleAttributes: service.roleAttributes.length > 0 ? service.roleAttributes : null,
    }))
    expect(compatible).toEqual(withNulls)
    expect(await readCompatible(`/services/${bare}`)).toEqual({ ...withNulls[0], config: expect.anything() })
  })
})

describe('what a client of the other dialect is shown', () => {
  const client = (path: string, headers: Record<string, string>) =>
    world.send({ method: 'GET', path: `${CLIENT}${path}`, headers })

  it('of the versions of an operating system, and of the hashes of a process, is null without any', async () => {
    const system = await manage.make('posture-checks', {
      name: newName(),
      typeId: 'OS',
      operatingSystems: [{ type: 'Linux' }, { type: 'Windows', versions: ['>=10.0.0'] }],
    })
    const process = { osType: 'Linux', path: '/usr/bin/"versions":[]' }
    const program = await manage.make('posture-checks', { name: newName(), typeId: 'PROCESS', process })
    const several = await manage.make('posture-checks', {
      name: newName(),
      typeId: 'PROCESS_MULTI',
      semantic: 'AllOf',
      processes: [process],
    })

    const systems = { type: 'Windows', versions: ['>=10.0.0'] }
    expect((await readNative(`/posture-checks/${system}`)).operatingSystems).toEqual([
      { type: 'Linux', versions: [] },
      systems,
    ])
    expect((await readCompatible(`/posture-checks/${system}`)).operatingSystems).toEqual([
      { type: 'Linux', versions: null },
      systems,
    ])
    expect((await readNative(`/posture-checks/${program}`)).process).toEqual({ ...process, hashes: [] })
    expect((await readCompatible(`/posture-checks/${program}`)).process).toEqual({ ...process, hashes: null })
    expect((await readCompatible(`/posture-checks/${several}`)).processes).toEqual([
      { ...process, hashes: [], signerFingerprints: [] },
    ])
  })

  it('of the token of another session is text, and of the username of an enrollment without one nothing', async () => {
    const identity = await manage.make('identities', {
      name: newName(),
      type: 'Device',
      isAdmin: false,
      enrollment: { ott: true, updb: newName() },
    })
    await world.signInAgain(identity)
    const path = `/api-sessions?filter=${encodeURIComponent(`identity = "${identity}"`)}`

    const tokens = [(await readNative(path))[0].token, (await readCompatible(path))[0].token]
    const enrollments = await readCompatible(`/identities/${identity}/enrollments`)

    expect(tokens).toEqual([null, '00000000-0000-0000-0000-000000000000'])
    const usernames = Object.fromEntries(
      enrollments.map((enrollment: Record<string, unknown>) => [enrollment.method, memberAt(enrollment, 'username')]),
    )
    expect(usernames).toEqual({ ott: absent, updb: expect.any(String) })
  })

  it('of the routers of a service and of a session is null without any, and so are those of policy advice', async () => {
    const { id: identity, token: own } = await world.signIn({ name: newName(), isAdmin: true })
    const service = await manage.make('services', { name: newName(), encryptionRequired: true })
    await manage.make('service-policies', {
      name: newName(),
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`@${identity}`],
      serviceRoles: [`@${service}`],
    })
    const headers = { 'zt-session': own }

    const routers = await client(`/services/${service}/edge-routers`, headers)
    const nativeRouters = await client(`/services/${service}/edge-routers`, { 'net-session': own })
    const advice = await readCompatible(`/identities/${identity}/policy-advice/${service}`)
    const nativeAdvice = await readNative(`/identities/${identity}/policy-advice/${service}`)

    expect([routers.body.data.edgeRouters, advice.commonRouters]).toEqual([null, null])
    expect([nativeRouters.body.data.edgeRouters, nativeAdvice.commonRouters]).toEqual([[], []])
  })

  it('of services is in its own form, whichever client asked for the same list before', async () => {
    const { id: identity, token: own } = await world.signIn({ name: newName() })
    const service = await manage.make('services', { name: newName(), encryptionRequired: true })
    await manage.make('service-policies', {
      name: newName(),
      type: 'Dial',
      semantic: 'AnyOf',
      identityRoles: [`@${identity}`],
      serviceRoles: [`@${service}`],
    })

    const lists = []
    for (const header of ['net-session', 'zt-session', 'net-session', 'zt-session'])
      lists.push((await client('/services', { [header]: own })).body.data[0].roleAttributes)

    expect(lists).toEqual([[], null, [], null])
  })

  it('of a check of the data that found nothing is null', async () => {
    const path = '/database/data-integrity-results'

    expect([(await readNative(path)).results, (await readCompatible(path)).results]).toEqual([[], null])
  })
})
