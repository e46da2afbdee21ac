// Every operation, called by an identity with each kind of permission: it is open to those that the table names, and to no others.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { findOperationExtent } from '../../server/api/admission.ts'
import type { AnyOperation } from '../../server/api/operation.ts'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { Rights } from '../../src/definitions/permissions/rights.ts'
import { permissionWords } from '../../src/definitions/permissions/words.ts'
import type { Api } from '../../src/settings/listener-settings.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()

// The oracle of this test: written from the permissions of OpenZiti 2.0 and from the documents, not from the operations.

/** By collection: the entity whose words its operations need, each by its action. */
const COLLECTIONS: Readonly<Record<string, string>> = {
  'auth-policies': 'auth-policy',
  cas: 'ca',
  'config-types': 'config-type',
  configs: 'config',
  'edge-router-policies': 'edge-router-policy',
  'edge-routers': 'router',
  enrollments: 'enrollment',
  'external-jwt-signers': 'external-jwt-signer',
  identities: 'identity',
  'posture-checks': 'posture-check',
  routers: 'router',
  'service-edge-router-policies': 'service-edge-router-policy',
  'service-policies': 'service-policy',
  services: 'service',
  terminators: 'terminator',
  'transit-routers': 'router',
  authenticators: 'authenticator',
  'controller-settings': 'controller-setting',
  tokens: 'token',
  webhooks: 'webhook',
  'api-sessions': 'ops',
  circuits: 'ops',
  links: 'ops',
}

const ACTIONS: Readonly<Record<string, string>> = {
  GET: 'read',
  POST: 'create',
  PUT: 'update',
  PATCH: 'update',
  DELETE: 'delete',
}

