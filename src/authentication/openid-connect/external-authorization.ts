// Sends a browser to the issuer of an external signer, and redeems the code that it comes back with (OpenID Connect Core, section 3.1).
//
// The controller is a public client there, with PKCE. What the issuer issues is verified as any token of the signer is.
import {
  createAuthorizationUrl,
  createRandomText,
  type IssuerEndpoints,
  readEndpoints,
  toDiscoveryUrl,
} from '../../client/authorization-url.ts'
import { OutboundError } from '../../client/outbound-client.ts'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { isEqualInConstantTime } from '../../foundation/constant-time.ts'
import { errors } from '../../foundation/errors.ts'
import { RateLimit } from '../../foundation/rate-limit.ts'
import type { ExternalSigners } from '../signers/external-signers.ts'
import type { Signer } from '../signers/signers.ts'
import type { PendingAuthorization } from './authorization-requests.ts'

// Anyone may begin one, and each is a request to the issuer. All people behind one proxy are one source.
const LIMIT = { perSecond: 5, burst: 200 }

// An issuer that does not respond is not asked by the next ones, whom it would keep waiting, too.
const RETRY_AFTER_MS = 10_000
const MAX_FAILURES = 100

/** Below the issuer of the controller: where the issuer of a signer sends browsers back to. */
const CALLBACK_PATH = '/login/external/callback'

interface ExternalParts {
  readonly clock: Clock
  readonly signers: Pick<ExternalSigners, 'outbound'>
}

export class ExternalAuthorizations {
  readonly #clock: Clock
  readonly #signers: ExternalParts['signers']
  readonly #limit = new RateLimit(LIMIT)
  /** URL of an issuer → the request for its document that is under way, which others wait for, too. */
  readonly #discoveries = new Map<string, Promise<IssuerEndpoints>>()
  /** URL of an issuer → why it failed lately. */
  readonly #failures = createBoundedCache<{ readonly error: OutboundError; readonly until: Instant }>(MAX_FAILURES)

  constructor({ clock, signers }: ExternalParts) {
    this.#clock = clock
    this.#signers = signers
  }

  /**
   * Begins, and returns the address that the browser goes to.
   * @throws OutboundError if the issuer cannot be reached, SERVER_TOO_MANY_REQUESTS
   */
  async begin(request: PendingAuthorization, signer: Signer): Promise<string> {
    this.#requirePlace(request)
    const { audience, clientId, externalAuthUrl, scopes, targetToken } = signer
    const endpoints = await this.#discover(externalAuthUrl ?? '')
    const [state, redirectUri] = [`${request.id}.${createRandomText()}`, request.issuer + CALLBACK_PATH]
    const { url, verifier, nonce } = createAuthorizationUrl({
      ...{ clientId: clientId ?? '', endpoint: endpoints.authorization, redirectUri, state },
      scopes: [...new Set(['openid', ...scopes.filter((scope) => scope !== 'offline_access')])],
      audience: targetToken === 'ACCESS' ? (audience ?? undefined) : undefined,
    })
    request.external = { signerId: signer.id, state, verifier, nonce, redirectUri, endpoints }
    return url
  }

  /**
   * Redeems the code of a browser that came back, once. Returns the token that signs in; undefined if the issuer refused.
   * @throws OutboundError if the issuer cannot be reached, or issues no token, UNAUTHORIZED if the browser comes from elsewhere
   */
  async complete(
    request: PendingAuthorization,
    signer: Signer,
    { code, issuer, state }: { code: string | undefined; issuer: string | undefined; state: string },
  ): Promise<string | undefined> {
    const { external } = request
    const isOwn = external?.signerId === signer.id && isEqualInConstantTime(external.state, state)
    const isOfIssuer = issuer === undefined || issuer === external?.endpoints.issuer
    if (!external || !isOwn || !isOfIssuer) throw errors.UNAUTHORIZED({ message: 'there is no such sign-in' })
    request.external = undefined
    if (code === undefined) return undefined
    this.#requirePlace(request)
    const { value } = await this.#signers.outbound.postForm(external.endpoints.token, {
      grant_type: 'authorization_code',
      client_id: signer.clientId ?? '',
      code,
      code_verifier: external.verifier,
      redirect_uri: external.redirectUri,
    })
    const { id_token: idToken, access_token: accessToken } = value as Record<string, unknown>
    if (typeof idToken === 'string' && (await readNonce(idToken)) !== external.nonce)
      throw new OutboundError('the ID token is of another sign-in')
    const token = signer.targetToken === 'ID' ? idToken : accessToken
    if (typeof token !== 'string')
      throw new OutboundError('the issuer issued no token of the kind that the signer names')
    return token
  }

  #requirePlace({ source }: PendingAuthorization): void {
    const seconds = this.#limit.take(source, this.#clock.monotonic())
    if (seconds > 0) throw errors.SERVER_TOO_MANY_REQUESTS(undefined, { retryAfterSeconds: seconds })
  }

  #discover(issuerUrl: string): Promise<IssuerEndpoints> {
    const underWay = this.#discoveries.get(issuerUrl)
    if (underWay) return underWay
    const failure = this.#failures.get(issuerUrl)
    if (failure && this.#clock.monotonic() < failure.until) return Promise.reject(failure.error)
    const discovery = this.#fetchEndpoints(issuerUrl)
      .catch((error) => {
        const until = this.#clock.monotonic() + RETRY_AFTER_MS
        if (error instanceof OutboundError) this.#failures.set(issuerUrl, { error, until })
        throw error
      })
      .finally(() => this.#discoveries.delete(issuerUrl))
    this.#discoveries.set(issuerUrl, discovery)
    return discovery
  }

  async #fetchEndpoints(issuerUrl: string): Promise<IssuerEndpoints> {
    const { outbound } = this.#signers
    const url = toDiscoveryUrl(issuerUrl)
    const objection = outbound.findObjection(url)
    if (objection) throw new OutboundError(`the URL of the issuer ${objection}`)
    const endpoints = readEndpoints(issuerUrl, (await outbound.fetchJson(url)).value)
    if (typeof endpoints === 'string') throw new OutboundError(endpoints)
    for (const endpoint of [endpoints.authorization, endpoints.token]) {
      const reason = outbound.findObjection(endpoint)
      if (reason) throw new OutboundError(`an endpoint of the issuer ${reason}`)
    }
    return endpoints
  }
}

/** The nonce of an ID token, which came from the issuer itself; undefined if it has none, or is not a token. */
async function readNonce(idToken: string): Promise<unknown> {
  const { decodeJwt } = await import('jose')
  try {
    return decodeJwt(idToken).nonce
  } catch {
    return undefined
  }
}

/** The id of the request that a state belongs to. */
export function readRequestId(state: string): string {
  return state.slice(0, state.indexOf('.'))
}
