// A real OpenID provider: its keys are fetched, rotated and taken down, and its tokens sign in as first and second factor.
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest'
import { CLIENT, type TestController, testController } from '../world/controller.ts'
import { authorityFile, requestOverTls, serverCertificate } from '../world/endpoints.ts'
import { findFreePort } from '../world/free-port.ts'
import { createIssuerKey, type IssuerKey } from '../world/issuers.ts'
import { People } from '../world/people.ts'

const authority = authorityFile()
afterAll(() => authority.remove())

const RESOURCE = 'urn:controller'
const CLIENT_ID = 'laptop-client'
const CLIENT_SECRET = 'a secret that is long enough'

/** A provider over TLS on loopback, which issues access tokens to one client by its credentials. */
class IdentityProvider {
  readonly #server: Server
  readonly #port: number
  #provider: Provider | undefined

  private constructor(server: Server) {
    this.#server = server
    this.#port = (server.address() as AddressInfo).port
  }

  static async start(key: IssuerKey, port: number): Promise<IdentityProvider> {
    const server = createServer(serverCertificate(), (request, response) => provider.#handle(request, response))
    await new Promise<void>((resolve) => {
      server.listen(port, '127.0.0.1', resolve)
    })
    const provider = new IdentityProvider(server)
    provider.useKeys(key)
    return provider
  }

  get port(): number {
    return this.#port
  }

  get issuer(): string {
    return `https://127.0.0.1:${this.#port}`
  }

  /** Signs with the first of the keys from now on. */
  useKeys(...keys: readonly IssuerKey[]): void {
    this.#provider = new Provider(this.issuer, {
      jwks: { keys: keys.map(toPrivateJwk) as never },
      clients: [
        {
          client_id: CLIENT_ID,
          client_secret: CLIENT_SECRET,
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: 'ES256',
        },
      ],
      cookies: { keys: ['a key that signs no cookie here'] },
      ttl: { ClientCredentials: 3600 },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          defaultResource: () => RESOURCE,
          getResourceServerInfo: () => ({
            scope: '',
            audience: RESOURCE,
            accessTokenTTL: 3600,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    })
  }

  #handle(...args: Parameters<ReturnType<Provider['callback']>>): void {
    this.#provider?.callback()(...args)
  }

  /** An access token, as a client gets one from the token endpoint. */
  async token(): Promise<string> {
    const { status, text } = await requestOverTls(`${this.issuer}/token`, {
      method: 'POST',
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        authorization: `Basic ${Buffer.from(`${CLIENT_ID}:${encodeURIComponent(CLIENT_SECRET)}`).toString('base64')}`,
      },
      body: 'grant_type=client_credentials',
    })
    expect([status, text]).toEqual([200, expect.stringContaining('access_token')])
    return JSON.parse(text).access_token
  }

  /** The URL of its key set, by its discovery document. */
  async jwksUri(): Promise<string> {
    const { text } = await requestOverTls(`${this.issuer}/.well-known/openid-configuration`)
    return JSON.parse(text).jwks_uri
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }
}

function toPrivateJwk({ kid, privateKey, algorithm }: IssuerKey): object {
  return { ...privateKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' }
}

let key: IssuerKey
let provider: IdentityProvider
let world: TestController
let people: People
let signerId: string

beforeEach(async () => {
  key = createIssuerKey()
  // One that the system gives to no other listener or connection while the provider is down.
  provider = await IdentityProvider.start(key, await findFreePort())
  world = await testController({ settings: { 'signers.caFile': authority.path } })
  people = await People.in(world)
  const body = {
    name: 'provider',
    issuer: provider.issuer,
    audience: RESOURCE,
    enabled: true,
    jwksEndpoint: await provider.jwksUri(),
    claimsProperty: 'client_id',
    useExternalId: true,
  }
  signerId = (await people.manage('POST', '/external-jwt-signers', body)).id
})
afterEach(async () => {
  await provider.stop()
  await world.close()
})

function signIn(token: string) {
  const headers = { authorization: `Bearer ${token}` }
  return world.send({ method: 'POST', path: `${CLIENT}/authenticate?method=ext-jwt`, body: {}, headers })
}

describe('a token of an OpenID provider', () => {
  it('signs its client in, and its key set is fetched from the endpoint of the discovery document', async () => {
    const id = await people.identity({ externalId: CLIENT_ID })

    const { status, body } = await signIn(await provider.token())

    expect([status, body.data?.identityId]).toEqual([200, id])
    const { keyStatus } = await people.manage('GET', `/external-jwt-signers/${signerId}`)
    expect(keyStatus).toMatchObject({ keyIds: [key.kid], failure: null })
  })

  it('is a second factor of a session that began with a password', async () => {
    const authPolicyId = await people.policy({ requireExtJwtSigner: signerId })
    const person = await people.person({ externalId: CLIENT_ID, authPolicyId })
    const apiSession = await people.sessionOf(person)
    const headers = { authorization: `Bearer ${await provider.token()}` }
    const request = { method: 'GET', path: `${CLIENT}/current-identity`, token: apiSession }

    const responses = [await world.send(request), await world.send({ ...request, headers })]

    expect(responses.map(({ status }) => status)).toEqual([401, 200])
  })

  it('by a new key is accepted as soon as the provider signs with it, beside the old key while that is published', async () => {
    await people.identity({ externalId: CLIENT_ID })
    const oldToken = await provider.token()
    await signIn(oldToken)
    world.clock.advance(10_000)
    const newKey = createIssuerKey()
    provider.useKeys(newKey, key)

    const responses = [await signIn(await provider.token()), await signIn(oldToken)]

    expect(responses.map(({ status }) => status)).toEqual([200, 200])
  })

  it('is accepted while the provider is down, and the record of the signer says so', async () => {
    await people.identity({ externalId: CLIENT_ID })
    const token = await provider.token()
    const before = await signIn(token)
    const laterToken = await provider.token()
    const { port } = provider
    await provider.stop()
    world.clock.advance(10 * 60_000)
    await world.controller.auth.signers.keyRefresher.refreshDue(world.controller.contexts)

    const during = await signIn(laterToken)

    const { keyStatus } = await people.manage('GET', `/external-jwt-signers/${signerId}`)
    expect([before.status, during.status]).toEqual([200, 200])
    expect(keyStatus).toMatchObject({ keyIds: [key.kid], failure: 'connection refused' })
    provider = await IdentityProvider.start(key, port)
  })
})
