// The addresses of OpenID Connect: each that reaches the controller has an issuer of its own, and the paths exist where they are served.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { callOverTls } from '../world/certificates.ts'
import { CLIENT, MANAGEMENT, type TestController, testController } from '../world/controller.ts'
import { People } from '../world/people.ts'
import { CertificateClient, toForm } from './certificate-client.ts'
import { bearer, readClaims } from './client.ts'

const ADDRESS = '127.0.0.1:0'
const DISCOVERY = '/oidc/.well-known/openid-configuration'

let world: TestController
let people: People
let rootPem: string
let urls: readonly string[]

beforeAll(async () => {
  const listeners = [{ address: ADDRESS }, { address: ADDRESS }, { address: ADDRESS, apis: ['client', 'management'] }]
  world = await testController({ settings: { listeners } })
  const { addresses, rootPem: pem } = await world.listen()
  rootPem = pem
  urls = addresses.map((address) => `https://${address}`)
  people = await People.in(world)
})
afterAll(() => world.close())

const ask = (url: string, path: string, headers: Record<string, string> = {}) =>
  callOverTls(url, rootPem, { method: 'GET', path, headers })

const [first, second, without] = [() => urls[0] ?? '', () => urls[1] ?? '', () => urls[2] ?? '']

describe('a listener', () => {
  it.each([
    ['the first', first],
    ['the second', second],
  ])('has its own issuer, and all endpoints below it: %s', async (_name, toUrl) => {
    const { body, headers, status } = await ask(toUrl(), DISCOVERY)

    const issuer = `${toUrl()}/oidc`
    expect([status, headers['content-type'], body.issuer]).toEqual([200, 'application/json', issuer])
    expect(body.openziti_endpoints).toEqual({
      password: `${issuer}/login/password`,
      cert: `${issuer}/login/cert`,
      ext_jwt: `${issuer}/login/ext-jwt`,
      totp: `${issuer}/login/totp`,
      totp_enroll: `${issuer}/login/totp/enroll`,
      totp_enroll_verify: `${issuer}/login/totp/enroll/verify`,
      auth_queries: `${issuer}/login/auth-queries`,
    })
    const endpoints = Object.entries(body).filter(([name]) => /_endpoint$|^jwks_uri$/.test(name))
    expect(endpoints.length).toBeGreaterThanOrEqual(7)
    for (const [name, value] of endpoints) expect([name, String(value).startsWith(`${issuer}/`)]).toEqual([name, true])
  })

  it('takes the tokens of a sign-in at another one, which they name', async () => {
    const client = new CertificateClient(world, { url: first(), rootPem })
    const { body } = await client.signIn(undefined, '/oidc/login/password', toForm(await people.person()))

    expect(readClaims(body.access_token).iss).toBe(`${first()}/oidc`)
    for (const url of urls)
      expect((await ask(url, `${CLIENT}/current-identity`, bearer(body.access_token))).status).toBe(200)
  })

  it('that does not carry it has none of its paths, and signs clients in with a session header', async () => {
    const person = await people.person({ isAdmin: true })

    for (const path of [DISCOVERY, '/oidc/keys', '/oidc/authorize', '/oidc/login/password', '/oidc/oauth/token'])
      expect([path, (await ask(without(), path)).status]).toEqual([path, 404])
    for (const url of urls) {
      for (const api of [CLIENT, MANAGEMENT]) {
        const path = `${api}/authenticate?method=password`
        const { status } = await callOverTls(url, rootPem, { method: 'POST', path, body: toForm(person) })
        expect([url, api, status]).toEqual([url, api, 200])
      }
    }
  })

  it('has the document of discovery below its path alone', async () => {
    const { body, status } = await ask(first(), '/.well-known/openid-configuration')

    expect([status, body.error.code]).toEqual([404, 'NOT_FOUND'])
    for (const path of ['/oidcx', '/oidc/token', '/oidc/nothing'])
      expect([path, (await ask(first(), path)).status]).toEqual([path, 404])
  })
})
