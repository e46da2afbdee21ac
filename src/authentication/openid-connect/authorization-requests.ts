// The authorization requests under way: in memory, and bounded, because anyone may begin one.
//
// A request of a client that has not proven a credential yet gives way to later ones, first to those of the same source. One whose
// client has signed in is bounded by the limits of sign-ins. A restart loses all of them, and clients begin again, as they do if they go on
// at another controller. The session of a sign-in whose client does not come for its tokens ends by itself.
import { hash, randomBytes } from 'node:crypto'
import type { IssuerEndpoints } from '../../client/authorization-url.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { newToken } from '../../foundation/ids.ts'
import type { VerifiedToken } from '../../storage/external-tokens.ts'
import { SIGN_IN_MS } from '../api-sessions/session-lifetime.ts'
import type { AuthorizationParameters } from './authorization-parameters.ts'

const CODE_LIFETIME_MS = 60_000

/** The limits of requests without a sign-in. Clients sign in within a second of their request, people within a minute. */
export interface RequestLimits {
  readonly maxRequests: number
  readonly maxPerSource: number
}
const LIMITS: RequestLimits = { maxRequests: 20_000, maxPerSource: 2_000 }

/** The primary sign-in of a request: its API session, and what its client proved and reported. */
export interface RequestLogin {
  readonly apiSessionId: string
  /** The tokens of external signers that the client sent with its credential. */
  readonly externalTokens: readonly VerifiedToken[]
  readonly envInfo: Readonly<Record<string, unknown>> | undefined
  readonly sdkInfo: Readonly<Record<string, unknown>> | undefined
  /** The request for a session certificate. */
  readonly csr: string | undefined
  /** Address and port of the client. */
  readonly remoteAddress: string
}

/** A browser on its way to the issuer of a signer and back. */
export interface ExternalAuthorization {
  readonly signerId: string
  readonly state: string
  readonly verifier: string
  readonly nonce: string
  readonly redirectUri: string
  readonly endpoints: IssuerEndpoints
}

export interface PendingAuthorization extends AuthorizationParameters {
  readonly id: string
  readonly issuer: string
  readonly configTypes: readonly string[]
  readonly source: string
  readonly expiresAt: Instant
  login: RequestLogin | undefined
  /** The hash of the key of the browser that was shown a page of the request; no other client may go on with it. */
  browser: string | undefined
  /** The browser is on its way to the issuer of a signer. */
  external: ExternalAuthorization | undefined
  /** The code that was issued last: its hash. */
  code: { readonly hash: string; readonly expiresAt: Instant } | undefined
  /** A code of the request was exchanged for tokens. It stays, so that a second use of the code is noticed. */
  isRedeemed: boolean
}

type NewRequest = Pick<PendingAuthorization, 'issuer' | 'configTypes' | 'source'> & AuthorizationParameters

export class AuthorizationRequests {
  readonly #clock: Clock
  readonly #limits: RequestLimits
  /** The part of the message about an unknown request that names another reason than its age. */
  readonly hint: string
  /** Requests without a sign-in, in the order in which they began; below, those with one. */
  readonly #open = new Map<string, PendingAuthorization>()
  readonly #signedIn = new Map<string, PendingAuthorization>()
  /** Source → the ids of its open requests. */
  readonly #bySource = new Map<string, Set<string>>()
  /** Hash of a code → its request. */
  readonly #byCode = new Map<string, PendingAuthorization>()

  /** @param isShared whether there may be other controllers, which do not know the requests of this one */
  constructor(clock: Clock, limits: RequestLimits = LIMITS, isShared = false) {
    this.#clock = clock
    this.hint = isShared ? ', or it began at another controller: all steps of a sign-in have to be sent to one' : ''
    this.#limits = limits
  }

  get size(): number {
    return this.#open.size + this.#signedIn.size
  }

  begin(values: NewRequest): PendingAuthorization {
    this.#removeExpired()
    const ofSource = this.#bySource.get(values.source) ?? new Set<string>()
    if (ofSource.size >= this.#limits.maxPerSource) this.#removeFirst(ofSource)
    else if (this.#open.size >= this.#limits.maxRequests) this.#removeFirst(this.#open.keys())
    const expiresAt = this.#clock.monotonic() + SIGN_IN_MS
    const request: PendingAuthorization = {
      // A copy, because a part of a text keeps all of it in memory: the whole form, or the whole address.
      ...structuredClone(values),
      id: newToken(),
      expiresAt,
      login: undefined,
      browser: undefined,
      external: undefined,
      code: undefined,
      isRedeemed: false,
    }
    this.#open.set(request.id, request)
    this.#bySource.set(values.source, ofSource.add(request.id))
    return request
  }

  /** Returns a request that is under way; undefined if its time is over, or its code was redeemed. */
  find(id: string): PendingAuthorization | undefined {
    const request = this.#open.get(id) ?? this.#signedIn.get(id)
    return request && !request.isRedeemed && this.#clock.monotonic() < request.expiresAt ? request : undefined
  }

  /** Stores the sign-in of a request. An earlier one of it counts no more, nor does a code that followed from that. */
  setLogin(request: PendingAuthorization, login: RequestLogin): void {
    this.#dropCode(request)
    request.login = login
    this.#removeOpen(request.id)
    this.#signedIn.set(request.id, request)
    const [oldest] = this.#signedIn.size > this.#limits.maxRequests ? this.#signedIn.values() : []
    if (oldest) this.#removeSignedIn(oldest)
  }

  /** Returns a new code for a request, in place of an earlier one. */
  issueCode(request: PendingAuthorization): string {
    this.#dropCode(request)
    const code = randomBytes(32).toString('base64url')
    request.code = { hash: hashCode(code), expiresAt: this.#clock.monotonic() + CODE_LIFETIME_MS }
    this.#byCode.set(request.code.hash, request)
    return code
  }

  /** Returns the request of a code, also if the code was redeemed; undefined if its time is over. */
  findByCode(code: string): PendingAuthorization | undefined {
    const request = this.#byCode.get(hashCode(code))
    if (!request?.code) return undefined
    const expiresAt = request.isRedeemed ? request.expiresAt : request.code.expiresAt
    return this.#clock.monotonic() < expiresAt ? request : undefined
  }

  /** Ends the use of a request after its code was redeemed. */
  redeem(request: PendingAuthorization): void {
    request.isRedeemed = true
  }

  /** Requests with a sign-in are not in the order in which they began, so that one may stay until the ones before it are removed. */
  #removeExpired(): void {
    const now = this.#clock.monotonic()
    for (const request of this.#signedIn.values()) {
      if (now < request.expiresAt) break
      this.#removeSignedIn(request)
    }
    for (const { id, expiresAt } of this.#open.values()) {
      if (now < expiresAt) break
      this.#removeOpen(id)
    }
  }

  #removeSignedIn(request: PendingAuthorization): void {
    this.#dropCode(request)
    this.#signedIn.delete(request.id)
  }

  #dropCode({ code }: PendingAuthorization): void {
    if (code) this.#byCode.delete(code.hash)
  }

  #removeFirst(ids: Iterable<string>): void {
    for (const id of ids) {
      this.#removeOpen(id)
      return
    }
  }

  #removeOpen(id: string): void {
    const request = this.#open.get(id)
    if (!request) return
    this.#open.delete(id)
    const ofSource = this.#bySource.get(request.source)
    ofSource?.delete(id)
    if (ofSource?.size === 0) this.#bySource.delete(request.source)
  }
}

function hashCode(code: string): string {
  return hash('sha256', code, 'base64url')
}
