// Random changes of every kind, made, undone, refused and at once: whatever caches hold by then, every list and every record reads as
// in a controller that has just started on the same files.
import { cpSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { random } from '../world/random.ts'
import { useController } from '../world/use-controller.ts'

const ROUNDS = 5
const CHANGES = 15
const NAMES = ['a', 'b', 'c', 'd', 'e']
const ATTRIBUTES = ['x', 'y', 'z']
const KINDS = [
  'identities',
  'services',
  'service-policies',
  'config-types',
  'configs',
  'edge-routers',
  'edge-router-policies',
  'service-edge-router-policies',
  'posture-checks',
  'auth-policies',
  'terminators',
  'authenticators',
  'enrollments',
] as const
type Kind = (typeof KINDS)[number]
type Body = Record<string, unknown>

const dice = random(11)
const clients: { id: string; token: string }[] = []
const world = useController()
let admin: { id: string; token: string }

beforeAll(async () => {
  admin = await world.signIn({ isAdmin: true, name: 'operator' })
})

const manage = (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  world.send({ method, path: MANAGEMENT + path, token: admin.token, headers, ...(body === undefined ? {} : { body }) })

async function listIds(kind: Kind): Promise<string[]> {
  const { body } = await manage('GET', `/${kind}?limit=500&filter=true`)
  return (body.data as { id: string }[]).map(({ id }) => id).filter((id) => id !== 'default' && id !== admin.id)
}
/** The id of a record; seldom, or if there is none, one that names no record. */
async function pickId(kind: Kind): Promise<string> {
  const ids = await listIds(kind)
  return ids.length === 0 || dice.oneIn(20) ? 'unknown' : dice.pick(ids)
}

const attributes = () => dice.some(ATTRIBUTES)
const tags = () => (dice.oneIn(2) ? { tags: { site: dice.pick(NAMES) } } : {})
async function selectors(kind: Kind) {
  const roles = attributes().map((attribute) => `#${attribute}`)
  return dice.oneIn(2) ? [...roles, `@${await pickId(kind)}`] : dice.oneIn(4) ? ['#all'] : roles
}

/** Members of a record, most of which are valid. */
const makeBodies: Readonly<Record<Kind, () => Promise<Body>>> = {
  identities: async () => ({
    type: 'Device',
    isAdmin: dice.oneIn(8),
    roleAttributes: attributes(),
    externalId: dice.pick([...NAMES, null]),
    ...(dice.oneIn(3) ? { authPolicyId: await pickId('auth-policies') } : {}),
    ...(dice.oneIn(3) ? { serviceHostingCosts: { [await pickId('services')]: 1 } } : {}),
    ...(dice.oneIn(3) ? { enrollment: dice.pick([{ ott: true }, { updb: dice.pick(NAMES) }]) } : {}),
  }),
  services: async () => ({
    encryptionRequired: true,
    roleAttributes: attributes(),
    ...(dice.oneIn(2) ? { configs: [await pickId('configs')] } : {}),
  }),
  'service-policies': async () => ({
    type: dice.pick(['Dial', 'Bind']),
    semantic: dice.pick(['AnyOf', 'AllOf']),
    identityRoles: await selectors('identities'),
    serviceRoles: await selectors('services'),
    ...(dice.oneIn(4) ? { postureCheckRoles: await selectors('posture-checks') } : {}),
  }),
  'config-types': async () => ({ schema: {} }),
  configs: async () => ({ configTypeId: await pickId('config-types'), data: { port: dice.below(9) } }),
  'edge-routers': async () => ({
    roleAttributes: attributes(),
    isTunnelerEnabled: dice.oneIn(2),
    noTraversal: dice.oneIn(2),
  }),
  'edge-router-policies': async () => ({
    semantic: 'AnyOf',
    identityRoles: await selectors('identities'),
    edgeRouterRoles: await selectors('edge-routers'),
  }),
  'service-edge-router-policies': async () => ({
    semantic: 'AnyOf',
    serviceRoles: await selectors('services'),
    edgeRouterRoles: await selectors('edge-routers'),
  }),
  'posture-checks': async () => ({ typeId: 'DOMAIN', domains: [dice.pick(NAMES)], roleAttributes: attributes() }),
  'auth-policies': async () => ({
    primary: {
      cert: { allowed: dice.oneIn(2), allowExpiredCerts: false },
      updb: {
        allowed: true,
        minPasswordLength: 5,
        maxAttempts: 0,
        lockoutDurationMinutes: 0,
        requireMixedCase: false,
        requireNumberChar: false,
        requireSpecialChar: false,
      },
      extJwt: { allowed: false, allowedSigners: [] },
    },
    secondary: { requireTotp: dice.oneIn(3) },
  }),
  terminators: async () => ({
    service: await pickId('services'),
    router: await pickId('edge-routers'),
    binding: 'transport',
    address: `tcp:localhost:${dice.below(3)}`,
    cost: dice.below(9),
  }),
  authenticators: async () => ({
    method: 'updb',
    identityId: await pickId('identities'),
    username: dice.pick(NAMES),
    password: 'a password',
  }),
  enrollments: async () => ({
    method: 'ott',
    identityId: await pickId('identities'),
    expiresAt: new Date(world.clock.now() + 3_600_000).toISOString(),
  }),
}
const isNamed = (kind: Kind) => !['terminators', 'authenticators', 'enrollments'].includes(kind)

const changes: readonly (() => Promise<{ status: number }>)[] = [
  create,
  create,
  create,
  patch,
  patch,
  remove,
  applyFile,
  override,
  act,
]

const dryRun = () => (dice.oneIn(4) ? { 'controller-dry-run': 'true' } : undefined)
const makeName = (kind: Kind) => (isNamed(kind) ? { name: dice.pick(NAMES), ...tags() } : tags())

async function create() {
  const kind = dice.pick(KINDS)
  return manage('POST', `/${kind}`, { ...makeName(kind), ...(await makeBodies[kind]()) }, dryRun())
}
async function patch() {
  const kind = dice.pick(KINDS)
  const members = Object.entries({ ...makeName(kind), ...(await makeBodies[kind]()) })
  return manage('PATCH', `/${kind}/${await pickId(kind)}`, Object.fromEntries(dice.some(members)), dryRun())
}
async function remove() {
  const kind = dice.pick(KINDS)
  return manage('DELETE', `/${kind}/${await pickId(kind)}`, undefined, dryRun())
}
/** Several records in one transaction, the last of which may be refused. */
async function applyFile() {
  const sections = [
    { resource: 'services', records: [{ name: dice.pick(NAMES), roleAttributes: attributes() }] },
    { resource: 'identities', records: [{ name: dice.pick(NAMES), type: 'Device', roleAttributes: attributes() }] },
    {
      resource: 'service-policies',
      records: [
        { name: dice.pick(NAMES), type: 'Dial', identityRoles: ['#x'], serviceRoles: [`@${dice.pick(NAMES)}`] },
      ],
    },
  ]
  return manage('POST', `/controller/network/${dice.pick(['plan', 'apply', 'apply'])}`, dice.some(sections))
}
async function override() {
  const pairs = [{ serviceId: await pickId('services'), configId: await pickId('configs') }]
  const path = `/identities/${dice.pick(clients).id}/service-configs`
  return manage(dice.pick(['POST', 'POST', 'DELETE']), path, pairs)
}
/** The acts of clients, and of administrators of identities, besides changes of records. */
async function act() {
  const { id, token } = dice.pick(clients)
  const ask = (method: string, path: string, body?: unknown) =>
    world.send({ method, path: CLIENT + path, token, ...(body === undefined ? {} : { body }) })
  switch (dice.below(7)) {
    case 0:
      return ask('POST', '/posture-response', { id: 'any', typeId: 'DOMAIN', domain: dice.pick(NAMES) })
    case 1:
      return ask('POST', '/sessions', { serviceId: await pickId('services'), type: dice.pick(['Dial', 'Bind']) })
    case 2:
      return ask('POST', '/current-identity/mfa')
    case 3:
      return world.send({
        method: 'POST',
        path: `${CLIENT}/authenticate?method=password`,
        body: { username: dice.pick(NAMES), password: dice.pick(['a password', 'another']) },
      })
    case 4:
      return enrollByPassword()
    case 5:
      return manage(
        'POST',
        `/identities/${dice.pick([id, await pickId('identities')])}/${dice.pick(['disable', 'enable'])}`,
        { durationMinutes: 5 },
      )
    default:
      return manage('DELETE', `/identities/${id}/mfa`)
  }
}
async function enrollByPassword() {
  const { body } = await manage('GET', '/enrollments?limit=500')
  const outstanding = (body.data as { method: string; token: string }[]).filter(({ method }) => method === 'updb')
  const token = outstanding[0]?.token ?? 'unknown'
  const credentials = { username: dice.pick(NAMES), password: 'a password' }
  return world.send({ method: 'POST', path: `${CLIENT}/enroll/updb?token=${token}`, body: credentials })
}

const QUERIES = ['', '?limit=2', '?limit=2&offset=1&sort=createdAt desc', '?filter=not (id = "a") limit 1']
const QUERIES_BY_NAME = [
  '?filter=name="a"',
  '?filter=name="b"',
  '?filter=name contains "b" sort by name limit 1',
  '?roleFilter=#x&limit=2',
]
const reads = operations.filter(({ method, returns }) => method === 'GET' && returns.kind === 'list')
const lists = reads.filter(({ path }) => !path.includes(':')).flatMap(listRoutes)
const sublists = reads.flatMap(({ path }) =>
  KINDS.filter((kind) => path.startsWith(`/${kind}/:id/`)).map((kind) => ({ kind, path })),
)

interface Reader {
  readonly token: string
  readonly paths: readonly string[]
}

/** Each list and each record, as an administrator and as the clients read them. */
async function listReaders(): Promise<Reader[]> {
  const paths = (base: string) => lists.map(({ path }) => path).filter((path) => path.startsWith(base))
  const idsByKind = new Map(await Promise.all(KINDS.map(async (kind) => [kind, await listIds(kind)] as const)))
  const byAdministrator = [
    ...paths(MANAGEMENT).flatMap((path) => QUERIES.map((query) => path + query)),
    ...KINDS.filter(isNamed).flatMap((kind) => QUERIES_BY_NAME.map((query) => `${MANAGEMENT}/${kind}${query}`)),
    ...[...idsByKind].flatMap(([kind, ids]) => ids.map((id) => `${MANAGEMENT}/${kind}/${id}`)),
    ...sublists.flatMap(({ kind, path }) =>
      dice.some(idsByKind.get(kind) ?? [], 2).map((id) => MANAGEMENT + path.replace(':id', id)),
    ),
  ]
  const advice = dice
    .some(idsByKind.get('identities') ?? [], 3)
    .flatMap((id) => dice.some(idsByKind.get('services') ?? [], 2).map((service) => `${id}/policy-advice/${service}`))
  const services = ['?limit=1&configTypes=all', '?configTypes=all&filter=true'].map(
    (query) => `${CLIENT}/services${query}`,
  )
  const byClients = clients.map(({ token }) => ({ token, paths: [...paths(CLIENT), ...services] }))
  return [
    { token: admin.token, paths: [...byAdministrator, ...advice.map((path) => `${MANAGEMENT}/identities/${path}`)] },
    ...byClients,
  ]
}

async function read(from: TestController, readers: readonly Reader[]): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const [at, { token, paths }] of readers.entries()) {
    for (const path of paths) {
      const { status, text } = await from.send({ method: 'GET', path: encodeURI(path).replaceAll('#', '%23'), token })
      const comparable = text.replace(/"(?:jwt|requestId|lastActivityAt|cachedLastActivityAt)":"[^"]*"/g, '')
      texts.set(`${at} ${path}`, `${status} ${comparable}`)
    }
  }
  return texts
}

