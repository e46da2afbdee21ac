// Requests that are malformed, too large or of the wrong form: always an error of the catalogue, never a 5xx.
import { beforeAll, describe, expect, it } from 'vitest'
import { ADMIN, CLIENT, MANAGEMENT } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const world = useController()
let admin: string

beforeAll(async () => {
  admin = await world.admin()
})

const authenticate = (body: unknown, headers: Record<string, string> = {}) =>
  world.send({ method: 'POST', path: `${MANAGEMENT}/authenticate?method=password`, body, headers })

describe('a body', () => {
  it('may have 64 KiB before anyone is signed in, and no more', async () => {
    const response = await authenticate({ username: 'admin', password: 'password', filler: 'x'.repeat(64 * 1024) })

    expect(response.status).toBe(413)
    expect(response.body.error.code).toBe('REQUEST_ENTITY_TOO_LARGE')
  })

  it('may have 1 MiB after, and no more', async () => {
    const send = (size: number) =>
      world.send({
        method: 'POST',
        path: `${MANAGEMENT}/identities`,
        token: admin,
        body: { name: `large ${size}`, type: 'Device', isAdmin: false, _links: { filler: 'x'.repeat(size) } },
      })

    expect((await send(900 * 1024)).status).toBe(201)
    expect((await send(1024 * 1024)).status).toBe(413)
  })

  it('of an unknown type is refused with 415', async () => {
    const response = await authenticate('a=b', { 'content-type': 'application/x-www-form-urlencoded' })

    expect(response.status).toBe(415)
    expect(response.body.error).toMatchObject({ code: 'COULD_NOT_VALIDATE', cause: { field: 'Content-Type' } })
  })

  it('of a type that only other operations take is refused with 415', async () => {
    const response = await authenticate('text', { 'content-type': 'text/plain' })

    expect(response.status).toBe(415)
  })

  it.each([
    ['a number where text belongs', { name: 5, type: 'Device', isAdmin: false }, 'COULD_NOT_PARSE_BODY', 'name'],
    ['text where a boolean belongs', { name: 'x', type: 'Device', isAdmin: 'no' }, 'COULD_NOT_PARSE_BODY', 'isAdmin'],
    ['a choice that is none', { name: 'x', type: 'Toaster', isAdmin: false }, 'COULD_NOT_VALIDATE', 'type'],
    ['an empty name', { name: '', type: 'Device', isAdmin: false }, 'COULD_NOT_VALIDATE', 'name'],
    [
      'a cost beyond the limit',
      { name: 'x', type: 'Device', isAdmin: false, defaultHostingCost: 65536 },
      'COULD_NOT_VALIDATE',
      'defaultHostingCost',
    ],
    [
      'a nested tag',
      { name: 'x', type: 'Device', isAdmin: false, tags: { a: { b: 1 } } },
      'COULD_NOT_PARSE_BODY',
      'tags.a',
    ],
    [
      'an attribute that looks like a role',
      { name: 'x', type: 'Device', isAdmin: false, roleAttributes: ['#a'] },
      'COULD_NOT_VALIDATE',
      'roleAttributes',
    ],
    [
      'a list of numbers',
      { name: 'x', type: 'Device', isAdmin: false, roleAttributes: [1] },
      'COULD_NOT_PARSE_BODY',
      'roleAttributes.0',
    ],
  ])('with %s is refused with the field named, and nothing is stored', async (_what, body, code, field) => {
    const response = await world.send({ method: 'POST', path: `${MANAGEMENT}/identities`, token: admin, body })

    expect(response.status).toBe(400)
    expect(response.body.error.code).toBe(code)
    expect(response.body.error.cause.field).toBe(field)
    const filter = encodeURIComponent('name = "x"')
    const { body: list } = await world.send({
      method: 'GET',
      path: `${MANAGEMENT}/identities?filter=${filter}`,
      token: admin,
    })
    expect(list.data).toEqual([])
  })
})

describe('a response', () => {
  it('in a form the controller does not have is refused with 406', async () => {
    const response = await world.send({
      method: 'GET',
      path: `${MANAGEMENT}/version`,
      headers: { accept: 'text/html' },
    })

    expect(response.status).toBe(406)
    expect(response.body.error.cause.field).toBe('Accept')
  })

  it('carries the id under which the log knows it', async () => {
    const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/nothing-here` })

    expect(response.body.error.requestId).toMatch(/^\w+-\w+$/)
  })

  it('says neither the charset nor the vendor', async () => {
    const response = await world.send({ method: 'GET', path: `${MANAGEMENT}/version` })

    expect(response.headers['content-type']).toBe('application/json')
    expect(Object.keys(response.headers).some((name) => name.startsWith('ziti'))).toBe(false)
  })
})

describe('a path', () => {
  it.each([
    ['/version', 200],
    ['/', 200],
    [`${CLIENT}/version`, 200],
    [`${CLIENT}`, 200],
    [`${MANAGEMENT}/`, 200],
    ['/edge/v1/version', 200],
    ['/protocols', 200],
    [`${CLIENT}//version/`, 200],
    ['/.well-known/est/cacerts', 200],
    ['/nothing', 404],
    ['/fabric/v1/nothing', 404],
    [`${MANAGEMENT}/%zz`, 404],
  ])('%s responds with %i', async (path, status) => {
    const response = await world.send({ method: 'GET', path })

    expect(response.status).toBe(status)
  })
})

describe('signing in by password', () => {
  it('takes usernames regardless of case', async () => {
    const response = await authenticate({ username: 'ADMIN', password: ADMIN.password })

    expect(response.status).toBe(200)
  })

  it.each([
    ['an unknown user', { username: 'unknown', password: 'password' }],
    ['a wrong password', { username: ADMIN.username, password: 'password' }],
  ])('responds to %s as to any other failure', async (_what, body) => {
    const response = await authenticate(body)

    expect(response.status).toBe(401)
    expect(response.body.error.code).toBe('INVALID_AUTH')
    expect(response.body.error).not.toHaveProperty('cause')
  })

  it('never shows a password that breaks a rule', async () => {
    const response = await authenticate({ username: ADMIN.username, password: 'shrt' })

    expect(response.status).toBe(400)
    expect(response.body.error.cause).toEqual({
      field: 'password',
      reason: 'must be at least 5 characters long',
      value: '',
    })
  })
})

describe('a session', () => {
  it('ends when it is not used for as long as the settings say', async () => {
    const { token } = await world.signIn()
    const read = () => world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })
    world.clock.advance(29 * 60_000)
    const stillThere = await read()
    world.clock.advance(30 * 60_000)
    const endedResponse = await read()

    expect(stillThere.status).toBe(200)
    expect(endedResponse.body.error.cause.code).toBe('SESSION_UNKNOWN')
  })

  it('ends by signing out', async () => {
    const { token } = await world.signIn()
    const first = await world.send({ method: 'DELETE', path: `${CLIENT}/current-api-session`, token })
    const second = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token })

    expect(first.status).toBe(200)
    expect(second.status).toBe(401)
  })

  it('named by an invalid token counts as none', async () => {
    const response = await world.send({ method: 'GET', path: `${CLIENT}/current-api-session`, token: 'not-a-uuid' })

    expect(response.body.error.cause.code).toBe('SESSION_MISSING')
  })
})
