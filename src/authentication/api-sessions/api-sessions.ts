// API sessions: every live session in memory, and the table that outlives the process.
import type { Kysely } from 'kysely'
import { apiSessions, type StoredAuthorization } from '../../definitions/resources/api-sessions.ts'
import type { Entity } from '../../definitions/resources/define.ts'
import type { Clock, Instant } from '../../foundation/clock.ts'
import { newId, newToken } from '../../foundation/ids.ts'
import type { Database } from '../../storage/database.ts'
import { type EntityStore, newEntity } from '../../storage/entities/entities.ts'
import type { Change, Commit, SessionIdentity } from '../../storage/transactions/changes.ts'
import type { Context, WriteContext } from '../../storage/transactions/context.ts'
import type { DerivedRows } from '../../storage/transactions/projection.ts'
import type { Method } from '../sign-in/authentication-methods.ts'
import { type ApiSessionTokens, hashToken } from './api-session-tokens.ts'
import {
  type ApiSessionIdentity,
  internConfigTypes,
  type LiveApiSession,
  LiveApiSessions,
} from './live-api-sessions.ts'
import { SessionActivity } from './session-activity.ts'
import { isAmong, listRevoked, type RevokedSessions, toSessionBasis } from './session-basis.ts'
import { type SessionLifetime, SIGN_IN_MS } from './session-lifetime.ts'
import { isSameIdentity, queryRevocations, readSessions, toSessionProgress } from './session-rows.ts'
import { findServiceSessions, MAX_DELETED, MAX_SERVICE_SESSIONS, SessionTermination } from './session-termination.ts'
import { SessionTotp } from './session-totp.ts'

/** The result of a sign-in. */
export interface NewApiSession {
  /** The identity, as read in the transaction that stores the session. */
  readonly identity: ApiSessionIdentity
  readonly authenticatorId: string
  /** The authority of the certificate that it began with, if an operator brought that authority. */
  readonly caId?: string | null
  /** SHA-1 of that certificate. */
  readonly certFingerprint?: string | null
  /** The external id that named the identity. */
  readonly externalId?: string | null
  /** SHA-256 of the key of the token that it began by. */
  readonly signerKey?: string | null
  /** The client of OpenID Connect that it begins by. */
  readonly clientId?: string | null
  /** The authorization request that it begins by, and what is known of that. */
  readonly authorizationRequestId?: string | null
  readonly authorization?: StoredAuthorization | null
  readonly ipAddress: string
  /** Ids of config types, or `all` alone. */
  readonly configTypes: readonly string[]
  readonly owesTotp?: boolean
  readonly isCertExtendable?: boolean
  readonly improperClientCertChain?: boolean
}

/** Selects the sessions of an identity except one, or those that began with an authenticator: few enough for one transaction. */
export type ApiSessionSelection =
  | { readonly identityId: string; readonly except?: string | undefined }
  | { readonly authenticatorId: string }

/** How a new session is stored. */
export interface ApiSessionStart {
  readonly id?: string
  readonly audit?: 'event' | 'none'
  /** How the identity signed in. */
  readonly method?: Method
}

/** The parts that store sessions, and their limits. */
interface ApiSessionsParts {
  readonly entities: EntityStore
  readonly tokens: ApiSessionTokens
  readonly clock: Clock
  readonly lifetime: SessionLifetime
  readonly maxPerIdentity: number
  /** Whether other controllers have the same sessions. */
  readonly isShared: boolean
}

/**
 * The part of its idle timeout for which a session was not used, if its use has to be written soon. Other controllers hear of more
 * frequent uses by each flush.
 */
const URGENT_PART = 1 / 2
/** How long after its end the row of a session is deleted, so that a use at another controller arrives before. */
const SHARED_GRACE_MS = 10_000

export class ApiSessions implements DerivedRows {
  readonly kind = 'derived rows'
  readonly name = 'API sessions'
  /** The second factor of sessions. */
  readonly totp: SessionTotp
  readonly lifetime: SessionLifetime
  readonly termination: SessionTermination
  readonly #entities: EntityStore
  readonly #tokens: ApiSessionTokens
  readonly #clock: Clock
  readonly #isShared: boolean
  #live = new LiveApiSessions()
  readonly #activity = new SessionActivity()
  // In memory alone: after a start, and at another controller, the next request of a session says it again.
  readonly #withShownToken = new Set<string>()

