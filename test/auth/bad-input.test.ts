// Mistakes of clients that sign in, enroll or manage credentials: each has a 4xx of its own, which gives the reason.
import { Buffer } from 'node:buffer'
import { beforeAll, describe, expect, it } from 'vitest'
import { listRoutes } from '../../server/app.ts'
import { operations } from '../../server/operations/operations.ts'
import { type PemBlock, parsePemBlocks, toPem } from '../../src/pki/pem.ts'
import { callOverTls, clientKey } from '../world/certificates.ts'
import { CLIENT } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let at: { url: string; rootPem: string }
let people: People

beforeAll(async () => {
  at = await world.listen()
  people = await People.in(world)
})

const TOPICS = ['authentication', 'enrollment', 'enrollments', 'authenticators', 'auth-policies', 'current-identity']

const routes = operations
  // Errors of another form have a test of their own: `openid-connect/traps.test.ts`.
  .filter(({ topic, body, errorForm }) => TOPICS.includes(topic) && body && !errorForm)
  .flatMap((each) => listRoutes(each).map(({ path }) => ({ method: each.method, path, body: each.body })))
const UUID = '00000000-0000-4000-8000-000000000000'

/** Sends a body to a route whose parameters are in order, so that the body alone is judged. */
function send({ method, path }: (typeof routes)[number], body: string, headers: Record<string, string> = {}) {
  const query = path.endsWith('/authenticate') ? '?method=password' : path.includes('/enroll') ? `?token=${UUID}` : ''
  return world.send({
    method,
    path: path.replace(/:\w+/g, 'no-such-record') + query,
    body,
    token: people.token,
    headers: { 'content-type': 'application/json', ...headers },
  })
}

const cases = routes.map((route) => [`${route.method} ${route.path}`, route] as const)

describe('a body', () => {
  it.each(cases)('for %s that is not JSON is refused as such', async (_name, route) => {
    for (const body of ['{"username":', 'nonsense', '{"a":1}{"b":2}', '\u0000']) {
      const response = await send(route, body)

      expect([response.status, response.body.error.code]).toEqual([400, 'COULD_NOT_PARSE_BODY'])
    }
  })

  it.each(cases)('for %s that is JSON, but no object, is refused as such', async (_name, route) => {
    for (const body of ['[1]', '"text"', '5', 'true', '[{}]']) {
      const response = await send(route, body)

      expect([response.status, response.body.error.code]).toEqual([400, 'COULD_NOT_PARSE_BODY'])
    }
  })

  it.each(cases)('for %s cannot reach into prototypes, nor exhaust the stack', async (_name, route) => {
    const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`
    for (const body of ['{"__proto__":{"isAdmin":true}}', '{"constructor":{"prototype":{}}}', `{"tags":${deep}}`]) {
      const { status } = await send(route, body)

      expect([400, 401, 404, 413]).toContain(status)
    }
  })

  it.each(cases)('for %s of a type that nothing takes is refused with 415', async (_name, route) => {
    const response = await send(route, '<xml/>', { 'content-type': 'application/xml' })

    expect([response.status, response.body.error.code]).toEqual([415, 'COULD_NOT_VALIDATE'])
  })
})

describe('signing in', () => {
  const path = `${CLIENT}/authenticate?method=cert`

  it.each([
    ['an empty object', {}],
    ['no body', undefined],
  ])('by certificate takes %s', async (_what, body) => {
    const { chain, key } = await people.device()
    const call = { method: 'POST', path, cert: chain, key: key.keyPem }

    const response = await callOverTls(at.url, at.rootPem, body === undefined ? call : { ...call, body })

    expect(response.status).toBe(200)
  })

  it('takes no certificate from a header', async () => {
    const { chain } = await people.device()
    const headers = {
      'x-client-certpem': encodeURIComponent(chain),
      'x-edge-router-proxy-request': 'true',
      'x-forwarded-client-cert': encodeURIComponent(chain),
    }

    const response = await world.send({ method: 'POST', path, body: {}, headers })

    expect([response.status, response.body.error.code]).toEqual([401, 'INVALID_AUTH'])
  })

  it('is refused with 413 beyond the limit for callers who are not known, by any method', async () => {
    const envInfo = { os: 'x'.repeat(70_000) }
    for (const method of ['password', 'cert', 'ext-jwt']) {
      const response = await world.send({
        method: 'POST',
        path: `${CLIENT}/authenticate?method=${method}`,
        body: { username: 'jane.doe', password: 'something', envInfo },
      })

      expect([response.status, response.body.error.code]).toEqual([413, 'REQUEST_ENTITY_TOO_LARGE'])
    }
  })

  it('is refused if the information about itself is not text, or too long', async () => {
    const person = await people.person()
    for (const [field, info] of [
      ['envInfo.os', { envInfo: { os: 5 } }],
      ['envInfo.os', { envInfo: { os: 'x'.repeat(256) } }],
      ['sdkInfo.type', { sdkInfo: { type: ['a', 'b'] } }],
      ['configTypes.0', { configTypes: [7] }],
    ] as const) {
      const response = await people.signIn(person, info)

      expect([response.status, response.body.error.cause.field]).toEqual([400, field])
    }
  })
})

describe('a signing request', () => {
  const derOf = (csr: string) => (parsePemBlocks(csr)[0] as PemBlock).bytes

  async function enrollWith(change: (csr: string) => string) {
    const id = await people.identity({ enrollment: { ott: true } })
    const { enrollment } = await people.manage('GET', `/identities/${id}`)
    return people.enroll(enrollment.ott.token, change((await clientKey(id)).csr))
  }

  it.each([
    ['with one line end after it', (csr: string) => csr],
    ['without a line end', (csr: string) => csr.trimEnd()],
    ['with the line ends of another system', (csr: string) => csr.replaceAll('\n', '\r\n')],
    ['under another label', (csr: string) => toPem('NEW CERTIFICATE REQUEST', derOf(csr))],
  ])('%s is taken', async (_what, change) => {
    expect((await enrollWith(change)).status).toBe(200)
  })

  it.each([
    ['with a blank line after it', (csr: string) => `${csr}\n`],
    ['with text before it', (csr: string) => `Request:\n${csr}`],
    ['that ends too early', (csr: string) => toPem('CERTIFICATE REQUEST', derOf(csr).subarray(0, -10))],
    [
      'with bytes after it',
      (csr: string) => toPem('CERTIFICATE REQUEST', Buffer.concat([derOf(csr), Buffer.alloc(4)])),
    ],
    ['that is not armoured', (csr: string) => derOf(csr).toString('base64')],
  ])('%s is refused', async (_what, change) => {
    const response = await enrollWith(change)

    expect([response.status, response.body.error.code]).toEqual([400, 'COULD_NOT_PROCESS_CSR'])
  })
})
