// Every route, called without a session, with partial, full and administrators' sessions, and with those of deleted identities:
// each is open to just the callers that the table of permissions names.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import type { Api } from '../../src/settings/listener-settings.ts'
import { STILL_TO_COME } from '../contract/contract-differences.ts'
import { MANAGEMENT, type TestResponse } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let people: People
let totpPolicy: string

beforeAll(async () => {
  people = await People.in(world)
  totpPolicy = await people.policy({ requireTotp: true })
})

type Who = 'everyone' | 'partial session' | 'full session' | 'administrator' | 'administrator, 403 for others'

interface PermissionRow {
  /** `root`: operations of no API, which are found at the root of the server. */
  readonly apis: readonly (Api | 'root')[]
  readonly who: Who
  /** The rows of the public documents that say so. */
  readonly because: string
  /** `METHOD /path` below the base path, each parameter as `{}`. */
  readonly operations: readonly string[]
}

// Written from the public documents, not from the operations: the oracle of this test.
const table = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/permissions.json'), 'utf8'),
) as readonly PermissionRow[]

const permissions = table.flatMap(({ apis, who, operations: named }) =>
  apis.flatMap((api) => named.map((operation) => ({ key: `${api} ${operation}`, who }))),
)
const permissionOf = new Map(permissions.map(({ key, who }) => [key, who]))

interface Route {
  readonly method: string
  readonly path: string
  readonly key: string
}

const routes: readonly Route[] = operations.flatMap((each) =>
  listRoutes(each).map(({ path, api = each.apis[0] }) => ({
    method: each.method,
    path,
    key: api ? `${api} ${each.method} ${each.path.replace(/:\w+/g, '{}')}` : `root ${each.method} ${path}`,
  })),
)

const casesOf = (...who: readonly Who[]) =>
  routes
    .filter(({ key }) => who.includes(permissionOf.get(key) as Who))
    .map((route) => [`${route.method} ${route.path}`, route] as const)

const forPartial = casesOf('partial session')
const forFull = casesOf('full session')
const forAdministrators = casesOf('administrator', 'administrator, 403 for others')
const openCases = casesOf('everyone')
const cases = [...forPartial, ...forFull, ...forAdministrators]

function ask({ method, path }: { method: string; path: string }, token?: string): Promise<TestResponse> {
  return world.send({ method, path: path.replace(/:\w+/g, 'no-such-record'), token })
}

function causeCode({ body }: TestResponse): string | undefined {
  return body?.error?.cause?.code
}

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const REFUSALS = ['SESSION_MISSING', 'SESSION_UNKNOWN', 'SECOND_FACTOR_REQUIRED', 'PERMISSION_DENIED']

function expectOpen(response: TestResponse): void {
  expect(REFUSALS).not.toContain(causeCode(response))
  expect(response.status).toBeLessThan(500)
}

describe('the table of permissions', () => {
  it('names every operation that is served, once', () => {
    const served = [...new Set(routes.map(({ key }) => key))]
    const named = permissions.map(({ key }) => key)

    expect(served.filter((key) => !permissionOf.has(key))).toEqual([])
    expect(named.filter((key, at) => named.indexOf(key) !== at)).toEqual([])
  })

  it('names nothing else but documented operations that are still to come', () => {
    const toCome = Object.entries(STILL_TO_COME).flatMap(([api, lines]) => lines.map((line) => `${api} ${line}`))
    const served = routes.map(({ key }) => key)

    expect(permissions.flatMap(({ key }) => (served.includes(key) ? [] : [key])).sort()).toEqual(toCome.sort())
  })
})

describe('for everyone', () => {
  it.each(openCases)('%s is open, whatever session is sent along', async (_name, route) => {
    const partial = await world.signIn()
    await people.manage('PATCH', `/identities/${partial.id}`, { authPolicyId: totpPolicy })
    const full = await world.signIn()
    const tokens = [undefined, 'no-uuid', UNKNOWN, partial.token, full.token, people.token]

    const responses = await Promise.all(tokens.map((token) => ask(route, token)))

    for (const response of responses) {
      expectOpen(response)
      expect(response.status).toBe(responses[0]?.status)
    }
  })
})

describe('without a session', () => {
  it.each(cases)('%s is closed', async (_name, route) => {
    const response = await ask(route)

    expect([response.status, causeCode(response)]).toEqual([401, 'SESSION_MISSING'])
  })
})

describe('with an invalid token', () => {
  it.each(cases)('%s is closed as without a session', async (_name, route) => {
    const response = await ask(route, 'no-uuid')

    expect([response.status, causeCode(response)]).toEqual([401, 'SESSION_MISSING'])
  })
})

describe.each([false, true])('with a session that owes a second factor (administrator: %s)', (isAdmin) => {
  /** The token of a new session that is full at first and owes a factor from then on. */
  async function partialToken(): Promise<string> {
    const { id, token } = await world.signIn({ isAdmin })
    await people.manage('PATCH', `/identities/${id}`, { authPolicyId: totpPolicy })
    return token
  }

  it.each(forPartial)('%s is open', async (_name, route) => {
    expectOpen(await ask(route, await partialToken()))
  })

  it.each([...forFull, ...forAdministrators])('%s is closed', async (_name, route) => {
    const response = await ask(route, await partialToken())

    expect([response.status, causeCode(response)]).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
  })
})

describe('with a full session', () => {
  it.each([...forPartial, ...forFull])('%s is open', async (_name, route) => {
    const { token } = await world.signIn()

    expectOpen(await ask(route, token))
  })

  it.each(forAdministrators)('%s is closed', async (_name, route) => {
    const { token } = await world.signIn()
    const status = permissionOf.get(route.key) === 'administrator' ? 401 : 403

    const response = await ask(route, token)

    expect([response.status, causeCode(response)]).toEqual([status, 'PERMISSION_DENIED'])
  })
})

describe('with the session of an administrator', () => {
  it.each(cases)('%s is open', async (_name, route) => {
    expectOpen(await ask(route, await world.admin()))
  })
})

describe('with the session of an identity that was deleted', () => {
  it.each(cases)('%s is closed', async (_name, route) => {
    const { id, token } = await world.signIn({ isAdmin: true })
    const before = await ask({ method: 'GET', path: `${MANAGEMENT}/current-api-session` }, token)
    await people.manage('DELETE', `/identities/${id}`)

    const response = await ask(route, token)

    expect([before.status, response.status, causeCode(response)]).toEqual([200, 401, 'SESSION_UNKNOWN'])
  })
})
