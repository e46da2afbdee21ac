// Sign-in by OpenID Connect in a browser: discovery, authorization code with PKCE, and the tokens that follow from it.
import {
  type AuthorizationOptions,
  createAuthorizationUrl,
  createRandomText,
  type IssuerEndpoints,
  readEndpoints,
  toDiscoveryUrl,
} from '../../src/client/authorization-url.ts'
import type { Reply, Transport } from '../../src/client/transport.ts'
import { isEqualInConstantTime } from '../../src/foundation/constant-time.ts'
import { CommandError, EXIT } from '../foundation/exit-codes.ts'
import { awaitRedirect, type RedirectListener } from './loopback.ts'

/** The request of a client to an issuer. */
export type AuthorizationRequest = Pick<AuthorizationOptions, 'clientId' | 'scopes' | 'prompt' | 'audience'>

/** The tokens of a response, as far as the issuer issued them. */
export interface IssuedTokens {
  readonly accessToken?: string | undefined
  readonly idToken?: string | undefined
  readonly refreshToken?: string | undefined
  /** When the access token expires, in milliseconds of this machine's clock. */
  readonly expiresAt?: number | undefined
}

/** The issuer does not accept a refresh token any more: it expired, or the session ended. */
export class GrantEndedError extends Error {
  override readonly name = 'GrantEndedError'
}

/**
 * Reads the discovery document of an issuer.
 * @throws CommandError if there is none, it is of another issuer, or its endpoints are not protected by TLS
 */
export async function discoverIssuer(transport: Transport, issuerUrl: string): Promise<IssuerEndpoints> {
  const path = toDiscoveryUrl(issuerUrl)
  const reply = await transport.send({ method: 'GET', path })
  const endpoints = readEndpoints(issuerUrl, reply.status === 200 ? parseObject(reply) : undefined)
  const reason = typeof endpoints === 'string' ? endpoints : findInsecureEndpoint(endpoints)
  if (typeof endpoints === 'string' || reason !== undefined)
    throw new CommandError(EXIT.failed, 'NO_ISSUER', `${issuerUrl} is not an issuer of OpenID Connect: ${reason}`)
  return endpoints
}

function findInsecureEndpoint({ authorization, token }: IssuerEndpoints): string | undefined {
  const insecure = [authorization, token].find((url) => !/^https:\/\/[^/]/.test(url))
  return insecure === undefined ? undefined : `${insecure} is not protected by TLS`
}

/**
 * Has the user sign in with a browser, and redeems the code that it comes back with.
 * @param show writes the URL for the user, and opens it if this machine has a browser
 * @throws CommandError if the issuer refuses, or the user does not come back in time
 */
export async function authorizeByBrowser(
  transport: Transport,
  endpoints: IssuerEndpoints,
  request: AuthorizationRequest,
  listener: RedirectListener,
  show: (url: string) => void,
): Promise<IssuedTokens> {
  const state = createRandomText()
  const { url, verifier, nonce } = createAuthorizationUrl({
    ...request,
    ...{ endpoint: endpoints.authorization, redirectUri: listener.redirectUri, state },
  })
  const received = awaitRedirect(listener, (returned) => isEqualInConstantTime(returned, state))
  show(url)
  const response = await received
  const issuer = response.get('iss')
  if (issuer !== null && issuer !== endpoints.issuer) throw refusal(endpoints, 'the response is of another issuer')
  const code = response.get('code')
  if (code === null) throw refusal(endpoints, describeOAuthError(Object.fromEntries(response)))
  const tokens = await requestTokens(transport, endpoints.token, {
    grant_type: 'authorization_code',
    client_id: request.clientId,
    code,
    code_verifier: verifier,
    redirect_uri: listener.redirectUri,
  })
  await assertNonce(tokens.idToken, nonce, endpoints)
  return tokens
}

/** Renews tokens. @throws GrantEndedError if the refresh token is not accepted any more */
export function refreshTokens(
  transport: Transport,
  tokenEndpoint: string,
  { clientId, refreshToken }: { readonly clientId: string; readonly refreshToken: string },
): Promise<IssuedTokens> {
  const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }
  return requestTokens(transport, tokenEndpoint, form)
}

async function requestTokens(
  transport: Transport,
  tokenEndpoint: string,
  form: Readonly<Record<string, string>>,
): Promise<IssuedTokens> {
  const startedAt = Date.now()
  const reply = await transport.send({
    method: 'POST',
    path: tokenEndpoint,
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
    body: new URLSearchParams(form).toString(),
  })
  const response = parseObject(reply)
  if (reply.status !== 200) {
    const message = `${new URL(tokenEndpoint).origin}: no token was issued: ${describeOAuthError(response)}`
    if (response.error === 'invalid_grant') throw new GrantEndedError(message)
    const isLater = reply.status === 429 || reply.status === 503
    throw new CommandError(isLater ? EXIT.tryLater : EXIT.signInFirst, 'INVALID_AUTH', message)
  }
  const { expires_in: lifetime } = response
  return {
    accessToken: textOrNothing(response.access_token),
    idToken: textOrNothing(response.id_token),
    refreshToken: textOrNothing(response.refresh_token),
    expiresAt: typeof lifetime === 'number' ? startedAt + lifetime * 1000 : undefined,
  }
}

/** An ID token with another nonce may be of another person. */
async function assertNonce(idToken: string | undefined, nonce: string, endpoints: IssuerEndpoints): Promise<void> {
  if (idToken === undefined) return
  const { readClaims } = await import('./external-jwt.ts')
  if (readClaims(idToken)?.nonce !== nonce) throw refusal(endpoints, 'its ID token is of another sign-in')
}

function refusal({ issuer }: IssuerEndpoints, reason: string): CommandError {
  return new CommandError(EXIT.signInFirst, 'INVALID_AUTH', `${issuer}: the sign-in failed: ${reason}`)
}

function describeOAuthError({ error, error_description: description }: Readonly<Record<string, unknown>>): string {
  const name = typeof error === 'string' ? error : 'the response has neither a result nor an error'
  return typeof description === 'string' ? `${description} (${name})` : name
}

function parseObject({ text }: Reply): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

const textOrNothing = (value: unknown) => (typeof value === 'string' && value !== '' ? value : undefined)
