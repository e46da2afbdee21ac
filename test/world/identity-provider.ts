// An identity provider over TLS on loopback, whose pages accept any login.
import { createServer, type Server } from 'node:https'
import type { AddressInfo } from 'node:net'
import Provider from 'oidc-provider'
import type { Browser, Page } from './browser.ts'
import { serverCertificate } from './endpoints.ts'
import { createIssuerKey } from './issuers.ts'

/** The audience of its access tokens. */
export const RESOURCE = 'urn:controller'

interface ProviderClient {
  readonly clientId: string
  readonly type: 'native' | 'web'
  readonly redirectUri: string
}

export class IdentityProvider {
  readonly #server: Server
  readonly issuer: string
  /** The grants by which it has issued tokens, in order. */
  readonly grants: string[] = []

  private constructor(server: Server) {
    this.#server = server
    this.issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  }

  /** @param clients public ones, with PKCE */
  static async start(clients: readonly ProviderClient[]): Promise<IdentityProvider> {
    const server = createServer(serverCertificate())
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve)
    })
    const started = new IdentityProvider(server)
    const provider = createProvider(started.issuer, clients)
    provider.on('grant.success', ({ oidc }) => {
      started.grants.push(String(oidc.params?.grant_type))
    })
    server.on('request', provider.callback())
    return started
  }

  /** Signs in at its page, and goes on to the client. */
  async signIn(browser: Browser, page: Page, login: string): Promise<Page> {
    const consent = await browser.submit(page, { login, password: 'any' })
    return browser.submit(consent)
  }

  stop(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve())
      this.#server.closeAllConnections()
    })
  }
}

function createProvider(issuer: string, clients: readonly ProviderClient[]): Provider {
  const { algorithm, kid, privateKey } = createIssuerKey()
  return new Provider(issuer, {
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid, alg: algorithm, use: 'sig' }] as never },
    clients: clients.map(({ clientId, type, redirectUri }) => ({
      client_id: clientId,
      application_type: type,
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      redirect_uris: [redirectUri],
      response_types: ['code'],
      id_token_signed_response_alg: 'ES256',
    })),
    cookies: { keys: ['a key that signs cookies'] },
    pkce: { required: () => true },
    findAccount: (_context, id) => ({ accountId: id, claims: async () => ({ sub: id }) }),
    features: {
      devInteractions: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => RESOURCE,
        useGrantedResource: () => true,
        getResourceServerInfo: () => ({
          scope: 'offline_access openid',
          audience: RESOURCE,
          accessTokenTTL: 600,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
}
