// The tokens by which clients show routers their sessions: opaque ones, and since the first router of release 2, signed ones.
//
// Routers of release 2 verify the token of a session themselves, and accept no other form. A token goes to whichever router its client
// chooses, so from then on all are signed. The opaque ones that clients have are accepted until their sessions end.
import { hash } from 'node:crypto'
import type { Kysely } from 'kysely'
import type { ApiSessions } from '../../authentication/api-sessions/api-sessions.ts'
import { MAX_TOKEN_LENGTH, MAX_TOKEN_LIFETIME_MS, type TokenKeys } from '../../authentication/tokens/token-keys.ts'
import { controllerSettings, GLOBAL_SETTINGS } from '../../definitions/resources/controller-settings.ts'
import { sessions } from '../../definitions/resources/sessions.ts'
import type { Awaitable } from '../../foundation/awaitable.ts'
import { createBoundedCache } from '../../foundation/bounded-cache.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import type { PolicyType } from '../../policy/policy-index.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, get } from '../../storage/entities/entities.ts'
import type { Change, Commit } from '../../storage/transactions/changes.ts'
import type { Context } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'

/** A session as its token names it. */
export interface NamedSession {
  readonly id: string
  readonly apiSessionId: string
  readonly type: PolicyType
}

/** The session that a token is signed for, with its owner and its service. */
export interface SessionClaims extends NamedSession {
  readonly identityId: string
  readonly serviceId: string
}

/** How a session is found: by the id that a verified token names, or by an opaque token as it is. */
export type SessionReference = { readonly signed: NamedSession } | { readonly opaqueToken: string }

/** The members of a session that decide whether its client has a token that routers of release 2 accept. */
export interface TokenForm {
  readonly type: PolicyType
  /** Whether the client asked for the session when tokens were signed. */
  readonly hasSignedToken: boolean
}

const AUDIENCE = 'openziti'

// About 10 MB. A client asks for its session again with every connection, and dials with its token again and again.
const MAX_CACHED = 10_000

// A token is good for a year; one that is handed out is good for most of it.
const RENEWED_AFTER_MS = 30 * 24 * 60 * 60 * 1000

/** Every JWT begins with a JSON object in base64url. */
const JWT_PREFIX = 'ey'

/** Whether a token is a signed one, by its form. */
export function isSignedToken(token: string): boolean {
  return token.startsWith(JWT_PREFIX)
}

/** Whether clients receive signed tokens from a change on, because the first router of release 2 has connected. */
export function beginsSigning({ resource, id, before, after }: Change): boolean {
  if (resource !== controllerSettings.plural || id !== GLOBAL_SETTINGS) return false
  return before?.signsSessionsSince === null && after !== undefined && after.signsSessionsSince !== null
}

interface SignedToken {
  readonly token: string
  readonly signedAt: Instant
}

interface VerifiedToken {
  readonly signed: NamedSession
  readonly validUntil: Instant
}

interface SessionTokensParts {
  readonly apiSessions: Pick<ApiSessions, 'deriveToken' | 'get'>
  readonly clock: Clock
  /** The URL of the controller, by which tokens name their issuer. */
  readonly issuer: string
  readonly entities: EntityStore
  readonly keys: TokenKeys
}

