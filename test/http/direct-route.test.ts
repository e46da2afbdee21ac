// Requests without a body do not pass through Fastify: whatever they ask for, they get the response that Fastify's route sends.
import { type IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { Agent, request as httpsRequest } from 'node:https'
import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import type { Endings } from '../../server/direct/direct-reply.ts'
import { DirectRoute } from '../../server/direct/direct-route.ts'
import { operations } from '../../server/operations.ts'
import type { RequestState } from '../../server/requests.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { expectFaults } from '../world/faults.ts'

const serve = vi.spyOn(DirectRoute.prototype, 'serve')

let world: TestController
let url: string
let rootPem: string
let agent: Agent
let admin: { id: string; token: string }
let client: { id: string; token: string }

beforeAll(async () => {
  world = await testController()
  const listening = await world.listen()
  url = listening.url
  rootPem = listening.rootPem
  agent = new Agent({ keepAlive: true, ca: rootPem, maxSockets: 1 })
  admin = await world.signIn({ name: 'operator', isAdmin: true })
  client = await world.signIn({ name: 'phone' })
})
afterAll(async () => {
  agent.destroy()
  await world.close()
})

interface Seen {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

function get(path: string, headers: Record<string, string>): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const request = httpsRequest(new URL(path, url), { agent, headers }, (response) => {
      let text = ''
      response.setEncoding('utf8')
      response.on('data', (piece: string) => {
        text += piece
      })
      response.on('end', () => resolve({ status: response.statusCode, headers: response.headers, text }))
    })
    request.on('error', reject)
    request.end()
  })
}

/** A slash at the end means nothing to Fastify, and is not for the direct route. */
const toPathOfFastify = (path: string) => path.replace(/\/?(?=\?|$)/, '/')

/** What a response says, without what differs between any two responses. */
function comparable({ status, headers, text }: Seen, path: string) {
  const { date, ...others } = headers
  const comparableText = text.replace(/"requestId":"[^"]*"/, '"requestId":""').replaceAll(toPathOfFastify(path), path)
  return { status, headers: { ...others, 'content-length': '' }, text: comparableText }
}

async function expectSameOnBoth(path: string, headers: Record<string, string>): Promise<Seen & { isDirect: boolean }> {
  const direct = await get(path, headers)
  const isDirect = serve.mock.results.at(-1)?.value
  const byFastify = await get(toPathOfFastify(path), headers)
  expect(serve.mock.results.at(-1)?.value).toBe(false)
  expect(comparable(direct, path), path).toEqual(comparable(byFastify, path))
  return { ...direct, isDirect }
}

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
      const { isDirect } = await expectSameOnBoth(path.replace(/:\w+/g, client.id), makeHeaders())
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
    await expectSameOnBoth(MANAGEMENT + path, headers())
  })

  it.each([
    [{ accept: 'text/plain' }, 406],
    [{ accept: 'text/html, application/json;q=0.5' }, 200],
    [{ 'if-none-match': '""' }, 200],
    [{ 'if-none-match': '*' }, 304],
    [{ 'content-type': 'text/plain' }, 200],
    [{ connection: 'close' }, 200],
  ] as [Record<string, string>, number][])('with %o alike', async (more, status) => {
    const { status: seen } = await expectSameOnBoth(`${MANAGEMENT}/identities/${client.id}`, headers(more))
    expect(seen).toBe(status)
  })

  it('a list that is sent piece by piece alike', async () => {
    for (let n = 0; n < 60; n++) await world.signIn({ name: `${'n'.repeat(90)}${n}`, roleAttributes: ['x'.repeat(90)] })
    const { text } = await expectSameOnBoth(`${MANAGEMENT}/identities?limit=500`, headers())
    expect(text.length).toBeGreaterThan(64 * 1024)
  })
})

it('fails alike if the caller cannot be determined', async () => {
  expectFaults(/a request failed.*there is no such policy/s, /GET .* returned 500/)
  const fault = vi.spyOn(world.controller.auth.policies, 'get').mockImplementation(() => {
    throw new Error('there is no such policy')
  })
  const { status } = await expectSameOnBoth(`${CLIENT}/current-identity`, { 'net-session': client.token })
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
    fail,
    onSend: undefined,
    afterwards: [
      () => {
        throw fault
      },
    ],
  })
  route.add(`${CLIENT}/version`, {}, (_request, reply) => void reply.send('a version'))

  expect(route.serve(Object.assign(response.req, { method: 'GET', url: `${CLIENT}/version` }), response)).toBe(true)
  expect(faults).toEqual([fault])
  expect(response.statusCode).toBe(200)
})
