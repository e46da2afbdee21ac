// The API sessions in memory, by the hash of their token, with the fields of their identity that requests need.
import { LRUCache } from 'lru-cache'
import type { Instant } from '../../foundation/clock.ts'
import { isAmong, type RevokedSessions, type SessionBasis } from './session-basis.ts'
import { type Cohort, SessionCohorts } from './session-cohorts.ts'

/** The fields of an identity that every request needs; all sessions of the identity share one object. */
export interface ApiSessionIdentity {
  readonly id: string
  name: string
  isAdmin: boolean
  permissions: readonly string[]
  authPolicyId: string
  roleAttributes: readonly string[]
  externalId: string | null
}

export interface LiveApiSession {
  readonly id: string
  /** SHA-256 of the token, base64url. */
  readonly tokenHash: string
  readonly identity: ApiSessionIdentity
  /** The client of OpenID Connect that it began by; null if it has a token of its own, which routers are told about. */
  readonly clientId: string | null
  readonly createdAt: Instant
  /** When its identity signed in; shifted when the clock is set. */
  authenticatedAt: Instant
  /** All sessions with the same basis share one object. */
  readonly basis: SessionBasis
  readonly configTypes: readonly string[]
  /** The second factor, as `second-factors.ts` reads it. */
  owesTotp: boolean
  isTotpComplete: boolean
  /** When the session last passed a TOTP code; null if it did not. */
  mfaPassedAt: Instant | null
  /** When its machine last woke, and when it was last unlocked, as the client reported; null if it did not. */
  wokenAt: Instant | null
  unlockedAt: Instant | null
  /** When its sign-in, or the last of its tokens, ends; null if it has a token of its own. */
  endsAt: Instant | null
  lastActivityAt: Instant
}

/** The members of a session that checks of the second factor read. */
export const MFA_TIMES = ['mfaPassedAt', 'wokenAt', 'unlockedAt'] as const

type MfaTimes = Pick<LiveApiSession, (typeof MFA_TIMES)[number]>

/** Whether a change of a session is one of those members. */
export function hasOtherMfa(before: MfaTimes | undefined, after: MfaTimes | undefined): boolean {
  return before !== undefined && after !== undefined && MFA_TIMES.some((time) => before[time] !== after[time])
}

/** The members that change when it passes a second factor or receives tokens, and when its machine woke or was unlocked. */
export type SessionProgress = Pick<LiveApiSession, 'owesTotp' | 'isTotpComplete' | 'endsAt' | keyof MfaTimes>

/** A session with the others that a change revokes together with it. */
type CohortMember = LiveApiSession & { cohort: Cohort<CohortMember> }

/** An identity with its sessions; it is removed with the last one. */
type SharedIdentity = ApiSessionIdentity & { sessions: CohortMember[] }

// Most sessions request no config types, or all.
const NO_TYPES: readonly string[] = []
const ALL_TYPES: readonly string[] = ['all']

/** Returns a shared list for common contents, so that a hundred thousand sessions share its memory. */
export function internConfigTypes(configTypes: readonly string[]): readonly string[] {
  if (configTypes.length === 0) return NO_TYPES
  return configTypes.length === 1 && configTypes[0] === 'all' ? ALL_TYPES : configTypes
}

/** Nearly all identities hold no permissions. */
const NO_WORDS: readonly string[] = []

function internWords(words: readonly string[]): readonly string[] {
  return words.length === 0 ? NO_WORDS : words
}

const NO_SESSIONS: readonly CohortMember[] = []

// Some 100 KB. A client that goes on with a session which has ended finds out within seconds.
const MAX_ENDED = 1_000

/** A session that was revoked is not live any more, and stays in memory until its row is deleted. */
export class LiveApiSessions {
  readonly #byHash = new Map<string, CohortMember>()
  readonly #byId = new Map<string, CohortMember>()
  readonly #identities = new Map<string, SharedIdentity>()
  readonly #cohorts = new SessionCohorts<CohortMember>()
  readonly #endedHashes = new LRUCache<string, true>({ max: MAX_ENDED })

  findByTokenHash(tokenHash: string): LiveApiSession | undefined {
    const session = this.#byHash.get(tokenHash)
    return session?.cohort.isRevoked ? undefined : session
  }

  /** Whether the session of a token was revoked, or removed a short time ago, so that it never lives again. */
  hasEnded(tokenHash: string): boolean {
    return this.#endedHashes.has(tokenHash) || this.#byHash.get(tokenHash)?.cohort.isRevoked === true
  }

  get(id: string): LiveApiSession | undefined {
    const session = this.#byId.get(id)
    return session?.cohort.isRevoked ? undefined : session
  }

  get size(): number {
    return this.#byId.size - this.countRevoked()
  }

  countRevoked(): number {
    return this.#cohorts.countRevoked()
  }