/** Operations that need something else than their collection and method say. */
const EXCEPTIONS: Readonly<Record<string, string>> = {
  // The records that are listed decide, not the one that they are listed for.
  'GET /config-types/{}/configs': 'config.read',
  'GET /configs/{}/services': 'service.read',
  'GET /edge-router-policies/{}/edge-routers': 'router.read',
  'GET /edge-router-policies/{}/identities': 'identity.read',
  'GET /edge-routers/{}/edge-router-policies': 'edge-router-policy.read',
  'GET /edge-routers/{}/identities': 'identity.read',
  'GET /edge-routers/{}/service-edge-router-policies': 'service-edge-router-policy.read',
  'GET /edge-routers/{}/services': 'service.read',
  'GET /identities/{}/authenticators': 'authenticator.read',
  'GET /identities/{}/edge-router-policies': 'edge-router-policy.read',
  'GET /identities/{}/edge-routers': 'router.read',
  'GET /identities/{}/enrollments': 'enrollment.read',
  'GET /identities/{}/service-policies': 'service-policy.read',
  'GET /identities/{}/services': 'service.read',
  'GET /service-edge-router-policies/{}/edge-routers': 'router.read',
  'GET /service-edge-router-policies/{}/services': 'service.read',
  'GET /service-policies/{}/identities': 'identity.read',
  'GET /service-policies/{}/posture-checks': 'posture-check.read',
  'GET /service-policies/{}/services': 'service.read',
  'GET /services/{}/configs': 'config.read',
  'GET /services/{}/edge-routers': 'router.read',
  'GET /services/{}/identities': 'identity.read',
  'GET /services/{}/service-edge-router-policies': 'service-edge-router-policy.read',
  'GET /services/{}/service-policies': 'service-policy.read',
  'GET /services/{}/terminators': 'terminator.read',
  'GET /routers/{}/terminators': 'terminator.read',
  'GET /edge-router-role-attributes': 'router.read',
  'GET /identity-role-attributes': 'identity.read',
  'GET /posture-check-role-attributes': 'posture-check.read',
  'GET /service-role-attributes': 'service.read',
  'GET /identity-types': 'identity.read',
  'GET /identity-types/{}': 'identity.read',
  'GET /posture-check-types': 'posture-check.read',
  'GET /posture-check-types/{}': 'posture-check.read',
  'GET /identities/{}/policy-advice/{}': 'service.read',
  'POST /identities/{}/disable': 'identity.support',
  'POST /identities/{}/enable': 'identity.support',
  'DELETE /identities/{}/mfa': 'identity.support',
  'POST /identities/{}/service-configs': 'identity.update',
  'DELETE /identities/{}/service-configs': 'identity.update',
  'POST /enrollments/{}/refresh': 'enrollment.update',
  'POST /edge-routers/{}/re-enroll': 'router.update',
  'POST /cas/{}/verify': 'ca.update',
  'POST /authenticators/{}/re-enroll': 'authenticator.update',
  'POST /authenticators/{}/request-extend': 'authenticator.update',
  'POST /identities/{}/request-extend': 'authenticator.update',
  'POST /revocations': 'administrator',
  'GET /revocations': 'audit',
  'GET /revocations/{}': 'audit',
  'GET /summary': 'administrator',
  'POST /database': 'administrator',
  'POST /database/check-data-integrity': 'administrator',
  'GET /database/data-integrity-results': 'administrator',
  'POST /database/fix-data-integrity': 'administrator',
  'POST /database/snapshot': 'administrator',
  'GET /cluster/list-members': 'audit',
  'POST /cluster/add-member': 'administrator',
  'POST /cluster/remove-member': 'administrator',
  'POST /cluster/transfer-leadership': 'administrator',
  'POST /inspections': 'administrator',
  'GET /ws-api': 'reader',
  // This controller's own.
  'GET /controller/audit': 'reader',
  'GET /controller/audit/{}': 'reader',
  'GET /controller/audit/verify': 'audit',
  'GET /controller/events': 'reader',
  'POST /controller/webhooks/{}/test': 'webhook.update',
  'GET /controller/permission/explain/{}/{}': 'identity.read',
  'GET /controller/policy/advise/{}/{}': 'policy.read',
  'GET /controller/policy/who/{}': 'policy.read',
  'GET /controller/policy/what/{}': 'policy.read',
  'POST /controller/policy/impact': 'policy.read',
  'GET /controller/certificates': 'audit',
  'GET /controller/circuits': 'ops.read of links',
  'GET /controller/log/level': 'audit',
  'GET /controller/metrics': 'audit',
  'PUT /controller/log/level': 'administrator',
  'GET /controller/doctor': 'audit',
  'POST /controller/doctor/fix': 'administrator',
  'GET /controller/network': 'audit',
  'POST /controller/network/plan': 'audit',
  'POST /controller/network/apply': 'administrator',
  'POST /controller/network/apply/stop': 'administrator',
  'GET /controller/nodes': 'audit',
  'POST /controller/nodes/{}/drain': 'administrator',
  'POST /controller/nodes/{}/resume': 'administrator',
  'DELETE /controller/nodes/{}': 'administrator',
  'GET /controller/pki/status': 'audit',
  'GET /controller/pki/missing-root': 'audit',
  'POST /controller/pki/renew': 'administrator',
  'POST /controller/pki/rotate-intermediate': 'administrator',
  'POST /controller/pki/rotate-root': 'administrator',
  'POST /controller/pki/finish-root-rotation': 'administrator',
  'POST /controller/external-jwt-signers/{}/test': 'external-jwt-signer.read',
  'GET /controller/posture/identities/{}': 'identity.read',
  'GET /controller/posture/checks/{}/{}': 'identity.read',
}

/** Returns what an operation of the management or fabric API needs. */
function findNeed(method: string, path: string): string | undefined {
  const exception = EXCEPTIONS[`${method} ${path}`]
  const [, first = '', second = ''] = path.split('/')
  const collection = first === 'controller' ? second : first
  const entity = COLLECTIONS[collection]
  const need = exception ?? (entity && `${entity}.${ACTIONS[method]}`)
  // Operators of routers have these besides.
  return (collection === 'circuits' || collection === 'links') && need?.startsWith('ops.')
    ? `${need.split(' ')[0]} of links`
    : need
}

const ENTITIES = [
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
  ...['posture-check', 'router', 'service', 'service-edge-router-policy', 'service-policy', 'terminator'],
]
const FOUR = ['read', 'create', 'update', 'delete']

const withImplied = (needs: readonly string[]) => [
  ...needs,
  ...(needs.includes('identity.update') ? ['identity.support'] : []),
  ...needs.filter((need) => need.startsWith('ops.')).map((need) => `${need} of links`),
]

