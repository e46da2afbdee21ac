// The sessions in memory: found by the hash of their token, and with them what a request needs of their identity.
import type { Instant } from '../clock.ts'

/** What every request needs to know of the identity behind it; one object for all sessions of the identity. */
export interface SessionIdentity {
  readonly id: string
  name: string
  isAdmin: boolean
  authPolicyId: string
  roleAttributes: readonly string[]
}

export interface LiveSession {
  readonly id: string
  /** SHA-256 of the token, base64url. */
  readonly tokenHash: string
  readonly identity: SessionIdentity
  readonly createdAt: Instant
  readonly configTypes: readonly string[]
  readonly owesTotp: boolean
  readonly isTotpComplete: boolean
  lastActivityAt: Instant
}

/** An identity with the number of its sessions: without any it is forgotten. */
type CountedIdentity = SessionIdentity & { sessions: number }

// Most sessions ask for none, or for all.
const NO_TYPES: readonly string[] = []
const ALL_TYPES: readonly string[] = ['all']

/** The same list for equal contents, where that is common: a hundred thousand sessions share it. */
export function internConfigTypes(configTypes: readonly string[]): readonly string[] {
  if (configTypes.length === 0) return NO_TYPES
  return configTypes.length === 1 && configTypes[0] === 'all' ? ALL_TYPES : configTypes
}

export class LiveSessions {
  readonly #byHash = new Map<string, LiveSession>()
  readonly #byId = new Map<string, LiveSession>()
  readonly #identities = new Map<string, CountedIdentity>()

  findByTokenHash(tokenHash: string): LiveSession | undefined {
    return this.#byHash.get(tokenHash)
  }

  get(id: string): LiveSession | undefined {
    return this.#byId.get(id)
  }

  get size(): number {
    return this.#byId.size
  }

  all(): Iterable<LiveSession> {
    return this.#byId.values()
  }

  /** Takes up a session. Returns the object that stands for it from then on. */
  add(session: LiveSession): LiveSession {
    const identity = this.#identityOf(session.identity)
    identity.sessions += 1
    const shared = { ...session, identity }
    this.#byHash.set(shared.tokenHash, shared)
    this.#byId.set(shared.id, shared)
    return shared
  }

  #identityOf({ id, name, isAdmin, authPolicyId, roleAttributes }: SessionIdentity): CountedIdentity {
    let identity = this.#identities.get(id)
    if (!identity) {
      // Member by member: what is spread takes five times the memory.
      identity = { id, name, isAdmin, authPolicyId, roleAttributes, sessions: 0 }
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
    identity.sessions -= 1
    if (identity.sessions === 0) this.#identities.delete(identity.id)
  }

  /** Tells all sessions of an identity what it has become. */
  update({ id, name, isAdmin, authPolicyId, roleAttributes }: SessionIdentity): void {
    const identity = this.#identities.get(id)
    if (identity) Object.assign(identity, { name, isAdmin, authPolicyId, roleAttributes })
  }
}
