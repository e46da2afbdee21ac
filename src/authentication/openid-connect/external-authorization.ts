// Sends a browser to the issuer of an external signer, and redeems the code that it comes back with (OpenID Connect Core, section 3.1).
//
// The controller is a public client there, with PKCE. What the issuer issues is verified as any token of the signer is. The browser carries
// what its way back is judged by, sealed, so that it may come back to any controller of the network.
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
import type { SealedTexts } from './sealed-texts.ts'

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
  readonly texts: SealedTexts
}

/** A browser on its way to the issuer of a signer and back. */
export interface ExternalAuthorization {
  /** The id of the request, as its client carries it. */
  readonly id: string
  readonly signerId: string
  readonly state: string
  readonly verifier: string
  readonly nonce: string
  readonly redirectUri: string
  /** The issuer, and where it redeems codes. */
  readonly issuer: string
  readonly tokenEndpoint: string
}

/** The response of an issuer that a browser comes back with, and the address of the browser. */
export interface ExternalResponse {
  readonly code: string | undefined
  readonly issuer: string | undefined
  readonly state: string
  readonly source: string
}

export class ExternalAuthorizations {
  readonly #clock: Clock
  readonly #signers: ExternalParts['signers']
  readonly #texts: SealedTexts
  readonly #limit = new RateLimit(LIMIT)
  /** URL of an issuer → the request for its document that is under way, which others wait for, too. */
  readonly #discoveries = new Map<string, Promise<IssuerEndpoints>>()
  /** URL of an issuer → why it failed lately. */
  readonly #failures = createBoundedCache<{ readonly error: OutboundError; readonly until: Instant }>(MAX_FAILURES)

  constructor({ clock, signers, texts }: ExternalParts) {
    this.#clock = clock
    this.#signers = signers
    this.#texts = texts
  }

  /**
   * Begins, and returns the address that the browser goes to, with what it has to bring back.
   * @param source where the browser is
   * @throws OutboundError if the issuer cannot be reached, SERVER_TOO_MANY_REQUESTS
   */
  async begin(
    request: PendingAuthorization,
    signer: Signer,
    source: string,
  ): Promise<{ readonly url: string; readonly sealed: string }> {
    this.#requirePlace(source)
    const { audience, clientId, externalAuthUrl, scopes, targetToken } = signer
    const endpoints = await this.#discover(externalAuthUrl ?? '')
    const { id, issuer: ownIssuer, requestId } = request
    const [state, redirectUri] = [`${requestId}.${createRandomText()}`, ownIssuer + CALLBACK_PATH]
    const { url, verifier, nonce } = createAuthorizationUrl({
      ...{ clientId: clientId ?? '', endpoint: endpoints.authorization, redirectUri, state },
      scopes: [...new Set(['openid', ...scopes.filter((scope) => scope !== 'offline_access')])],
      audience: targetToken === 'ACCESS' ? (audience ?? undefined) : undefined,
    })
    const external: ExternalAuthorization = {
      ...{ id, signerId: signer.id, state, verifier, nonce, redirectUri },
      ...{ issuer: endpoints.issuer, tokenEndpoint: endpoints.token },
    }
    return { url, sealed: this.#texts.seal('external', Buffer.from(JSON.stringify(external))) }
  }

  /** Returns what a browser has brought back; undefined if no controller of this network gave it to one. */
  open(sealed: string): ExternalAuthorization | undefined {
    const content = this.#texts.open('external', sealed)
    return content && (JSON.parse(content.toString()) as ExternalAuthorization)
  }

  /**
   * Redeems the code of a browser that came back. Returns the token that signs in; undefined if the issuer refused.
   * @throws OutboundError if the issuer cannot be reached, or issues no token, UNAUTHORIZED if the browser comes from elsewhere
   */
  async complete(
    external: ExternalAuthorization,
    signer: Signer,
    { code, issuer, state, source }: ExternalResponse,
  ): Promise<string | undefined> {
    const isOwn = external.signerId === signer.id && isEqualInConstantTime(external.state, state)
    const isOfIssuer = issuer === undefined || issuer === external.issuer
    if (!isOwn || !isOfIssuer) throw errors.UNAUTHORIZED({ message: 'there is no such sign-in' })
    if (code === undefined) return undefined
    this.#requirePlace(source)
    const { value } = await this.#signers.outbound.postForm(external.tokenEndpoint, {
      grant_type: 'authorization_code',
      client_id: signer.clientId ?? '',
      code,
      code_verifier: external.verifier,
      redirect_uri: external.redirectUri,
    })
    const { id_token: idToken, access_token: accessToken } = (value ?? {}) as Record<string, unknown>
    if (typeof idToken === 'string' && (await readNonce(idToken)) !== external.nonce)
      throw new OutboundError('the ID token is of another sign-in')
    const token = signer.targetToken === 'ID' ? idToken : accessToken
    if (typeof token !== 'string')
      throw new OutboundError('the issuer issued no token of the kind that the signer names')
    return token
  }

  #requirePlace(source: string): void {
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

/** The request that a state belongs to. */
export function readRequestId(state: string): string {
  return state.slice(0, Math.max(0, state.indexOf('.')))
}
