// API sessions in memory by what decides whether a change revokes them: their basis, and the auth policy of their identity.
import { isAmong, type RevokedSessions, type SessionBasis } from './session-basis.ts'

/** Sessions of which a change revokes all or none. */
export interface Cohort<Session> {
  readonly key: string
  readonly basis: SessionBasis
  readonly authPolicyId: string
  readonly sessions: Set<Session>
  isRevoked: boolean
}

/** Revokes any number of sessions at a cost that depends on the number of cohorts: one for each policy, method and signing key. */
export class SessionCohorts<Session> {
  readonly #valid = new Map<string, Cohort<Session>>()
  /** Cohorts with rows that are not deleted yet. */
  readonly #revoked = new Set<Cohort<Session>>()

  /** The cohort to which the caller adds a session of this kind. */
  findOrCreate({ basis, authPolicyId, isRevoked }: Omit<Cohort<Session>, 'key' | 'sessions'>): Cohort<Session> {
    const { method, signerId, signerKey, caId, isByClaim } = basis
    const key = [method, signerId, signerKey, caId, isByClaim, authPolicyId].join()
    const existing = isRevoked ? [...this.#revoked].find((each) => each.key === key) : this.#valid.get(key)
    if (existing) return existing
    const created = { key, basis, authPolicyId, sessions: new Set<Session>(), isRevoked }
    if (isRevoked) this.#revoked.add(created)
    else this.#valid.set(key, created)
    return created
  }

  /** Removes a session; a cohort is removed with its last one. */
  remove(session: Session, cohort: Cohort<Session>): void {
    cohort.sessions.delete(session)
    if (cohort.sessions.size > 0) return
    if (cohort.isRevoked) this.#revoked.delete(cohort)
    else this.#valid.delete(cohort.key)
  }

  /** Revokes the cohorts that a change revokes. Sessions that are added later belong to others. */
  revoke(of: RevokedSessions): void {
    for (const cohort of this.listAmong(of)) {
      cohort.isRevoked = true
      this.#valid.delete(cohort.key)
      this.#revoked.add(cohort)
    }
  }

  /** The valid cohorts that a change revokes. */
  listAmong(of: RevokedSessions): Cohort<Session>[] {
    return [...this.#valid.values()].filter(({ basis, authPolicyId }) => isAmong(of, basis, authPolicyId))
  }

  get hasRevoked(): boolean {
    return this.#revoked.size > 0
  }

  countRevoked(): number {
    let count = 0
    for (const { sessions } of this.#revoked) count += sessions.size
    return count
  }

  /** Some of the revoked sessions. */
  *listRevoked(): Generator<Session> {
    for (const { sessions } of this.#revoked) yield* sessions
  }
}
