// How a browser begins to sign in at an issuer: its endpoints (OpenID Connect Discovery), and the address that the browser goes to
// (OpenID Connect Core, section 3.1.2.1), with PKCE (RFC 7636).
import { hash, randomBytes } from 'node:crypto'

export interface AuthorizationOptions {
  /** The authorization endpoint of the issuer. */
  readonly endpoint: string
  readonly clientId: string
  readonly redirectUri: string
  readonly scopes: readonly string[]
  /** By which the response is recognized. */
  readonly state: string
  /** The recipient of the access token, for issuers that ask for it. */
  readonly audience?: string | undefined
  readonly prompt?: string | undefined
}

/** The address, and the secrets by which its response is redeemed and judged. */
export interface AuthorizationUrl {
  readonly url: string
  readonly verifier: string
  readonly nonce: string
}

export function createAuthorizationUrl(options: AuthorizationOptions): AuthorizationUrl {
  const [verifier, nonce] = [createRandomText(), createRandomText()]
  const parameters = {
    response_type: 'code',
    client_id: options.clientId,
    redirect_uri: options.redirectUri,
    scope: options.scopes.join(' '),
    state: options.state,
    nonce,
    code_challenge: hash('sha256', verifier, 'base64url'),
    code_challenge_method: 'S256',
    ...(options.prompt === undefined ? {} : { prompt: options.prompt }),
    ...(options.audience === undefined ? {} : { audience: options.audience }),
  }
  const url = new URL(options.endpoint)
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value)
  return { url: url.href, verifier, nonce }
}

/** The address of the discovery document of an issuer (OpenID Connect Discovery, section 4). */
export function toDiscoveryUrl(issuer: string): string {
  return `${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`
}

/** The endpoints of an issuer. */
export interface IssuerEndpoints {
  readonly issuer: string
  readonly authorization: string
  readonly token: string
}

/**
 * Reads the discovery document of an issuer. Returns what is wrong with it, if it is not accepted: one that names another issuer could
 * send people to that one, and receive the codes that they come back with (OpenID Connect Discovery, section 4.3).
 */
export function readEndpoints(issuerUrl: string, document: unknown): IssuerEndpoints | string {
  const members = typeof document === 'object' && document !== null ? (document as Record<string, unknown>) : {}
  const { issuer, authorization_endpoint: authorization, token_endpoint: token } = members
  if (typeof issuer !== 'string' || typeof authorization !== 'string' || typeof token !== 'string')
    return `${toDiscoveryUrl(issuerUrl)} does not name its endpoints`
  if (!isSameIssuer(issuer, issuerUrl))
    return `${toDiscoveryUrl(issuerUrl)} names another issuer, ${issuer.slice(0, 200)}`
  return { issuer, authorization, token }
}

/** Issuers are written with and without a slash at the end. */
function isSameIssuer(issuer: string, configured: string): boolean {
  if (!URL.canParse(issuer) || !URL.canParse(configured)) return false
  const [one, other] = [issuer, configured].map((url) => new URL(url).href.replace(/\/$/, ''))
  return one === other
}

/** Text that cannot be guessed, of characters that need no encoding. */
export function createRandomText(): string {
  return randomBytes(32).toString('base64url')
}
