// The access tokens of requests: verified once, and then found by their digest until they end. So are wrong ones, for a while.
//
// Whether the session of a token still exists, and what it may do, is decided at each request.
import { hash } from 'node:crypto'
import { apiSessions } from '../../definitions/resources/api-sessions.ts'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { Commit } from '../../storage/transactions/changes.ts'
import type { Cache } from '../../storage/transactions/projection.ts'
import type { ApiSessions } from '../api-sessions/api-sessions.ts'
import type { TokenKeys } from '../tokens/token-keys.ts'
import { CLIENT_IDS } from './clients.ts'
import type { RevokedTokens } from './revoked-tokens.ts'

/** A verified access token, as far as requests depend on it. */
export interface AccessToken {
  readonly token: string
  readonly apiSessionId: string
  readonly jti: string
  readonly expiresAt: Instant
  /** SHA-1 of the certificates of which the client must hold one; empty if the token is not bound. */
  readonly fingerprints: readonly string[]
  /** The kind of the client, as it reports it. */
  readonly sdkType: string | undefined
}

/** The reason for which a token is not accepted: it is of another kind, it has expired, or anything else is wrong. */
export type TokenFault = 'missing' | 'expired' | 'invalid'

// After a refresh, requests with the earlier token may still be under way.
const MAX_PER_SESSION = 2
// Some 130 MB.
const MAX_TOKENS = 200_000
// A client that does not know that its token has ended repeats it; for this time that costs no signature check.
const FAULT_MS = 10_000
const MAX_FAULTS = 10_000

type CachedToken = Omit<AccessToken, 'token'>

export class VerifiedAccessTokens implements Cache {
  readonly kind = 'cache'
  readonly name = 'verified access tokens'
  readonly #clock: Clock
  readonly #keys: TokenKeys
  readonly #revoked: RevokedTokens
  readonly #sessions: Pick<ApiSessions, 'get'>
  /** By digest, in the order in which they were verified. */
  readonly #verified = new Map<string, CachedToken>()
  /** Digest → why a token was not accepted lately. */
  readonly #faults = createBoundedCache<{ readonly fault: TokenFault; readonly until: Instant }>(MAX_FAULTS)
  /** API session → the digests of its tokens. */
  readonly #digests = new Map<string, readonly string[]>()

  constructor(clock: Clock, keys: TokenKeys, revoked: RevokedTokens, sessions: Pick<ApiSessions, 'get'>) {
    this.#clock = clock
    this.#revoked = revoked
    this.#sessions = sessions
    this.#keys = keys
  }

  /** Whether a token may be one of this controller, by the key that it names. */
  isCandidate(token: string): boolean {
    return this.#keys.isNamedBy(token)
  }

  /** Returns a token that was verified before. */
  findVerified(token: string): AccessToken | undefined {
    const digest = toDigest(token)
    const cached = this.#verified.get(digest)
    if (!cached) return undefined
    if (this.#clock.now() < cached.expiresAt) return { ...cached, token }
    this.#drop(digest, cached)
    return undefined
  }

  /** Returns a token that is valid now, also if it was not verified before. */
  async findValid(token: string): Promise<AccessToken | undefined> {
    const accessToken = this.findVerified(token) ?? (await this.verify(token))
    return typeof accessToken === 'string' || this.#revoked.has(accessToken.jti) ? undefined : accessToken
  }

  async verify(token: string): Promise<AccessToken | TokenFault> {
    const digest = toDigest(token)
    const recent = this.#faults.get(digest)
    if (recent && this.#clock.monotonic() < recent.until) return recent.fault
    const result = await this.#judge(token)
    if (typeof result !== 'string') {
      // No commit would remove the token of a session that has ended.
      if (this.#sessions.get(result.apiSessionId)) this.#add(digest, result)
      return { ...result, token }
    }
    this.#faults.set(digest, { fault: result, until: this.#clock.monotonic() + FAULT_MS })
    return result
  }

  async #judge(token: string): Promise<CachedToken | TokenFault> {
    const claims = await this.#keys.judge(token, CLIENT_IDS)
    if (typeof claims === 'string') return claims
    const { exp, jti, z_asid: apiSessionId, z_t: kind, z_cfs: fingerprints, z_sdk: sdk } = claims
    if (kind !== 'a' || typeof apiSessionId !== 'string' || typeof jti !== 'string') return 'missing'
    return {
      apiSessionId,
      jti,
      expiresAt: (exp as number) * 1000,
      fingerprints: Array.isArray(fingerprints) ? fingerprints.map(String) : [],
      sdkType: readType(sdk),
    }
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id } of changes)
      if (resource === apiSessions.plural && operation === 'delete') this.#evict(id)
  }

  clear(): void {
    this.#verified.clear()
    this.#faults.clear()
    this.#digests.clear()
  }

  /** Drops the tokens of a session that has ended. */
  #evict(apiSessionId: string): void {
    for (const digest of this.#digests.get(apiSessionId) ?? []) this.#verified.delete(digest)
    this.#digests.delete(apiSessionId)
  }

  #drop(digest: string, { apiSessionId }: CachedToken): void {
    this.#verified.delete(digest)
    const others = (this.#digests.get(apiSessionId) ?? []).filter((other) => other !== digest)
    if (others.length > 0) this.#digests.set(apiSessionId, others)
    else this.#digests.delete(apiSessionId)
  }

  #add(digest: string, token: CachedToken): void {
    const { apiSessionId } = token
    const earlier = (this.#digests.get(apiSessionId) ?? []).filter((other) => other !== digest)
    for (const dropped of earlier.splice(0, Math.max(0, earlier.length + 1 - MAX_PER_SESSION)))
      this.#verified.delete(dropped)
    this.#digests.set(apiSessionId, [...earlier, digest])
    this.#verified.set(digest, token)
    const [oldest] = this.#verified.size > MAX_TOKENS ? this.#verified.values() : []
    if (oldest) this.#evict(oldest.apiSessionId)
  }
}

function toDigest(token: string): string {
  return hash('sha256', token, 'base64url')
}

function readType(sdk: unknown): string | undefined {
  const type = typeof sdk === 'object' && sdk !== null ? (sdk as { type?: unknown }).type : undefined
  return typeof type === 'string' ? type : undefined
}
