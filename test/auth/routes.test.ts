// Every route, asked by nobody, by sessions that owe a second factor, by full ones, and by those of identities that are gone.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { BASE_PATHS } from '../../server/mount-points.ts'
import type { Access } from '../../server/operation.ts'
import { operations } from '../../server/operations.ts'
import { type Answered, type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'

let world: TestController
let people: People
let totpPolicy: string

beforeAll(async () => {
  world = await testController()
  people = await People.in(world)
  totpPolicy = await people.policy({ requireTotp: true })
})
afterAll(() => world.close())

type Granted = Extract<Access, { permission: string }>

const routes = operations.flatMap((each) =>
  'permission' in each.access
    ? listRoutes(each).map(({ path }) => ({ method: each.method, path, access: each.access as Granted }))
    : [],
)
const cases = routes.map((route) => [`${route.method} ${route.path}`, route] as const)

/** What nobody needs a session for. */
const openCases = operations.flatMap((each) =>
  'public' in each.access
    ? listRoutes(each).map(({ path }) => [`${each.method} ${path}`, { method: each.method, path }] as const)
    : [],
)

/** All that a session may call which owes a second factor, on either API. */
const openToPartial: readonly string[] = [
  'POST /authenticate/mfa',
  'GET /current-api-session',
  'DELETE /current-api-session',
  'GET /current-identity/mfa',
  'POST /current-identity/mfa',
  'POST /current-identity/mfa/verify',
  'GET /current-identity/mfa/qr-code',
].flatMap((line) => {
  const [method, path] = line.split(' ')
  return Object.values(BASE_PATHS).map((base) => `${method} ${base}${path}`)
})

function ask({ method, path }: { method: string; path: string }, token?: string): Promise<Answered> {
  return world.send({ method, path: path.replace(/:\w+/g, 'no-such-record'), token })
}

function causeCode({ body }: Answered): string | undefined {
  return body?.error?.cause?.code
}

const UNKNOWN = '00000000-0000-4000-8000-000000000000'
const REFUSALS = ['SESSION_MISSING', 'SESSION_UNKNOWN', 'SECOND_FACTOR_REQUIRED', 'PERMISSION_DENIED']

describe('for everyone', () => {
  it.each(openCases)('%s is open, whatever session is sent along', async (_name, route) => {
    const partial = await world.signIn()
    await people.manage('PATCH', `/identities/${partial.id}`, { authPolicyId: totpPolicy })
    const full = await world.signIn()
    const tokens = [undefined, 'no-uuid', UNKNOWN, partial.token, full.token, people.token]

    const answers = await Promise.all(tokens.map((token) => ask(route, token)))

    for (const answer of answers) {
      expect(REFUSALS).not.toContain(causeCode(answer))
      expect(answer.status).toBe(answers[0]?.status)
    }
  })
})

describe('without a session', () => {
  it.each(cases)('%s is closed', async (_name, route) => {
    const answer = await ask(route)

    expect([answer.status, causeCode(answer)]).toEqual([401, 'SESSION_MISSING'])
  })
})

describe('with what is no token', () => {
  it.each(cases)('%s is closed as without a session', async (_name, route) => {
    const answer = await ask(route, 'no-uuid')

    expect([answer.status, causeCode(answer)]).toEqual([401, 'SESSION_MISSING'])
  })
})

describe.each([false, true])('with a session that owes a second factor (administrator: %s)', (isAdmin) => {
  it.each(cases)('%s is open where the factor is answered, and closed elsewhere', async (name, route) => {
    const { id, token } = await world.signIn({ isAdmin })
    await people.manage('PATCH', `/identities/${id}`, { authPolicyId: totpPolicy })

    const answer = await ask(route, token)

    if (openToPartial.includes(name)) expect(REFUSALS).not.toContain(causeCode(answer))
    else expect([answer.status, causeCode(answer)]).toEqual([401, 'SECOND_FACTOR_REQUIRED'])
  })
})

describe('with a full session', () => {
  it.each(cases)('%s is open unless it is for administrators', async (_name, route) => {
    const { token } = await world.signIn()
    const { grantedTo, isForbidden } = route.access

    const answer = await ask(route, token)

    if (grantedTo !== 'administrator') expect(REFUSALS).not.toContain(causeCode(answer))
    else expect([answer.status, causeCode(answer)]).toEqual([isForbidden ? 403 : 401, 'PERMISSION_DENIED'])
  })
})

describe('with the session of an administrator', () => {
  it.each(cases)('%s is open', async (_name, route) => {
    const token = await world.admin()

    const answer = await ask(route, token)

    expect(REFUSALS).not.toContain(causeCode(answer))
    expect(answer.status).toBeLessThan(500)
  })
})

describe('with the session of an identity that was deleted', () => {
  it.each(cases)('%s is closed', async (_name, route) => {
    const { id, token } = await world.signIn({ isAdmin: true })
    await people.manage('DELETE', `/identities/${id}`)

    const answer = await ask(route, token)

    expect([answer.status, causeCode(answer)]).toEqual([401, 'SESSION_UNKNOWN'])
  })
})