/** Tells a controller of the machines of all clients, because it holds that in memory only. */
async function reportDomain(to: TestController, domain: string): Promise<void> {
  const body = { id: 'any', typeId: 'DOMAIN', domain }
  for (const { token } of clients) await to.send({ method: 'POST', path: `${CLIENT}/posture-response`, token, body })
}

/** A controller that has just started on a copy of the files. */
async function openAnew(): Promise<TestController> {
  const directory = join(mkdtempSync(join(tmpdir(), 'controller-test-')), 'data')
  cpSync(world.directory, directory, { recursive: true })
  return testController({ directory, clock: world.clock })
}

it('every read is that of a fresh process', async () => {
  const statuses = new Map<number, number>()
  for (let round = 0; round < ROUNDS; round++) {
    // Some of those of earlier rounds are deleted or disabled by now.
    clients.splice(0, 1)
    while (clients.length < 3)
      clients.push(await world.signIn({ name: `client ${round} ${clients.length}`, roleAttributes: ['x'] }))
    for (let at = 0; at < CHANGES; at++) {
      const started = [0, 1, 2].map(() => dice.pick(changes)())
      // Records that are read while others write are cached, too.
      const reading = Promise.all(KINDS.map((kind) => manage('GET', `/${kind}?limit=${1 + dice.below(4)}`)))
      for (const { status } of await Promise.all(started)) statuses.set(status, (statuses.get(status) ?? 0) + 1)
      await reading
      world.clock.advance(1_000)
    }
    const domain = dice.pick(NAMES)
    await reportDomain(world, domain)
    await world.controller.auth.apiSessions.flush(world.system)
    const readers = await listReaders()
    const fresh = await openAnew()
    await reportDomain(fresh, domain)
    const [cached, expected] = [await read(world, readers), await read(fresh, readers)]
    await fresh.close()
    for (const [path, text] of expected) expect(cached.get(path), `round ${round}: ${path}`).toBe(text)
  }
  expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([])
  expect(statuses.get(201)).toBeGreaterThan(20)
}, 120_000)
