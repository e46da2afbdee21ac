// The authorization requests under way. Until its client has signed in, a request is in its id alone, sealed: anyone may begin as many as
// they like, at no cost in memory, and go on at any controller of the network. From then on it is in the row of the API session, too, where
// the transaction that issues its tokens finds whether its code was used. So a restart ends none.
//
// An id never changes what a request has come to: what was proven, and how often a code was wrong, is in rows alone. The session of a
// sign-in whose client does not come for its tokens ends by itself.
import type { Kysely } from 'kysely'
import type { PendingTokens } from '../../definitions/resources/api-sessions.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Database } from '../../storage/database.ts'
import { SIGN_IN_MS } from '../api-sessions/session-lifetime.ts'
import { findStoredRequest } from '../api-sessions/stored-requests.ts'
import type { AuthorizationParameters } from './authorization-parameters.ts'
import { type CarriedRequest, decodeCode, decodeRequest, encodeCode, encodeRequest } from './request-codec.ts'
import type { SealedTexts } from './sealed-texts.ts'

const CODE_LIFETIME_MS = 60_000
// The clocks of controllers differ by milliseconds, and one may be set back.
const MAX_AHEAD_MS = 60_000

/** The primary sign-in of a request: its API session, and what its client proved and reported. */
export interface RequestLogin extends PendingTokens {
  readonly apiSessionId: string
}

export interface PendingAuthorization extends CarriedRequest {
  /** As its client carries it. */
  readonly id: string
  /** The same in every id of the request. */
  readonly requestId: string
  /** The issuer by which its client reaches this controller. */
  readonly issuer: string
  readonly login: RequestLogin | undefined
}

interface RequestParts {
  readonly clock: Clock
  readonly db: Kysely<Database>
  readonly texts: SealedTexts
  /** Applies what other controllers have committed; undefined if there are none. */
  readonly catchUp: (() => Promise<void>) | undefined
}

export class AuthorizationRequests {
  readonly #parts: RequestParts

  constructor(parts: RequestParts) {
    this.#parts = parts
  }

  /** Returns the id of a new request. */
  begin(parameters: Omit<AuthorizationParameters, 'isSilent'>, configTypes: readonly string[]): string {
    const { clock, texts } = this.#parts
    return encodeRequest(texts, { ...parameters, configTypes, beganAt: clock.now(), browser: undefined })
  }

  /** Returns a request that is under way; undefined if its time is over, its code was redeemed, or another browser has signed in. */
  async find(id: string, issuer: string): Promise<PendingAuthorization | undefined> {
    const carried = decodeRequest(this.#parts.texts, id)
    if (!carried || !this.#isWithin(SIGN_IN_MS, carried.beganAt)) return undefined
    const storedRequest = await findStoredRequest(this.#parts.db, carried.requestId)
    if (!storedRequest) return { ...carried, id, issuer, login: undefined }
    const { apiSessionId, authorization } = storedRequest
    const { pending } = authorization
    if (!pending) return undefined
    const browser = pending.browser ?? carried.browser
    if (carried.browser !== undefined && carried.browser !== browser) return undefined
    // A browser does not complete what was begun without its pages: by another client, for all that is known.
    const login = pending.browser === browser ? { ...pending, apiSessionId } : undefined
    return { ...carried, browser, id, issuer, login }
  }

  /** Returns the same request with what other controllers know of it. @throws STORAGE_UNAVAILABLE */
  async follow(request: PendingAuthorization): Promise<PendingAuthorization | undefined> {
    if (!this.#parts.catchUp) return request
    await this.followOthers()
    return this.find(request.id, request.issuer)
  }

  /** Applies what other controllers have committed by now. @throws STORAGE_UNAVAILABLE */
  async followOthers(): Promise<void> {
    await this.#parts.catchUp?.()
  }

  /** Ties a request to a browser from now on, by another id: the sign-in of any other client does not count for it. */
  claim(request: PendingAuthorization, browser: string): PendingAuthorization {
    const id = encodeRequest(this.#parts.texts, { ...request, browser }, request.requestId)
    return { ...request, id, browser, login: undefined }
  }

  issueCode({ apiSessionId }: RequestLogin): string {
    const { clock, texts } = this.#parts
    return encodeCode(texts, { apiSessionId, issuedAt: clock.now() })
  }

  /** Returns which session a code leads to, and whether its time is over; undefined if it was not issued here. */
  readCode(code: string): { readonly apiSessionId: string; readonly isExpired: boolean } | undefined {
    const carried = decodeCode(this.#parts.texts, code)
    if (!carried || !this.#isWithin(SIGN_IN_MS, carried.issuedAt)) return undefined
    return { apiSessionId: carried.apiSessionId, isExpired: !this.#isWithin(CODE_LIFETIME_MS, carried.issuedAt) }
  }

  #isWithin(durationMs: number, beganAt: Instant): boolean {
    const age = this.#parts.clock.now() - beganAt
    return age >= -MAX_AHEAD_MS && age < durationMs
  }
}
