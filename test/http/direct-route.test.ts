// Requests without a body do not pass through Fastify: whatever they ask for, they get the response that Fastify's route sends.
import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import type { Endings } from '../../server/requests/direct/direct-reply.ts'
import { DirectRoute } from '../../server/requests/direct/direct-route.ts'
import type { RequestState } from '../../server/requests/requests.ts'
import { BothRoutes } from '../world/both-routes.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'

let world: TestController
let routes: BothRoutes
let admin: { id: string; token: string }
let client: { id: string; token: string }

beforeAll(async () => {
  world = await testController()
  routes = new BothRoutes(await world.listen())
  admin = await world.signIn({ name: 'operator', isAdmin: true })
  client = await world.signIn({ name: 'phone' })
})
afterAll(async () => {
  routes.close()
  await world.close()
})

const get = (path: string, headers: Readonly<Record<string, string>>) =>
  routes.expectSame({ method: 'GET', path, headers })

const reads = operations
  .filter(({ method, body, returns }) => method === 'GET' && !body && returns.kind !== 'raw')
  .flatMap((operation) => listRoutes(operation).map(({ path }) => path))
  // It has a slash at the end in any case.
  .filter((path) => path !== '/')

describe.each([
  ['without a session', () => ({})],
  ['a client', () => ({ 'zt-session': client.token })],
  ['a client of the native dialect', () => ({ 'net-session': client.token })],
  ['an administrator', () => ({ 'net-session': admin.token })],
  ['with an unknown session', () => ({ 'zt-session': '2e4fbc4d-67a2-4cf5-8a3c-3ea5a6f5b5b1' })],
  ['with a session that is not a UUID', () => ({ 'zt-session': 'x' })],
] as [string, () => Record<string, string>][])('read %s', (_, makeHeaders) => {
  it('every path alike', async () => {
    for (const path of reads) {
      const { isDirect } = await get(path.replace(/:\w+/g, client.id), makeHeaders())
      expect(isDirect, path).toBe(true)
    }
  })
})

describe('an administrator reads', () => {
  const headers = (more: Record<string, string> = {}) => ({ 'net-session': admin.token, ...more })

  it.each([
    '/identities?limit=2',
    '/identities?limit=x',
    '/identities?limit=1&limit=3',
    '/identities?filter=name%3D%22phone%22',
    '/identities?filter=name+contains+"ph"&sort=name',
    '/identities?filter=%zz',
    '/identities?filter=%e4',
    '/identities?roleFilter=%23a&roleFilter=%23b&roleSemantic=AnyOf',
    '/identities?roleFilter=bare',
    '/identities?__proto__=1&constructor=2&filter=true',
    '/identities?',
    '/identities?&&=',
    '/identities/unknown',
    '/identities/..',
    '/identities/a%2Fb',
    '/identities/%e4',
    '/identities/%00',
    `/identities/${'a'.repeat(256)}`,
    `/identities/${'a'.repeat(257)}`,
    '/nothing',
  ])('%s alike', async (path) => {
    await get(MANAGEMENT + path, headers())
  })

  it.each([
    [{ accept: 'text/plain' }, 406],
    [{ accept: 'text/html, application/json;q=0.5' }, 200],
    [{ 'content-type': 'text/plain' }, 200],
    [{ connection: 'close' }, 200],
  ] as [Record<string, string>, number][])('with %o alike', async (more, status) => {
    const { status: seen } = await get(`${MANAGEMENT}/identities/${client.id}`, headers(more))
    expect(seen).toBe(status)
  })

  // Identities have no entity tags, because they show tokens of enrollments.
  it.each([
    ['""', 200],
    ['*', 304],
  ])('if it has the entity tag %s alike', async (tag, status) => {
    const { status: seen } = await get(`${MANAGEMENT}/identity-types/User`, headers({ 'if-none-match': tag }))
    expect(seen).toBe(status)
  })

  it('a list that is sent piece by piece alike', async () => {
    for (let n = 0; n < 60; n++) await world.signIn({ name: `${'n'.repeat(90)}${n}`, roleAttributes: ['x'.repeat(90)] })
    const { text } = await get(`${MANAGEMENT}/identities?limit=500`, headers())
    expect(text.length).toBeGreaterThan(64 * 1024)
  })
})

it('fails alike if the caller cannot be determined', async () => {
  expectFaults(/a request failed.*there is no such policy/s, /GET .* returned 500/)
  const fault = vi.spyOn(world.controller.auth.policies, 'get').mockImplementation(() => {
    throw new Error('there is no such policy')
  })
  const { status } = await get(`${CLIENT}/current-identity`, { 'net-session': client.token })
  fault.mockRestore()

  expect(status).toBe(500)
})

it('a fault after the response has begun is logged, and ends nothing', () => {
  const response = new ServerResponse(new IncomingMessage(new Socket()))
  const faults: Error[] = []
  const fail: Endings['fail'] = (thrown, _request, reply) => {
    faults.push(thrown)
    reply.code(500).send('an error')
  }
  const fault = new Error('a response cannot be counted')
  const route = new DirectRoute({
    createRequestId: () => 'id',
    identify: { fromMemory: () => ({}) as RequestState, hook() {} },
    checks: [],
    bodyParsers: new Map(),
    fail,
    onSend: undefined,
    afterwards: [
      () => {
        throw fault
      },
    ],
  })
  route.add('GET', `${CLIENT}/version`, {
    config: {},
    bodyLimit: 0,
    handle: (_request, reply) => void reply.send('a version'),
  })

  expect(route.serve(Object.assign(response.req, { method: 'GET', url: `${CLIENT}/version` }), response)).toBe(true)
  expect(faults).toEqual([fault])
  expect(response.statusCode).toBe(200)
})
