// Headers that keep responses from caches and from being taken for another type of content.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { AuthenticatorApp, STEP_MS } from '../world/authenticator-app.ts'
import { CLIENT, FABRIC, MANAGEMENT } from '../world/controller.ts'
import { KeptConnection, type Sent } from '../world/kept-connection.ts'
import { People } from '../world/people.ts'
import { rawTarget, sendRaw } from '../world/raw-requests.ts'
import { useController } from '../world/use-controller.ts'

const ORIGIN = 'https://console.example.com'

const world = useController({ settings: { 'cors.origins': [ORIGIN] } })
let people: People
let at: { url: string; rootPem: string }
let connection: KeptConnection

beforeAll(async () => {
  people = await People.in(world)
  at = await world.listen()
  connection = new KeptConnection(at)
})
afterAll(async () => {
  connection.close()
})

/** A request of an administrator. */
const asAdministrator = (method: string, path: string, body?: object): Sent => ({
  method,
  path,
  headers: { 'net-session': people.token, ...(body ? { 'content-type': 'application/json' } : {}) },
  body: body && JSON.stringify(body),
})

describe('a response says that its content has no other type', () => {
  const NOSNIFF = { 'x-content-type-options': 'nosniff' }

  it.each([
    ['of the client API', { method: 'GET', path: `${CLIENT}/services` }, 200],
    ['of the management API', { method: 'GET', path: `${MANAGEMENT}/services` }, 200],
    ['of the fabric API, which this listener does not carry', { method: 'GET', path: `${FABRIC}/routers` }, 404],
    ['at the root', { method: 'GET', path: '/version' }, 200],
    ['that refuses a body', { method: 'POST', path: `${MANAGEMENT}/services`, body: {} }, 400],
    ['about an unknown record', { method: 'GET', path: `${MANAGEMENT}/services/unknown` }, 404],
    ['about an unknown path', { method: 'GET', path: `${MANAGEMENT}/unknown` }, 404],
    ['about another method', { method: 'PUT', path: `${MANAGEMENT}/version` }, 405],
  ] as const)('%s', async (_what, request, status) => {
    const { method, path } = request
    const response = await connection.send(asAdministrator(method, path, 'body' in request ? request.body : undefined))

    expect(response).toMatchObject({ status, headers: NOSNIFF })
  })

  it('to a request without a session', async () => {
    const response = await connection.send({ method: 'GET', path: `${MANAGEMENT}/services` })

    expect(response).toMatchObject({ status: 401, headers: NOSNIFF })
  })

  it('to a client that has the response already', async () => {
    const headers = { 'net-session': people.token, 'if-none-match': '*' }
    const response = await connection.send({ method: 'GET', path: `${CLIENT}/services`, headers })

    expect(response).toMatchObject({ status: 304, headers: NOSNIFF })
  })

  it('to a path that cannot be decoded, and to a preflight', async () => {
    const undecodable = await connection.send({ method: 'GET', path: '/%zz' })
    const preflight = await connection.send({
      method: 'OPTIONS',
      path: `${MANAGEMENT}/services`,
      headers: { origin: ORIGIN, 'access-control-request-method': 'GET' },
    })

    expect(undecodable).toMatchObject({ status: 404, headers: NOSNIFF })
    expect(preflight).toMatchObject({ status: 204, headers: NOSNIFF })
  })

  it('to what is not a request', async () => {
    const response = await sendRaw(rawTarget(at.url, at.rootPem), 'nonsense\r\n\r\n')

    expect(response).toMatchObject({ status: 400, headers: NOSNIFF })
  })
})

describe('no cache may store a response', () => {
  const NO_STORE = { 'cache-control': 'no-store' }

  it.each([
    ['of the own session', `${CLIENT}/current-api-session`],
    ['of the own identity', `${CLIENT}/current-identity`],
    ['with API sessions', `${MANAGEMENT}/api-sessions`],
    ['with sessions', `${CLIENT}/sessions`],
    ['with enrollments', `${MANAGEMENT}/enrollments`],
    ['with identities, which show their enrollments', `${MANAGEMENT}/identities`],
    ['with edge routers, which show their enrollments', `${MANAGEMENT}/edge-routers`],
    ['with transit routers, which show their enrollments', `${MANAGEMENT}/transit-routers`],
    ['with all identities in a stream', `${MANAGEMENT}/identities?limit=-1`],
  ])('%s', async (_what, path) => {
    const plain = await connection.send(asAdministrator('GET', path))
    const { headers } = asAdministrator('GET', path)
    const tagged = await connection.send({ method: 'GET', path, headers: { ...headers, 'if-none-match': '*' } })

    expect(plain).toMatchObject({ status: 200, headers: NO_STORE })
    // Whole, because a client can have no copy of it.
    expect(tagged).toMatchObject({ status: 200, headers: NO_STORE })
  })

  it('to a sign-in', async () => {
    const { username, password } = await people.person()
    const path = `${CLIENT}/authenticate?method=password`

    const { status, headers } = await world.send({ method: 'POST', path, body: { username, password } })

    expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
  })

  it('with one enrollment and its JWT', async () => {
    const id = await people.identity({ enrollment: { ott: true } })
    const { enrollment } = await people.manage('GET', `/identities/${id}`)

    const { status, headers, body } = await people.ask('GET', `/enrollments/${enrollment.ott.id}`)

    expect([status, headers['cache-control']]).toEqual([200, 'no-store'])
    expect(body.data.jwt).toBeTypeOf('string')
  })

  it('with a secret of the second factor, or recovery codes', async () => {
    const { token } = await world.signIn()
    const send = (method: string, path: string, code?: string) =>
      world.send({
        method,
        path: `${MANAGEMENT}${path}`,
        token,
        ...(method === 'POST' ? { body: code === undefined ? {} : { code } } : {}),
        headers: code === undefined ? {} : { 'mfa-validation-code': code },
      })
    await send('POST', '/current-identity/mfa')
    const responses = [await send('GET', '/current-identity/mfa'), await send('GET', '/current-identity/mfa/qr-code')]
    const app = new AuthenticatorApp(responses[0]?.body.data.provisioningUrl)
    await send('POST', '/current-identity/mfa/verify', app.code(world.clock.now()))
    world.clock.advance(STEP_MS)
    responses.push(await send('GET', '/current-identity/mfa/recovery-codes', app.code(world.clock.now())))
    world.clock.advance(STEP_MS)
    responses.push(await send('POST', '/controller/mfa/recovery-codes', app.code(world.clock.now())))

    expect(responses.map(({ status, headers }) => [status, headers['cache-control']])).toEqual(
      Array(4).fill([200, 'no-store']),
    )
  })
})

it('a response without secrets may be stored', async () => {
  const { status, headers } = await connection.send(asAdministrator('GET', `${MANAGEMENT}/services`))

  expect(status).toBe(200)
  expect(headers).not.toHaveProperty('cache-control')
})