/** Word → the needs that it meets. */
const WORDS: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(
    ENTITIES.flatMap((entity) => [
      [entity, withImplied(FOUR.map((action) => `${entity}.${action}`))],
      ...FOUR.map((action) => [`${entity}.${action}`, withImplied([`${entity}.${action}`])]),
    ]),
  ),
  controllers: [],
  'controllers.read': [],
  ops: withImplied(['ops.read', 'ops.update', 'ops.delete']),
  'ops.read': withImplied(['ops.read']),
  'ops.update': withImplied(['ops.update']),
  'ops.delete': withImplied(['ops.delete']),
  token: ['token.read', 'token.create', 'token.delete'],
  'token.read': ['token.read'],
  'token.create': ['token.create'],
  'token.delete': ['token.delete'],
  'help-desk': [
    ...['identity.read', 'identity.support', 'enrollment.read', 'enrollment.update'],
    ...['policy.read', 'service.read'],
  ],
  'router-operator': [
    ...FOUR.map((action) => `router.${action}`),
    ...['ops.read', 'ops.update', 'ops.delete'].map((need) => `${need} of links`),
    'terminator.read',
  ],
}

const isRead = (need: string) => need === 'audit' || need.endsWith('.read') || need.endsWith('.read of links')

function meets(word: string, need: string): boolean {
  if (word === 'admin_readonly') return isRead(need) || need === 'reader'
  const needs = WORDS[word] ?? []
  return needs.includes(need) || (need === 'reader' && (needs.some(isRead) || word.startsWith('controllers')))
}

interface Route {
  readonly method: string
  readonly path: string
  readonly key: string
  readonly operation: AnyOperation
  readonly api: Api | undefined
  readonly need: string | undefined
}

type Row = { apis: string[]; who: string; operations: string[] }
const table = JSON.parse(readFileSync(join(import.meta.dirname, '../fixtures/permissions.json'), 'utf8')) as Row[]
const forAdministrators = new Set(
  table.flatMap(({ apis, who, operations: named }) =>
    who.startsWith('administrator') ? apis.flatMap((api) => named.map((each) => `${api} ${each}`)) : [],
  ),
)

const routes: readonly Route[] = operations.flatMap((each) =>
  listRoutes(each).flatMap(({ api, path }) => {
    const plain = each.path.replace(/:\w+/g, '{}')
    const key = `${api} ${each.method} ${plain}`
    if (!forAdministrators.has(key)) return []
    const need = api === 'client' ? 'administrator' : findNeed(each.method, plain)
    return { method: each.method, path: path.replace(/:\w+/g, 'no-such-record'), key, operation: each, api, need }
  }),
)

const DENIED = ['SESSION_MISSING', 'SESSION_UNKNOWN', 'SECOND_FACTOR_REQUIRED', 'PERMISSION_DENIED']

type Credential = { readonly token: string } | { readonly headers: Readonly<Record<string, string>> }

/** The keys of the operations that are open to a session, or to the token of a machine. */
async function listOpen(credential: Credential): Promise<string[]> {
  const open: string[] = []
  for (const { method, path, key } of routes) {
    const { status, body } = await world.send({ method, path, ...credential })
    expect(status, key).toBeLessThan(500)
    if (!DENIED.includes(body?.error?.cause?.code)) open.push(key)
  }
  return open
}

/** The keys of the operations that the controller would open to a holder of a word. */
function listDecided(word: string): string[] {
  const rights = Rights.fromWords([word])
  return routes.flatMap(({ key, operation, api }) =>
    findOperationExtent(operation, api === 'client' ? Rights.none : rights) === undefined ? [] : key,
  )
}

const expectOpen = (isMet: (need: string) => boolean) =>
  routes.filter(({ need }) => need !== undefined && isMet(need)).map(({ key }) => key)

describe('the table of this test', () => {
  it('says what every operation for administrators needs', () => {
    expect(routes.filter(({ need }) => need === undefined).map(({ key }) => key)).toEqual([])
    expect(routes.length).toBeGreaterThan(150)
  })
})

describe('an identity with a permission', () => {
  it.each([...Object.keys(WORDS), 'admin_readonly'])('%s holds what the table names, and nothing else', (word) => {
    expect(listDecided(word)).toEqual(expectOpen((need) => meets(word, need)))
  })

  it.each(['admin_readonly', 'help-desk', 'service'])(
    '%s may call what the table names, and nothing else',
    async (word) => {
      const { token } = await world.signIn({ permissions: [word] })

      expect(await listOpen({ token })).toEqual(expectOpen((need) => meets(word, need)))
    },
    // Every operation runs once, some of which read much.
    120_000,
  )

  it('holds one of the words that the table names', () => {
    expect([...permissionWords]).toEqual([...Object.keys(WORDS), 'admin_readonly'].sort())
  })
})