export class SessionTokens implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'form of session tokens'
  readonly #parts: SessionTokensParts
  /** By session. */
  readonly #signed = createBoundedCache<SignedToken>(MAX_CACHED)
  /** By the hash of the token. */
  readonly #verified = createBoundedCache<VerifiedToken>(MAX_CACHED)
  /** When the first router connected that needs signed tokens; null if none has. */
  #signsSince: Instant | null = null

  constructor(parts: SessionTokensParts) {
    this.#parts = parts
  }

  /** Whether clients receive signed tokens. */
  get areSigned(): boolean {
    return this.#signsSince !== null
  }

  async rebuild(db: Kysely<Database>): Promise<void> {
    const row = await db
      .selectFrom('controller_settings')
      .select('signsSessionsSince')
      .where('id', '=', GLOBAL_SETTINGS)
      .executeTakeFirst()
    this.#signsSince = row?.signsSessionsSince ?? null
  }

  apply({ changes }: Commit): void {
    for (const { resource, operation, id, after } of changes) {
      if (resource === sessions.plural && operation === 'delete') this.#signed.delete(id)
      if (resource === controllerSettings.plural && id === GLOBAL_SETTINGS && after)
        this.#signsSince = after.signsSessionsSince
    }
  }

  /** Has clients receive signed tokens from now on, for ever: a router needs them. */
  async beginSigning(context: Context): Promise<void> {
    if (this.areSigned) return
    const { entities, keys } = this.#parts
    await keys.ensureKey(context)
    await context.write(async (tx) => {
      const settings = await get(tx, controllerSettings, GLOBAL_SETTINGS)
      if (settings.signsSessionsSince !== null) return
      await entities.update(tx, controllerSettings, settings, { signsSessionsSince: tx.clock.now() })
    })
  }

  /**
   * Whether the client of a session has to ask for it once more, because it has an opaque token. Clients that dial take the token that
   * they read; hosts keep the one that they were given, and would show it to routers of release 2 again and again.
   */
  isOutdated({ type, hasSignedToken }: TokenForm): boolean {
    return type === 'Bind' && this.areSigned && !hasSignedToken
  }

  /** The token that the client of a session receives. */
  getToken(session: SessionClaims): Awaitable<string> {
    if (!this.areSigned) return this.#parts.apiSessions.deriveToken(session.id)
    const now = this.#parts.clock.now()
    const last = this.#signed.get(session.id)
    if (last && now - last.signedAt < RENEWED_AFTER_MS && last.signedAt <= now) return last.token
    return this.#sign(session, now)
  }

  async #sign({ id, apiSessionId, identityId, serviceId, type }: SessionClaims, signedAt: Instant): Promise<string> {
    const { apiSessions, issuer, keys } = this.#parts
    const iat = Math.floor(signedAt / 1000)
    const token = await keys.sign({
      iss: issuer,
      sub: serviceId,
      aud: [AUDIENCE],
      iat,
      exp: iat + MAX_TOKEN_LIFETIME_MS / 1000,
      jti: id,
      z_asid: apiSessionId,
      z_iid: identityId,
      z_t: 's',
      z_st: type,
      // Routers look for the API session among those that they were told about, or in the token of its client.
      z_leg: (apiSessions.get(apiSessionId)?.clientId ?? null) === null,
    })
    this.#signed.set(id, { token, signedAt })
    return token
  }

  /** Returns the session that a token refers to; undefined for a signed token that is not valid. The session need not exist. */
  async findReference(token: string): Promise<SessionReference | undefined> {
    if (!isSignedToken(token)) return { opaqueToken: token }
    if (token.length > MAX_TOKEN_LENGTH) return undefined
    const now = this.#parts.clock.now()
    const key = hash('sha256', token, 'base64url')
    const lastVerified = this.#verified.get(key)
    if (lastVerified && now < lastVerified.validUntil) return lastVerified
    const verified = await this.#verify(token)
    if (verified) this.#verified.set(key, verified)
    return verified
  }

  async #verify(token: string): Promise<VerifiedToken | undefined> {
    const payload = await this.#parts.keys.verify(token, AUDIENCE)
    if (payload?.z_t !== 's') return undefined
    const { jti, z_asid: apiSessionId, z_st: type, exp } = payload
    if (typeof jti !== 'string' || typeof apiSessionId !== 'string' || typeof exp !== 'number') return undefined
    if (type !== 'Dial' && type !== 'Bind') return undefined
    return { signed: { id: jti, apiSessionId, type }, validUntil: exp * 1000 }
  }
}
