// Cross-origin requests: browsers let the pages of listed origins call both APIs, and no others.
import { describe, expect, it } from 'vitest'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { useController } from '../world/use-controller.ts'

const ORIGIN = 'https://console.example.com'

const world = useController({ settings: { 'cors.origins': [ORIGIN, 'http://localhost:4200'] } })

const preflight = (path: string, origin: string, method = 'POST', controller: TestController = world) =>
  controller.send({
    method: 'OPTIONS',
    path,
    headers: { origin, 'access-control-request-method': method, 'access-control-request-headers': 'zt-session' },
  })

describe('a preflight', () => {
  it.each([
    `${MANAGEMENT}/authenticate`,
    `${CLIENT}/authenticate`,
    '/authenticate',
    '/edge/v1/authenticate',
    `${MANAGEMENT}/services`,
    '/fabric/v1/routers',
  ])('of a listed origin is allowed at %s', async (path) => {
    const { status, headers, text } = await preflight(path, ORIGIN, 'GET')

    expect(status).toBe(204)
    expect(text).toBe('')
    expect(headers).toMatchObject({
      'access-control-allow-origin': ORIGIN,
      'access-control-allow-credentials': 'true',
      vary: 'Origin',
    })
    for (const name of [
      'content-type',
      'accept',
      'authorization',
      'zt-session',
      'net-session',
      'mfa-validation-code',
      'controller-dry-run',
    ]) {
      expect(String(headers['access-control-allow-headers']).split(', ')).toContain(name)
    }
  })

  it('names the methods of the path', async () => {
    const { headers } = await preflight(`${MANAGEMENT}/services/some-id`, ORIGIN)

    expect(String(headers['access-control-allow-methods']).split(', ').sort()).toEqual([
      'DELETE',
      'GET',
      'PATCH',
      'PUT',
    ])
  })

  it('of another origin gets the same response as without the setting', async () => {
    const other = await testController()
    for (const origin of ['https://example.com', `${ORIGIN}.evil.example`, 'https://CONSOLE.example.com', 'null']) {
      const [here, there] = [
        await preflight(`${MANAGEMENT}/services`, origin),
        await preflight(`${MANAGEMENT}/services`, ORIGIN, 'GET', other),
      ]
      for (const { status, headers } of [here, there]) {
        expect(status).toBe(405)
        expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([])
      }
    }
    await other.close()
  })

  it('for a path that does not exist is 404', async () => {
    expect((await preflight(`${MANAGEMENT}/no-such-path`, ORIGIN)).status).toBe(404)
  })
})

describe('a request', () => {
  it('of a listed origin may be read by its scripts, with the session headers, also if it is refused', async () => {
    const path = `${MANAGEMENT}/services`
    const refused = await world.send({ method: 'GET', path, headers: { origin: ORIGIN } })
    const served = await world.send({ method: 'GET', path, token: await world.admin(), headers: { origin: ORIGIN } })

    expect([refused.status, served.status]).toEqual([401, 200])
    for (const { headers } of [refused, served]) {
      expect(headers['access-control-allow-origin']).toBe(ORIGIN)
      expect(headers['access-control-expose-headers']).toContain('zt-session')
      expect(headers['access-control-expose-headers']).toContain('net-session')
    }
  })

  it('of any other origin may not, and no cache confuses the two', async () => {
    const { headers } = await world.send({
      method: 'GET',
      path: `${MANAGEMENT}/version`,
      headers: { origin: 'https://example.com' },
    })

    expect(headers['access-control-allow-origin']).toBeUndefined()
    expect(headers.vary).toBe('Origin')
  })
})

describe('the sign-in of a console', () => {
  it('is accepted with members that only a browser console sends', async () => {
    const { status, body } = await world.send({
      method: 'POST',
      path: `${MANAGEMENT}/authenticate?method=password`,
      headers: { origin: ORIGIN },
      body: { username: 'admin', password: 'wrong password', rejectUnauthorized: false },
    })

    expect([status, body.error.code]).toEqual([401, 'INVALID_AUTH'])
  })
})