  constructor({ entities, tokens, clock, lifetime, maxPerIdentity, isShared }: ApiSessionsParts) {
    this.totp = new SessionTotp(entities)
    this.lifetime = lifetime
    this.termination = new SessionTermination({
      entities,
      lifetime,
      maxPerIdentity,
      activity: this.#activity,
      graceMs: isShared ? SHARED_GRACE_MS : 0,
      live: () => this.#live,
      hasShownToken: (id) => this.#withShownToken.has(id),
      remove: (id) => this.#remove(id),
    })
    this.#entities = entities
    this.#tokens = tokens
    this.#clock = clock
    this.#isShared = isShared
  }

  get size(): number {
    return this.#live.size
  }

  /** Takes up every session that was used within the timeout. Memory knows of later uses than the rows do. */
  async rebuild(db: Kysely<Database>): Promise<void> {
    const now = this.#clock.now()
    const live = new LiveApiSessions()
    const used = new Set<LiveApiSession>()
    const isInMemory = this.#live.size > 0
    const revocations = await queryRevocations(db)
    for await (const page of readSessions(db, isInMemory ? 0 : now - this.lifetime.maxTimeoutMs)) {
      for (const { n, session: stored } of page) {
        const currentSession = this.#live.get(stored.id)
        const session = this.#activity.shiftStored(stored, currentSession)
        // If the clock was set back since, a session of an earlier process was used later than now.
        const lastActivityAt = Math.min(now, Math.max(session.lastActivityAt, currentSession?.lastActivityAt ?? 0))
        const { basis, identity } = session
        const authenticatedAt = currentSession?.authenticatedAt ?? Math.min(now, session.authenticatedAt)
        if (this.lifetime.getEnd({ ...session, lastActivityAt, authenticatedAt }, basis.method) <= now) continue
        const isRevoked = revocations.some(({ newest, of }) => n <= newest && isAmong(of, basis, identity.authPolicyId))
        const added = live.add({ ...session, lastActivityAt, authenticatedAt }, isRevoked)
        const isWritten = lastActivityAt === stored.lastActivityAt && session === stored
        if (!isRevoked && !isWritten) used.add(added)
      }
    }
    this.#live = live
    for (const id of this.#withShownToken) if (!live.get(id)) this.#withShownToken.delete(id)
    this.#activity.replace(used, (id) => live.get(id) !== undefined)
  }

  /** Compares the sessions, and what memory holds of their identities, with the rows. */
  async findDifferences(db: Kysely<Database>): Promise<string[]> {
    const rows = new Map<string, LiveApiSession>()
    for await (const page of readSessions(db, 0)) for (const { session } of page) rows.set(session.id, session)
    const differences: string[] = []
    for (const { id, identity, tokenHash } of this.#live.all()) {
      const row = rows.get(id)
      if (!row) differences.push(`only memory holds the API session ${id}`)
      else if (row.tokenHash !== tokenHash || !isSameIdentity(row.identity, identity))
        differences.push(`the API session ${id} has other rights or another token than its row`)
    }
    return differences
  }

  /** The token of the API session, or service session, with this id. */
  deriveToken(id: string): string {
    return this.#tokens.derive(id)
  }

  /** Returns the live session of a token, and records the activity. */
  use(token: string, now: Instant): LiveApiSession | undefined {
    return this.#use(this.#live.findByTokenHash(hashToken(token)), now)
  }

  /** Whether the session of a token has ended a short time ago, so that it never lives again, whatever the log holds. */
  hasEnded(token: string): boolean {
    return this.#live.hasEnded(hashToken(token))
  }

  /** Returns a live session that a signed token names, and records the activity. */
  useById(id: string, now: Instant): LiveApiSession | undefined {
    return this.#use(this.#live.get(id), now)
  }

  #use(session: LiveApiSession | undefined, now: Instant): LiveApiSession | undefined {
    if (!session || this.#hasEnded(session, now)) return undefined
    const isUrgent =
      this.#isShared && now - session.lastActivityAt >= URGENT_PART * this.lifetime.getTimeoutMs(session.clientId)
    session.lastActivityAt = now
    if (isUrgent) this.#activity.addUrgent(session)
    else this.#activity.add(session)
    return session
  }

  /** Notes that a session has come with the token of a signer that its auth policy requires: those that never do end first. */
  noteShownToken(id: string): void {
    if (this.#live.get(id)) this.#withShownToken.add(id)
  }

  /** Shifts the times of all sessions after the wall clock was set. The next flush updates their rows. */
  followClock(milliseconds: number): void {
    for (const session of this.#live.all()) this.#activity.shift(session, milliseconds)
  }

  /** Whether an identity has a session that has not ended. */
  isSignedIn(identityId: string, now: Instant): boolean {
    return this.#live.listOfIdentity(identityId).some((session) => !this.#hasEnded(session, now))
  }

  /** The ids of all sessions. */
  listIds(): string[] {
    return Array.from(this.#live.all(), ({ id }) => id)
  }

  /** Returns a session, unless it has ended by now: its row is deleted up to some seconds later. */
  get(apiSessionId: string): LiveApiSession | undefined {
    const session = this.#live.get(apiSessionId)
    return session && this.#hasEnded(session, this.#clock.now()) ? undefined : session
  }

  #hasEnded(session: LiveApiSession, now: Instant): boolean {
    return this.lifetime.getEnd(session, session.basis.method) <= now
  }

  /** The live sessions of an identity. */
  listOfIdentity(identityId: string): readonly LiveApiSession[] {
    return this.#live.listOfIdentity(identityId)
  }

  // ---- inside transactions --------------------------------------------------------------------------------------------

  /** Stores a new session, and ends another one of its identity if that has too many. */
  async insert(
    tx: WriteContext,
    { identity, ...signIn }: NewApiSession,
    { id = newId(), audit = 'event', method }: ApiSessionStart = {},
  ): Promise<Entity<typeof apiSessions>> {
    const draft = newEntity(tx, apiSessions, {
      owesTotp: false,
      isCertExtendable: false,
      improperClientCertChain: false,
      externalId: null,
      signerKey: null,
      clientId: null,
      refreshTokenId: null,
      authorizationRequestId: null,
      authorization: null,
      hasTokens: false,
      endsAt: signIn.clientId ? tx.clock.now() + SIGN_IN_MS : null,
      ...signIn,
      method: method ?? null,
      authenticatedAt: tx.clock.now(),
      id,
      identityId: identity.id,
      configTypes: [...signIn.configTypes],
      // A session by OpenID Connect is used by signed tokens only: no client knows the token with this hash.
      tokenHash: hashToken(signIn.clientId ? newToken() : this.#tokens.derive(id)),
      isMfaComplete: false,
      mfaPassedAt: null,
      wokenAt: null,
      unlockedAt: null,
      wrongCodeCount: 0,
      lastActivityAt: tx.clock.now(),
    })
    const details = { identity: pickSessionIdentity(identity), ...(method === undefined ? {} : { method }) }
    const session = (await this.#entities.insert(tx, apiSessions, draft, { audit, ...details })) as Entity<
      typeof apiSessions
    >
    await this.termination.endSurplus(tx, session, identity.authPolicyId)
    return session
  }

  /** Revokes the selected sessions. Returns how many. */
  async revokeAll(tx: WriteContext, of: ApiSessionSelection): Promise<number> {
    const all = tx.db.selectFrom('api_sessions').select('id')
    const rows = await ('identityId' in of
      ? all.where('identityId', '=', of.identityId).where('id', '!=', of.except ?? '')
      : all.where('authenticatorId', '=', of.authenticatorId)
    ).execute()
    return this.#entities.removeAllIn(
      tx,
      apiSessions,
      rows.map(({ id }) => id),
    )
  }

  /** Revokes sessions by their ids: few enough for one transaction. Those that a client ends itself are not audited. */
  async revoke(tx: WriteContext, ids: readonly string[], audit: 'event' | 'none' = 'event'): Promise<void> {
    await this.#entities.removeAllIn(tx, apiSessions, ids, audit)
  }

  /**
   * Revokes any number of sessions, which memory drops when it follows the change that revokes them. Deletes the first rows, unless
   * too many service sessions depend on them, and stores which ones are left, so that they stay revoked if the process ends;
   * `SessionTermination` deletes them.
   */
  async revokeMany(tx: WriteContext, sessions: RevokedSessions): Promise<void> {
    // By number, because ids are times: one that was made before the clock was set back seems to be of a later session.
    const newest = tx.db.selectFrom('api_sessions').select('n').orderBy('n', 'desc').limit(1)
    const { n } = (await newest.executeTakeFirst()) ?? { n: 0 }
    const revocation = { id: newId(), sessions: JSON.stringify(sessions), newest: n }
    await tx.db.insertInto('api_session_revocations').values(revocation).execute()
    const firstIds = this.#live.listAmong(sessions, listMoved(tx.uncommitted.all), MAX_DELETED)
    if ((await findServiceSessions(tx.db, firstIds)).length < MAX_SERVICE_SESSIONS) await this.revoke(tx, firstIds)
  }

  /** The ids of the sessions by OpenID Connect that memory holds among those that a change revokes. */
  listTokenSessions(tx: WriteContext, sessions: RevokedSessions): string[] {
    const ids = this.#live.listAmong(sessions, listMoved(tx.uncommitted.all), Number.POSITIVE_INFINITY)
    return ids.filter((id) => this.#live.get(id)?.clientId)
  }

  /** Whether a session was revoked whose row is not deleted yet. */
  isRevoked(id: string): boolean {
    return this.#live.isRevoked(id)
  }

  /** The number of rows of revoked sessions. */
  countRevoked(): number {
    return this.#live.countRevoked()
  }

  // ---- background -----------------------------------------------------------------------------------------------------

  /** Writes the last activity of the sessions that were used since the last flush. */
  flush(context: Context): Promise<void> {
    return this.#activity.flush(context)
  }

  /** Writes the last activity of those that other controllers will take for ended unless they hear of it. */
  flushUrgent(context: Context): Promise<void> {
    return this.#activity.flushUrgent(context)
  }

  /** Applies the changes of a commit: sessions that began or ended, and changed identities. */
  apply({ changes }: Commit): void {
    for (const change of changes) {
      const { resource, operation, id, at, after, identity } = change
      for (const sessions of listRevoked(change)) this.#live.revoke(sessions)
      if (resource === 'identities' && after) this.#live.update(after)
      if (resource !== apiSessions.plural) continue
      if (operation === 'create' && after && identity) this.#addCreated(after, identity)
      if (operation === 'update') {
        if (after) this.#live.updateProgress(id, toSessionProgress(after))
        // Only its last activity was written.
        else {
          const session = this.#live.noteActivity(id, at)
          if (session) this.#activity.noteWritten(session)
        }
      }
      if (operation === 'delete') this.#remove(id)
    }
  }

  #addCreated(entity: Entity<typeof apiSessions>, identity: ApiSessionIdentity): void {
    const { id, createdAt, configTypes, lastActivityAt, authenticatedAt } = entity
    this.#live.add({
      id,
      tokenHash: entity.tokenHash,
      identity,
      clientId: entity.clientId,
      createdAt,
      authenticatedAt,
      configTypes: internConfigTypes(configTypes),
      basis: toSessionBasis(entity),
      ...toSessionProgress(entity),
      lastActivityAt,
    })
  }

  #remove(id: string): void {
    this.#tokens.evict(id)
    this.#withShownToken.delete(id)
    const session = this.#live.remove(id)
    if (session) this.#activity.remove(session)
  }
}

/** Identity → its auth policy, of the identities that changes concern. */
function listMoved(changes: readonly Change[]): Map<string, string> {
  const policyIds = new Map<string, string>()
  for (const { resource, id, after } of changes)
    if (resource === 'identities' && after) policyIds.set(id, after.authPolicyId)
  return policyIds
}

function pickSessionIdentity(identity: ApiSessionIdentity): SessionIdentity {
  const { id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId } = identity
  return {
    ...{ id, name, isAdmin, authPolicyId, externalId },
    permissions: [...permissions],
    roleAttributes: [...roleAttributes],
  }
}
