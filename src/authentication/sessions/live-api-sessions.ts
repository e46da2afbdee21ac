// The API sessions in memory, by the hash of their token, with the fields of their identity that requests need.
import type { Instant } from '../../foundation/clock.ts'
import type { SessionBasis } from './session-basis.ts'

/** The fields of an identity that every request needs; all sessions of the identity share one object. */
export interface ApiSessionIdentity {
  readonly id: string
  name: string
  isAdmin: boolean
  authPolicyId: string
  roleAttributes: readonly string[]
  externalId: string | null
}

export interface LiveApiSession {
  readonly id: string
  /** SHA-256 of the token, base64url. */
  readonly tokenHash: string
  readonly identity: ApiSessionIdentity
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
  lastActivityAt: Instant
}

/** The members of a session that checks of the second factor read. */
export const MFA_TIMES = ['mfaPassedAt', 'wokenAt', 'unlockedAt'] as const

/** The members of a session that change when it passes a second factor, and when its machine woke or was unlocked. */
export type TotpProgress = Pick<LiveApiSession, 'owesTotp' | 'isTotpComplete' | (typeof MFA_TIMES)[number]>

/** An identity with its sessions; it is removed with the last one. */
type SharedIdentity = ApiSessionIdentity & { sessions: LiveApiSession[] }

// Most sessions request no config types, or all.
const NO_TYPES: readonly string[] = []
const ALL_TYPES: readonly string[] = ['all']

/** Returns a shared list for common contents, so that a hundred thousand sessions share its memory. */
export function internConfigTypes(configTypes: readonly string[]): readonly string[] {
  if (configTypes.length === 0) return NO_TYPES
  return configTypes.length === 1 && configTypes[0] === 'all' ? ALL_TYPES : configTypes
}

const NO_SESSIONS: readonly LiveApiSession[] = []

export class LiveApiSessions {
  readonly #byHash = new Map<string, LiveApiSession>()
  readonly #byId = new Map<string, LiveApiSession>()
  readonly #identities = new Map<string, SharedIdentity>()
  readonly #bases = new Map<string, SessionBasis>()

  findByTokenHash(tokenHash: string): LiveApiSession | undefined {
    return this.#byHash.get(tokenHash)
  }

  get(id: string): LiveApiSession | undefined {
    return this.#byId.get(id)
  }

  hasIdentity(identityId: string): boolean {
    return this.#identities.has(identityId)
  }

  get size(): number {
    return this.#byId.size
  }

  all(): Iterable<LiveApiSession> {
    return this.#byId.values()
  }

  /** Adds a session. Returns the stored object. */
  add(session: LiveApiSession): LiveApiSession {
    const identity = this.#internIdentity(session.identity)
    const shared = { ...session, identity, basis: this.#internBasis(session.basis) }
    identity.sessions.push(shared)
    this.#byHash.set(shared.tokenHash, shared)
    this.#byId.set(shared.id, shared)
    return shared
  }

  #internBasis(basis: SessionBasis): SessionBasis {
    const { method, signerId, signerKey, caId, isByClaim } = basis
    const key = [method, signerId, signerKey, caId, isByClaim].join()
    const shared = this.#bases.get(key)
    if (shared) return shared
    this.#bases.set(key, basis)
    return basis
  }

  #internIdentity({ id, name, isAdmin, authPolicyId, roleAttributes, externalId }: ApiSessionIdentity): SharedIdentity {
    let identity = this.#identities.get(id)
    if (!identity) {
      // Member by member, because an object made by spreading takes five times the memory.
      identity = { id, name, isAdmin, authPolicyId, roleAttributes, externalId, sessions: [] }
      this.#identities.set(id, identity)
    }
    return identity
  }

  remove(id: string): void {
    const session = this.#byId.get(id)
    if (!session) return
    this.#byId.delete(id)
    this.#byHash.delete(session.tokenHash)
    const identity = this.#identities.get(session.identity.id)
    if (!identity) return
    identity.sessions.splice(identity.sessions.indexOf(session), 1)
    if (identity.sessions.length === 0) this.#identities.delete(identity.id)
  }

  /** Updates the second factor of a session. */
  updateTotp(id: string, progress: TotpProgress): void {
    const session = this.#byId.get(id)
    if (session) Object.assign(session, progress)
  }

  /** Notes that a session was used at that time, unless a later use is known. */
  noteActivity(id: string, at: Instant): void {
    const session = this.#byId.get(id)
    if (session && session.lastActivityAt < at) session.lastActivityAt = at
  }

  /** The sessions of an identity. */
  listOfIdentity(identityId: string): readonly LiveApiSession[] {
    return this.#identities.get(identityId)?.sessions ?? NO_SESSIONS
  }

  /** Updates the shared identity of its sessions. */
  update({ id, name, isAdmin, authPolicyId, roleAttributes, externalId }: ApiSessionIdentity): void {
    const identity = this.#identities.get(id)
    if (identity) Object.assign(identity, { name, isAdmin, authPolicyId, roleAttributes, externalId })
  }
}