  *all(): Generator<LiveApiSession> {
    for (const session of this.#byId.values()) if (!session.cohort.isRevoked) yield session
  }

  /** Adds a session. Returns the stored object. */
  add(session: LiveApiSession, isRevoked = false): LiveApiSession {
    const identity = this.#internIdentity(session.identity)
    const { authPolicyId } = identity
    const cohort = this.#cohorts.findOrCreate({ basis: session.basis, authPolicyId, isRevoked })
    const shared = { ...session, identity, basis: cohort.basis, cohort }
    cohort.sessions.add(shared)
    identity.sessions.push(shared)
    this.#byHash.set(shared.tokenHash, shared)
    this.#byId.set(shared.id, shared)
    return shared
  }

  #internIdentity({
    id,
    name,
    isAdmin,
    permissions,
    authPolicyId,
    roleAttributes,
    externalId,
  }: ApiSessionIdentity): SharedIdentity {
    let identity = this.#identities.get(id)
    if (!identity) {
      // Member by member, because an object made by spreading takes five times the memory.
      const words = internWords(permissions)
      identity = { id, name, isAdmin, permissions: words, authPolicyId, roleAttributes, externalId, sessions: [] }
      this.#identities.set(id, identity)
    }
    return identity
  }

  /** Removes a session, also a revoked one. Returns it. */
  remove(id: string): LiveApiSession | undefined {
    const session = this.#byId.get(id)
    if (!session) return undefined
    this.#byId.delete(id)
    this.#byHash.delete(session.tokenHash)
    this.#endedHashes.set(session.tokenHash, true)
    this.#cohorts.remove(session, session.cohort)
    const identity = this.#identities.get(session.identity.id)
    if (!identity) return session
    identity.sessions.splice(identity.sessions.indexOf(session), 1)
    if (identity.sessions.length === 0) this.#identities.delete(identity.id)
    return session
  }

  /** Revokes all sessions that a change revokes. */
  revoke(of: RevokedSessions): void {
    this.#cohorts.revoke(of)
  }

  isRevoked(id: string): boolean {
    return this.#byId.get(id)?.cohort.isRevoked === true
  }

  /** The ids of some revoked sessions. */
  listRevoked(limit: number): string[] {
    const ids: string[] = []
    for (const { id } of this.#cohorts.listRevoked()) {
      if (ids.length === limit) break
      ids.push(id)
    }
    return ids
  }

  /**
   * The ids of some sessions that a change revokes.
   * @param policyIds identity → its auth policy after changes that memory does not know yet
   */
  listAmong(of: RevokedSessions, policyIds: ReadonlyMap<string, string>, limit: number): string[] {
    const ids: string[] = []
    for (const [identityId, policyId] of policyIds)
      for (const { id, basis } of this.listOfIdentity(identityId)) if (isAmong(of, basis, policyId)) ids.push(id)
    for (const { sessions } of this.#cohorts.listAmong(of)) {
      for (const { id, identity } of sessions) {
        if (ids.length >= limit) return ids.slice(0, limit)
        if (!policyIds.has(identity.id)) ids.push(id)
      }
    }
    return ids.slice(0, limit)
  }

  /** Updates what a session has passed and received. */
  updateProgress(id: string, progress: SessionProgress): void {
    const session = this.#byId.get(id)
    if (session) Object.assign(session, progress)
  }

  /** Notes that a session was used at that time. Returns it, unless a later use is known. */
  noteActivity(id: string, at: Instant): LiveApiSession | undefined {
    const session = this.#byId.get(id)
    if (!session || session.lastActivityAt > at) return undefined
    session.lastActivityAt = at
    return session
  }

  /** The sessions of an identity. */
  listOfIdentity(identityId: string): readonly LiveApiSession[] {
    const sessions = this.#identities.get(identityId)?.sessions ?? NO_SESSIONS
    return this.#cohorts.hasRevoked ? sessions.filter(({ cohort }) => !cohort.isRevoked) : sessions
  }

  /** Updates the shared identity of its sessions. */
  update({ id, name, isAdmin, permissions, authPolicyId, roleAttributes, externalId }: ApiSessionIdentity): void {
    const identity = this.#identities.get(id)
    if (!identity) return
    const isMoved = identity.authPolicyId !== authPolicyId
    Object.assign(identity, {
      name,
      isAdmin,
      permissions: internWords(permissions),
      authPolicyId,
      roleAttributes,
      externalId,
    })
    if (!isMoved) return
    for (const session of identity.sessions) {
      // A revoked session stays in its cohort, and revoked.
      if (session.cohort.isRevoked) continue
      this.#cohorts.remove(session, session.cohort)
      session.cohort = this.#cohorts.findOrCreate({ basis: session.basis, authPolicyId, isRevoked: false })
      session.cohort.sessions.add(session)
    }
  }
}