describe('an owner of records', () => {
  const OWNED = ['identities', 'services', 'posture-checks', 'edge-routers']

  it.each(['identity', 'service', 'posture-check', 'router'].map((entity, at) => [entity, OWNED[at] ?? '']))(
    'of the entity %s may call what names or lists its records by themselves',
    async (entity, collection) => {
      const { token } = await world.signIn({ permissions: [`${entity}:#web`] })
      const listing = new RegExp(`^management GET /[a-z-]+/\\{\\}/${collection}$`)
      const own = new RegExp(`^management [A-Z]+ /${collection}(/\\{\\}(/[a-z-]+)?)?$`)

      const open = await listOpen({ token })

      const met = new Set([...FOUR.map((action) => `${entity}.${action}`), 'identity.support'])
      const permitted = routes.filter(({ key, need = '' }) => {
        if (need === 'reader') return true
        const lists = listing.test(key) && need === `${entity}.read`
        return lists || (own.test(key) && met.has(need) && (entity === 'identity' || need !== 'identity.support'))
      })
      expect(open).toEqual(permitted.map(({ key }) => key))
    },
  )
})

describe('an identity without permissions', () => {
  it('may call nothing that is for administrators', async () => {
    const { token } = await world.signIn({ permissions: [] })

    expect(await listOpen({ token })).toEqual([])
  })
})

describe('a caller by the token of a machine', () => {
  const expiresAt = () => new Date(world.clock.now() + 3_600_000).toISOString()

  /** A token of an identity. */
  async function tokenOf(identityId: string, permissions: readonly string[]): Promise<Credential> {
    const body = { name: `token of ${identityId}`, identityId, permissions, expiresAt: expiresAt() }
    const path = '/edge/management/v1/controller/tokens'
    const { body: created } = await world.send({ method: 'POST', path, body, token: await world.admin() })
    return { headers: { authorization: `Bearer ${created.data.token}` } }
  }

  it('may call what its permission names, although its identity administers', async () => {
    const { id } = await world.signIn({ isAdmin: true })

    expect(await listOpen(await tokenOf(id, ['help-desk']))).toEqual(expectOpen((need) => meets('help-desk', need)))
  }, 120_000)

  it('may call what its identity still holds, although its permission names more', async () => {
    const { id } = await world.signIn({ permissions: ['service', 'config'] })
    const credential = await tokenOf(id, ['service', 'config'])
    const [method, path, token] = ['PATCH', `/edge/management/v1/identities/${id}`, await world.admin()]
    await world.send({ method, path, token, body: { permissions: ['service.read', 'ca'] } })

    expect(await listOpen(credential)).toEqual(expectOpen((need) => meets('service.read', need)))
  }, 120_000)

  it('may call nothing that is for sessions, but reads of its own identity and of what all may read', async () => {
    const { id } = await world.signIn({ isAdmin: true })
    const credential = await tokenOf(id, [])
    const ofSessions = operations.flatMap((each) => {
      if ('public' in each.access || each.access.grantedTo === 'administrator') return []
      return listRoutes(each).map(({ api, path }) => ({ key: `${api} ${each.method} ${each.path}`, each, path }))
    })
    const open: string[] = []
    for (const { key, each, path } of ofSessions) {
      const request = { method: each.method, path: path.replace(/:\w+/g, 'no-such-record') }
      const { body } = await world.send({ ...request, ...credential })
      if (!DENIED.includes(body?.error?.cause?.code)) open.push(key)
    }

    expect(open.sort()).toEqual(
      [
        ...['client', 'management'].flatMap((api) => [
          `${api} GET /controllers`,
          `${api} GET /current-identity`,
          `${api} GET /sessions`,
          `${api} GET /sessions/:id`,
        ]),
        'management GET /sessions/:id/route-path',
        'client GET /current-identity/edge-routers',
        'client GET /services',
        'client GET /services/:id',
        'client GET /services/:id/edge-routers',
        'client GET /services/:id/terminators',
      ].sort(),
    )
  })
})
